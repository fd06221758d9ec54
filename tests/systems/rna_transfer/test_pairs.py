"""Decoding: one partner at most, loops of three, and a rule for ties."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from stages.rna import alphabet
from stages.rna.structure import checked
from stages.systems.rna_transfer.pairs import MINIMUM_LOOP, decode


@given(st.integers(1, 30), st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([2, 1000]))
def test_a_structure_obeys_its_rules(length: int, seed: int, canonical: bool, levels: int) -> None:
    rng = np.random.default_rng(seed)
    token_L = alphabet.encode("".join(rng.choice(list("ACGUN"), length)))
    score_LL = rng.integers(0, levels + 1, (length, length)) / levels
    pairs, score_N = decode(score_LL, token_L, threshold=0.5, canonical=canonical)
    # `checked` refuses a base with two partners.
    np.testing.assert_array_equal(checked(pairs, length), pairs)
    assert np.all(pairs[:, 1] - pairs[:, 0] > MINIMUM_LOOP)
    assert np.all(score_N >= 0.5)
    if canonical:
        letters = alphabet.decode(token_L)
        fits = {*alphabet.CANONICAL, *(f"N{base}" for base in "ACGUN"), *(f"{base}N" for base in "ACGUN")}
        assert all(letters[left] + letters[right] in fits for left, right in pairs.tolist())


@given(st.integers(0, 2**32 - 1))
def test_a_higher_threshold_keeps_the_pairs_that_reach_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    token_L = alphabet.encode("".join(rng.choice(list("ACGU"), 20)))
    score_LL = rng.random((20, 20))
    low, score_N = decode(score_LL, token_L, threshold=0.2, canonical=False)
    high, _ = decode(score_LL, token_L, threshold=0.7, canonical=False)
    np.testing.assert_array_equal(low[score_N >= np.float32(0.7)], high)


def test_of_equal_scores_the_5_prime_left_base_then_the_5_prime_right_base_is_first() -> None:
    token_L = alphabet.encode("A" * 12)
    score_LL = np.zeros((12, 12))
    score_LL[0, [6, 9]] = score_LL[1, 9] = score_LL[2, 6] = 0.8
    pairs, _ = decode(score_LL, token_L, threshold=0.5, canonical=False)
    assert pairs.tolist() == [[0, 6], [1, 9]]


def test_a_higher_score_takes_a_base_from_a_lower_one() -> None:
    token_L = alphabet.encode("GAAAAAAC")
    score_LL = np.zeros((8, 8))
    score_LL[0, 7], score_LL[0, 6] = 0.6, 0.9
    assert decode(score_LL, token_L, threshold=0.5, canonical=False)[0].tolist() == [[0, 6]]
    assert decode(score_LL, token_L, threshold=0.5, canonical=True)[0].tolist() == [[0, 7]]


def test_a_pair_below_the_diagonal_or_with_a_short_loop_is_none() -> None:
    token_L = alphabet.encode("GAAAC")
    score_LL = np.ones((5, 5))
    assert decode(score_LL, token_L, threshold=0.5, canonical=True)[0].tolist() == [[0, 4]]
    assert not len(decode(np.tril(score_LL, -1), token_L, threshold=0.5, canonical=True)[0])
