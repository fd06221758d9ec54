from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.accepted.rna import MFE, Accepted, open_set
from stages.errors import DataError, UsageError
from stages.rna import structure
from stages.validate.rna import stage
from tests.validate.rna.fakes import BRACKETS, LENGTH, families, hairpin, ingested, molecule, params

pytestmark = pytest.mark.usefixtures("workspace")
HELD = families(20, 5)
FILES = {"pdb": {"train": "train.fas", "test": "test.fas"}}


@pytest.fixture
def accepted(workspace: object) -> Accepted:
    """Families of which one molecule is refused, and two molecules without a family, one of them without structure."""
    tiny = molecule("tiny", "GGAAACC", "((...))", family="RF000")
    ingested("rfam", [HELD[0], tiny, *HELD[1:]], labelled=3)
    random = np.random.default_rng(4)
    alone = [molecule("1ABC", hairpin(random), source_file="train.fas")]
    ingested("pdb", [*alone, molecule("2ABC", "ACGUN" * 8, None, source_file="test.fas")], simulated=False)
    stage.run(params("rfam", "pdb", published=FILES, gate={"max_unknown": 0.5}), name="rna", key="")
    return open_set(["rfam", "pdb"])


def test_molecules_stand_one_after_the_other_without_padding(accepted: Accepted) -> None:
    assert len(accepted) == 102
    assert accepted.lengths.tolist() == [LENGTH] * 101 + [40]
    assert accepted.token_B.shape == (101 * LENGTH + 40,)
    assert [accepted.sequence(m) for m in range(100)] == [each.sequence for each in HELD]
    assert accepted.sequence(101) == "ACGUN" * 8
    assert accepted.tokens(101)[:5].tolist() == [4, 5, 6, 7, 8]


def test_refused_molecules_are_not_there(accepted: Accepted) -> None:
    assert "rfam/tiny" not in accepted.record_ids
    assert accepted.record_ids[:2] == ("rfam/m0.0", "rfam/m0.1")
    assert accepted.set_M.tolist() == [0] * 100 + [1, 1]


def test_pairs_are_those_of_the_files(accepted: Accepted) -> None:
    for m in (0, 50, 100):
        np.testing.assert_array_equal(accepted.pairs(m), structure.parse(BRACKETS))
    assert accepted.has_structure_M.tolist() == [True] * 101 + [False]
    assert accepted.pairs(101).shape == (0, 2)
    assert accepted.pair_N2.dtype == np.int32
    assert accepted.order_N.tolist() == [0] * (101 * 12)


def test_families_types_and_evidence(accepted: Accepted) -> None:
    assert accepted.families == tuple(sorted({str(each.family) for each in HELD}))
    assert accepted.family_M[:6].tolist() == [0, 0, 0, 0, 0, 1]
    assert accepted.family_M[100:].tolist() == [-1, -1]
    assert len(accepted.groups) == 22
    assert accepted.groups[accepted.group_M[100]] == "pdb/1ABC"
    assert accepted.evidences == ("Predicted", "Published")
    assert accepted.evidence_M[[0, 5, 100]].tolist() == [1, 0, -1]
    assert accepted.rna_types == ("type 0", "type 1", "type 2", "type 3")
    assert accepted.simulated
    assert not open_set("pdb").simulated


def test_parts_are_those_of_the_gate(accepted: Accepted) -> None:
    assert accepted.splits == ("as_published", "identity", "transfer-0")
    parts = {part: accepted.part("transfer-0", part, sampled=False) for part in ("pretrain", "train", "test")}
    families = {part: set(accepted.family_M[indices].tolist()) for part, indices in parts.items()}
    assert not families["pretrain"] & families["train"]
    assert not families["pretrain"] & families["test"]
    assert not families["train"] & families["test"]
    assert [len(parts[part]) for part in parts] == [5 * len(families[part]) for part in parts]
    assert accepted.part("as_published", "train").tolist() == [100]
    assert accepted.part("transfer-0", "external").tolist() == [100, 101]


def test_a_family_is_learnt_from_up_to_the_cap(accepted: Accepted) -> None:
    for part in ("pretrain", "train"):
        capped, whole = accepted.part("transfer-0", part), accepted.part("transfer-0", part, sampled=False)
        assert set(capped) < set(whole)
        assert set(np.unique(accepted.family_M[capped], return_counts=True)[1]) == {3}
    tested = accepted.part("transfer-0", "test")
    few = accepted.part("transfer-0", "test", per_family=2)
    assert set(np.unique(accepted.family_M[tested], return_counts=True)[1]) == {5}
    assert set(np.unique(accepted.family_M[few], return_counts=True)[1]) == {2}
    assert set(accepted.part("transfer-0", "test", per_family=1)) < set(few) < set(tested)


def test_nearest_training_molecules_and_clusters(accepted: Accepted) -> None:
    identity_M = accepted.identities("transfer-0")
    assert not np.isfinite(identity_M[accepted.part("transfer-0", "train")]).any()
    assert not (identity_M >= 0.8).any()
    assert not (accepted.identities("transfer-0", "pretrain") >= 0.8).any()
    cluster_M = accepted.clusters()
    for first in range(0, 100, 5):
        assert len(set(cluster_M[first : first + 5])) == 1
    assert len(set(cluster_M.tolist())) == 22


def test_labels_stand_beside_the_structures(accepted: Accepted) -> None:
    labels = accepted.labels()
    assert labels.source == MFE
    # The second of the three labelled molecules is refused.
    assert np.flatnonzero(labels.has_label_M).tolist() == [0, 1]
    assert labels.energy_M[:2].tolist() == [0, -2]
    assert np.isnan(labels.energy_M[2:]).all()
    assert labels.pairs(1).tolist() == [[0, LENGTH - 1]]
    assert labels.pairs(2).shape == (0, 2)
    assert labels.paired_B.shape == accepted.token_B.shape
    np.testing.assert_allclose(labels.paired_B[LENGTH : 2 * LENGTH], np.linspace(0, 1, LENGTH), rtol=1e-6)
    assert np.isnan(labels.paired_B[2 * LENGTH :]).all()


def test_what_is_not_there_is_an_error(accepted: Accepted) -> None:
    with pytest.raises(UsageError, match=r"rfam, pdb have no split transfer-1; they have as_published, identity, tra"):
        accepted.part("transfer-1", "train")
    with pytest.raises(UsageError, match=r"The split as_published of rfam, pdb has no part dev; it has test, train"):
        accepted.part("as_published", "dev")
    with pytest.raises(UsageError, match=r"No molecule of rfam, pdb has labels of contrafold"):
        accepted.labels("contrafold")
    with pytest.raises(UsageError, match=r"The RNA set archive was not ingested"):
        open_set("archive")
    ingested("later", HELD[:4])
    with pytest.raises(UsageError, match=r"The gate has no verdict on 4 of 4 molecules of later"):
        open_set("later")


def test_torn_pairs_are_an_error(accepted: Accepted) -> None:
    file = artifacts.ingested("rna", "rfam") / "molecules.parquet"
    table = artifacts.read_table(file).collect()
    artifacts.write_table(file, table.with_columns(pl.col("pairs_right").list.head(3)))
    with pytest.raises(DataError, match=r"rfam/m0\.0: found lists of pairs of unequal lengths"):
        open_set("rfam")
