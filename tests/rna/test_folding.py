"""Folding: molecules whose answer is known from the energy rules, and probabilities that are ones."""

from __future__ import annotations

import numpy as np
import pytest

from stages.rna.folding import fold, version
from stages.rna.structure import brackets


def test_a_hairpin_folds_as_it_must() -> None:
    folded = fold("GGGGAAAACCCC")
    assert brackets(folded.pairs, 12) == "((((....))))"
    # Three GG/CC stacks of -3.3, a GAAAAC hairpin of +4.5: -5.4 kcal/mol in the rules of 2004.
    assert folded.energy == -5.4


def test_probabilities_follow_the_structure() -> None:
    paired = fold("GGGGAAAACCCC").paired
    assert paired.shape == (12,)
    assert paired.dtype == np.float32
    assert (paired[[0, 1, 2, 9, 10, 11]] > 0.8).all()
    assert (paired[4:8] < 0.05).all()


def test_a_molecule_that_cannot_pair_has_energy_0() -> None:
    folded = fold("AAAAAAAA")
    assert (len(folded.pairs), folded.energy, folded.paired.max()) == (0, 0.0, 0.0)


def test_an_unknown_base_pairs_with_none() -> None:
    assert fold("GGGNAAAACCCC").paired[3] == 0


def test_heat_melts_a_hairpin() -> None:
    assert len(fold("GGGGAAAACCCC", temperature=95).pairs) == 0


def test_the_ensemble_of_a_long_molecule_is_finite() -> None:
    paired = fold("GGGGGCCCCC" * 60).paired
    assert np.isfinite(paired).all()
    assert paired.max() <= 1 + 1e-6


def test_the_version_is_known() -> None:
    assert version().split(".")[0] == "2"


def test_one_base() -> None:
    assert fold("G").paired.tolist() == [0]


@pytest.mark.parametrize("sequence", ["GGGAAAUCC", "GCAUCUAUGC"])
def test_pairs_leave_a_loop_of_three(sequence: str) -> None:
    pairs = fold(sequence).pairs
    assert (pairs[:, 1] - pairs[:, 0] > 3).all()
