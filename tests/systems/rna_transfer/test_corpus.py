"""What the study learns from: families in turns, nothing of the test families, and what is left out is counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError, UsageError
from stages.rna import alphabet, structure
from stages.systems.rna_transfer import corpus
from stages.systems.rna_transfer.corpus import Corpus, in_turns, is_paired, open_corpus
from tests.systems.rna_transfer.small import SETTINGS, TASKS, accepted, molecules, settings

CORPUS = Corpus(accepted(), "transfer-0", SETTINGS, 0)


def test_families_take_turns() -> None:
    family_M = np.array([0] * 10 + [1] * 3 + [2])
    drawn = in_turns(np.arange(14), family_M, 6, 3, np.random.default_rng(0))
    assert Counter(family_M[drawn[:3]].tolist()) == {0: 1, 1: 1, 2: 1}
    assert Counter(family_M[drawn].tolist()) == {0: 3, 1: 2, 2: 1} or Counter(family_M[drawn].tolist()) == {
        0: 2, 1: 3, 2: 1,
    }  # fmt: skip
    assert len(in_turns(np.arange(14), family_M, 100, 2, np.random.default_rng(0))) == 5


@pytest.mark.parametrize("name", TASKS)
def test_no_family_is_on_two_sides(name: str) -> None:
    _, parts, told = CORPUS.examples(name)
    families = [{example.family for example in part} for part in parts[:3]]
    assert not families[0] & families[1] | families[0] & families[2] | families[1] & families[2]
    assert told["molecules"]["train"] == 6 == len(parts.train)
    assert told["molecules"]["external"] == (2 if name in corpus.STRUCTURAL else 0)
    assert len(parts.test) == told["molecules"]["test"] + told["molecules"]["external"]
    assert parts.probe == parts.train[:3]
    pretrained = {each.tobytes() for each in CORPUS.pretraining()}
    assert not pretrained & {example.token_L.tobytes() for part in parts for example in part}


def test_the_seed_draws_what_is_learnt_from_and_nothing_else() -> None:
    _, first, _ = CORPUS.examples("paired")
    _, second, _ = replace(CORPUS, seed=1).examples("paired")
    ids = [[[e.record_id for e in part] for part in parts[:3]] for parts in (first, second)]
    assert ids[0][0] != ids[1][0]
    assert ids[0][1:] == ids[1][1:]


def test_what_a_task_cannot_use_is_counted() -> None:
    rows = molecules()
    long = "A" * 50
    rows[18] = rows[18]._replace(sequence=long, pairs=structure.no_pairs())
    rows[19] = rows[19]._replace(pairs=None)
    rows[20] = rows[20]._replace(rna_type=None)
    rows[21] = rows[21]._replace(rna_type="Gene; rare")
    made = Corpus(accepted(rows), "transfer-0", settings(molecules={"train": 100, "per_family": 9}), 0)
    _, parts, told = made.examples("base_pairs")
    assert told["left_out"] == {"too_long": 1, "no_structure": 1}
    assert told["molecules"]["train"] == 12 - 2
    _, parts, told = made.examples("rna_type")
    # The molecules without a family have no type either.
    assert told["left_out"] == {"too_long": 1, "no_type": 1 + 2, "rare_type": 1}
    assert told["classes"] == ["Gene; A", "Gene; B"]
    assert {int(example.truth) for example in parts.train} == {0, 1}


def test_a_long_molecule_is_never_cut_with_its_label_kept() -> None:
    _, parts, _ = CORPUS.examples("paired")
    for example in (*parts.train, *parts.test):
        assert len(example.token_L) == len(example.truth) <= 40


def test_paired_bases_are_those_in_a_pair() -> None:
    assert is_paired(structure.parse("((..)).[.]"), 10).tolist() == [1, 1, 0, 0, 1, 1, 0, 1, 0, 1]
    assert is_paired(structure.no_pairs(), 3).tolist() == [0, 0, 0]


def test_an_empty_task_is_refused_by_name() -> None:
    made = Corpus(accepted(), "transfer-0", settings(molecules={"length": dict.fromkeys(TASKS, 3)}), 0)
    with pytest.raises(
        DataError, match=r"split transfer-0, part train: found no molecule that paired can use \(23 too"
    ):
        made.examples("paired")


def test_sets_and_splits_that_are_not_there_are_refused(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="sets: no set of rna was ingested"):
        open_corpus(settings(sets="all"), 0)
    artifacts.ingested("rna", "made").mkdir(parents=True)
    monkeypatch.setattr(corpus.rna, "open_set", lambda keys: accepted())
    with pytest.raises(UsageError, match="sets: mode was not ingested; did you mean 'made'"):
        open_corpus(settings(sets=["mode"]), 0)
    with pytest.raises(UsageError, match="the gate made no split transfer-1; did you mean 'transfer-0'"):
        open_corpus(settings(splits=["transfer-0", "transfer-1"]), 1)
    assert open_corpus(settings(sets="all"), 0).accepted.keys == ("made",)


def test_folding_answers_in_the_order_of_the_molecules(monkeypatch: pytest.MonkeyPatch) -> None:
    sets, (_, parts, _) = CORPUS.accepted, CORPUS.examples("base_pairs")
    has_label_M = np.ones(len(sets), np.bool_)
    missing = sets.record_ids.index(parts.test[0].record_id)
    has_label_M[missing] = False
    labels = corpus.rna.Labels(
        "viennarna-mfe",
        has_label_M,
        sets.pair_N2,
        sets.pair_start_M1,
        np.zeros(len(sets)),
        np.arange(len(sets.token_B), dtype=np.float32),
    )
    monkeypatch.setattr(corpus.rna.Accepted, "labels", lambda self, source: labels)
    structures = corpus.mfe_answers(CORPUS, "base_pairs", parts.test)
    assert structures[0] is None
    for example, answer in zip(parts.test[1:], structures[1:], strict=True):
        assert answer is not None
        assert answer.pairs is not None
        np.testing.assert_array_equal(answer.pairs, example.truth)
    probabilities = corpus.mfe_answers(CORPUS, "paired", parts.test)
    m = sets.record_ids.index(parts.test[1].record_id)
    assert probabilities[1] is not None
    assert probabilities[1].score.tolist() == list(range(sets.start_M1[m], sets.start_M1[m + 1]))


def test_the_corpus_is_described() -> None:
    told = CORPUS.described()
    assert (told["molecules"], told["families"], told["pieces"]) == (18, 6, 0)
    assert told["bases"] == sum(map(len, CORPUS.pretraining()))
    assert told["unigram_loss"] < np.log(4)
    assert pl.Series([alphabet.decode(each) for each in CORPUS.validation()]).n_unique() == 2
