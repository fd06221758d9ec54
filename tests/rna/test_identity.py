"""Sequence identity beside a textbook table and cd-hit-est; neighbours and clusters beside all pairs."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.rna.identity import clusters, identity, nearest

BASES = "ACGU"


def molecule(rng: np.random.Generator, length: int) -> str:
    return "".join(rng.choice(list(BASES), size=length))


def edited(rng: np.random.Generator, sequence: str, edits: int, kinds: str = "sid") -> str:
    """A sequence with so many random substitutions, insertions and deletions, each at another base."""
    bases = list(sequence)
    for place in sorted(rng.choice(len(bases), size=edits, replace=False), reverse=True):
        kind = rng.choice(list(kinds))
        other = rng.choice([base for base in BASES if base != bases[place]])
        bases[place : place + 1] = {"s": [other], "i": [bases[place], other], "d": []}[kind]
    return "".join(bases)


def fitted(pattern: str, text: str) -> int:
    """Identical minus dearly skipped bases by the whole table (Gotoh 1982); score, identical, -skipped as digits."""
    score, identical = 10**12, 10**6
    other, column = np.array(list(text)), np.arange(len(text) + 1)
    row = np.zeros(len(text) + 1, int)
    unpaired = np.full(len(text) + 1, -(10**17))
    for number, base in enumerate(pattern):
        unpaired = np.maximum(unpaired - score, row - 6 * score)
        fresh = unpaired.copy()
        fresh[0] = (-6 - number) * score
        fresh[1:] = np.maximum(fresh[1:], row[:-1] + np.where(other == base, 2 * score + identical, -2 * score))
        # A gap of j bases in the pattern costs 5 + j, and j skipped bases.
        before = np.maximum.accumulate(fresh + (score + 1) * column)[:-1]
        row = fresh
        row[1:] = np.maximum(row[1:], before - (score + 1) * column[1:] - 5 * score)
    best = int(row.max())
    rest = best - round(best / score) * score
    same = -(-rest // identical)
    skipped = same * identical - rest
    return max(0, same - max(0, skipped - len(pattern) // 10))


def table_identity(first: str, second: str) -> float:
    short, long = sorted((first, second), key=len)
    same = fitted(short, long)
    if len(short) == len(long):
        same = max(same, fitted(long, short))
    return same / len(short)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("ACGUACGUAC", "ACGUACGUAC", 1),
        ("acgtacgtac", "ACGUACGUAC", 1),
        ("ACGUACGUAC", "ACGUUCGUAC", 0.9),
        # What the longer one has before and after is free.
        ("ACGUACGUAC", "GGGGGACGUACGUACUUUUU", 1),
        # A base of the shorter one that the longer one lacks.
        ("ACGUACGUAC", "GGGGGACGUCGUACUUUUU", 0.9),
        # Two bases that only the longer one has: one of ten is free, the other is taken off.
        ("ACGUACGUAC", "ACGUAGGCGUAC", 0.9),
        ("ACGUACGUACACGUACGUAC", "ACGUACGUACGGACGUACGUAC", 1),
        # Shifted by one at equal length: one base hangs over.
        ("ACGGACUUAC", "CGGACUUACG", 0.9),
        # A letter is identical to itself only.
        ("ACGNACGUAC", "ACGNACGUAC", 1),
        ("ACGNACGUAC", "ACGUACGUAC", 0.9),
        ("AAAA", "CCCC", 0),
    ],
)
def test_identity_by_hand(first: str, second: str, expected: float) -> None:
    assert identity(first, second) == pytest.approx(expected)
    assert identity(second, first) == pytest.approx(expected)


@given(st.text("ACGUN", min_size=1, max_size=150), st.text("ACGU", min_size=1, max_size=150))
def test_identity_is_that_of_the_whole_table(first: str, second: str) -> None:
    assert identity(first, second) == table_identity(first, second)


def test_identity_of_related_molecules_around_the_word_size() -> None:
    """Lengths on both sides of 64 and 128 bases, where there is one window more."""
    rng = np.random.default_rng(0)
    for length in (63, 64, 65, 127, 128, 129, 200):
        first = molecule(rng, length)
        second = molecule(rng, 20) + edited(rng, first, length // 6) + molecule(rng, 9)
        assert identity(first, second) == table_identity(first, second) > 0.75


@given(st.integers(0, 2**32 - 1), st.integers(20, 180))
def test_no_pair_at_the_threshold_is_missed(seed: int, length: int) -> None:
    """Around 80 %, with substitutions, insertions and deletions, between unrelated molecules."""
    rng = np.random.default_rng(seed)
    long = molecule(rng, length)
    short = edited(rng, long, int(rng.uniform(0.1, 0.25) * length))
    others = [molecule(rng, length) for _ in range(5)]
    expected = table_identity(short, long)
    reached = max(expected, *(table_identity(short, other) for other in others)) >= 0.8
    assert (nearest([short], [*others, long], at_least=0.8).index_Q[0] >= 0) == reached
    if expected >= 0.8:
        cluster = clusters([short, *others, long], threshold=0.8)
        assert cluster[0] == cluster[-1]


def test_a_training_sequence_with_a_tenth_substituted_is_flagged() -> None:
    rng = np.random.default_rng(0)
    training = [molecule(rng, 83) for _ in range(200)]
    tested = [edited(rng, sequence, 8, kinds="s") for sequence in training[:50]]
    found = nearest(tested, training, at_least=0.8)
    assert found.index_Q.tolist() == list(range(50))
    assert found.identity_Q.tolist() == pytest.approx([1 - 8 / 83] * 50)
    unrelated = nearest([molecule(rng, 83) for _ in range(50)], training, at_least=0.8)
    assert set(unrelated.index_Q) == {-1}
    assert np.isnan(unrelated.identity_Q).all()


def reverse_complement(sequence: str) -> str:
    return sequence[::-1].translate(str.maketrans("ACGURYKMBVDH", "UGCAYRMKVBHD"))


def test_the_reverse_complement_counts_only_when_asked() -> None:
    rng = np.random.default_rng(1)
    first = molecule(rng, 80) + "RYKMBVDHSWN"
    other = reverse_complement(first)
    assert identity(first, other) < 0.7
    assert identity(first, other, reverse_complement=True) == 1
    assert identity(first, first, reverse_complement=True) == 1
    assert len(set(clusters([first, other]))) == 2
    assert len(set(clusters([first, other], reverse_complement=True))) == 1


def families(seed: int) -> list[str]:
    """Related and unrelated molecules of many lengths, duplicates among them."""
    rng = np.random.default_rng(seed)
    parents = [molecule(rng, length) for length in (23, 40, 64, 83, 83, 140)]
    found = [edited(rng, p, int(share * len(p))) for p in parents for share in (0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)]
    found += [found[3], parents[3][10:70], *(molecule(rng, int(n)) for n in rng.integers(23, 150, 10))]
    return [found[number] for number in rng.permutation(len(found))]


@pytest.mark.parametrize("seed", range(3))
def test_clusters_are_the_connected_components_of_all_pairs(seed: int) -> None:
    sequences = families(seed)
    expected = list(range(len(sequences)))
    for i, j in itertools.combinations(range(len(sequences)), 2):
        if table_identity(sequences[i], sequences[j]) >= 0.8 - 1e-9:
            new, old = sorted((expected[i], expected[j]))
            expected = [new if number == old else number for number in expected]
    order = list(dict.fromkeys(expected))
    assert clusters(sequences).tolist() == [order.index(number) for number in expected]
    assert 8 < len(order) < len(sequences) - 8


@pytest.mark.parametrize("seed", range(2))
def test_the_nearest_is_that_of_all_pairs(seed: int) -> None:
    sequences = families(seed)
    queries, references = sequences[:20], sequences[20:]
    all_QR = np.array([[table_identity(q, r) for r in references] for q in queries])
    found = nearest(queries, references)
    np.testing.assert_allclose(found.identity_Q, all_QR.max(axis=1))
    np.testing.assert_allclose(all_QR[np.arange(20), found.index_Q], all_QR.max(axis=1))
    above = nearest(queries, references, at_least=0.85)
    assert np.array_equal(above.index_Q >= 0, all_QR.max(axis=1) >= 0.85 - 1e-9)


def test_the_threshold_itself_counts() -> None:
    """8 of 10 is 80 %, although 0.2 times 10 is not a round number to a computer."""
    for length in range(5, 200, 5):
        first = molecule(np.random.default_rng(length), length)
        second = "".join("N" if place < length // 5 else base for place, base in enumerate(first))
        assert identity(first, second) == 0.8
        assert len(set(clusters([first, second], threshold=0.8))) == 1
        assert len(set(clusters([first, second], threshold=0.8 + 1e-6))) == 2


def test_clusters_are_numbered_by_their_first_molecules_and_may_be_none() -> None:
    assert clusters(["AAAAA", "CCCCC", "AAAAAAA", "GGG", "CCCCC"]).tolist() == [0, 1, 0, 2, 1]
    assert clusters([]).tolist() == []
    assert nearest([], ["ACGU"]).index_Q.tolist() == []
    assert nearest(["ACGU"], []).index_Q.tolist() == [-1]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: clusters(["ACGU", ""]), "sequence 1 is empty; expected at least one base"),
        (lambda: clusters(["AC-GU"]), "sequence 0 holds '-' at base 3; expected the letters ACGURYSWKMBDHVN or T"),
        (lambda: nearest(["ACGU"], ["ACG1"]), "reference 0 holds '1' at base 4"),
        (lambda: nearest(["AC\u0416"], ["ACGU"]), "query 0 holds '\u0416' at base 3"),
        (lambda: clusters(["ACGU"], threshold=80), "threshold is 80; expected an identity above 0 and at most 1"),
        (lambda: nearest(["A"], ["A"], at_least=1.5), "at_least is 1.5; expected an identity from 0 to 1"),
    ],
)
def test_broken_sequences_are_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("cd-hit-est") is None, reason="cd-hit-est (Debian: cd-hit) is not installed")
def test_what_cd_hit_est_puts_together_is_together(tmp_path: Path) -> None:
    """cd-hit's own numbers, printed with two decimals, to a base or two for at least 19 of 20."""
    rng = np.random.default_rng(0)
    parents = [molecule(rng, int(length)) for length in rng.integers(60, 180, 40)]
    sequences = [edited(rng, p, int(share * len(p))) for p in parents for share in (0, 0.05, 0.1, 0.15)]
    fasta = tmp_path / "molecules.fa"
    fasta.write_text("".join(f">{number}\n{sequence}\n" for number, sequence in enumerate(sequences)))
    options = ["-c", "0.8", "-n", "5", "-r", "0", "-l", "10", "-g", "1", "-d", "0", "-T", "1"]
    command = ["cd-hit-est", "-i", str(fasta), "-o", str(tmp_path / "out"), *options]
    subprocess.run(command, check=True, capture_output=True)
    cluster = clusters(sequences)
    differences = []
    for block in (tmp_path / "out.clstr").read_text().split(">Cluster")[1:]:
        rows = re.findall(r">(\d+)\.\.\. (\*|at .*?([\d.]+)%)", block)
        (representative,) = (int(number) for number, star, _ in rows if star == "*")
        for number, _, share in rows:
            if share:
                assert cluster[int(number)] == cluster[representative]
                pair = sequences[int(number)], sequences[representative]
                differences.append((identity(*pair) - float(share) / 100) * min(map(len, pair)))
    assert len(differences) > 80
    assert (np.abs(differences) < 2.1).mean() > 0.95
