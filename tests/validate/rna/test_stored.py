from __future__ import annotations

import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError
from stages.validate.rna import stored
from tests.validate.rna.fakes import families, ingested

pytestmark = pytest.mark.usefixtures("workspace")
LISTS = pl.List(pl.Int32)


def pairs(*molecules: list[tuple[int, int]] | None) -> pl.DataFrame:
    sides = [[None if each is None else [pair[side] for pair in each] for each in molecules] for side in (0, 1)]
    return pl.DataFrame(
        {"pairs_left": pl.Series(sides[0], dtype=LISTS), "pairs_right": pl.Series(sides[1], dtype=LISTS)}
    )


def test_pairs_outside_and_bases_with_two_partners() -> None:
    table = pairs(
        [(0, 9), (1, 8)],  # sound
        [(0, 10), (3, 3), (7, 2)],  # one beyond the end, one with itself, one with its ends exchanged
        None,
        [],
        [(0, 9), (0, 8), (1, 9)],  # 0 and 9 have two partners
    )
    found = stored.pair_faults(table, pl.Series([10] * 5))
    assert found["outside_pairs"].to_list() == [0, 3, 0, 0, 0]
    assert found["shared_bases"].to_list() == [0, 1, 0, 0, 2]  # 3 with itself is one base in two places


def test_no_pair_at_all() -> None:
    found = stored.pair_faults(pairs(None, []), pl.Series([5, 5]))
    assert found.rows() == [(0, 0), (0, 0)]


def test_facts_of_sound_molecules() -> None:
    folder = ingested("a", families(2, 2))
    records = artifacts.read_table(folder / "records.parquet").collect()
    found = stored.facts(stored.read(folder, records), records["pairs"])
    assert found.height == 4
    assert found["stored_sha256"].to_list() == records["sha256"].to_list()
    assert found["stored_length"].to_list() == records["length"].to_list()
    for column in ("odd_letters", "torn_pairs", "miscounted_pairs", "outside_pairs", "shared_bases"):
        assert found[column].to_list() == [0] * 4
    assert found["structure"].n_unique() == 1
    assert found["structure"][0].startswith("0,1,2,")


def test_lists_of_unequal_length_are_counted_and_break_nothing() -> None:
    folder = ingested("a", families(1, 3))
    table = artifacts.read_table(folder / "molecules.parquet").collect()
    torn = pl.when(pl.col("record_id") == "a/m0.1").then(pl.col("pairs_right").list.head(10)).otherwise("pairs_right")
    artifacts.write_table(folder / "molecules.parquet", table.with_columns(torn.alias("pairs_right")))
    records = artifacts.read_table(folder / "records.parquet").collect()
    found = stored.facts(stored.read(folder, records), records["pairs"])
    assert found["torn_pairs"].to_list() == [0, 2, 0]
    assert found["outside_pairs"].to_list() == [0, None, 0]


def test_another_table_of_molecules_is_an_error() -> None:
    folder = ingested("a", families(2, 2))
    records = artifacts.read_table(folder / "records.parquet").collect()
    again = r"Run `python -m stages ingest rna@a` again\."
    table = artifacts.read_table(folder / "molecules.parquet").collect()
    artifacts.write_table(folder / "molecules.parquet", table.reverse())
    with pytest.raises(DataError, match=rf"found 4 molecules that are not those of records\.parquet; .* {again}"):
        stored.read(folder, records)
    (folder / "molecules.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=rf"found no readable table \(.*\); expected parquet\. {again}"):
        stored.read(folder, records)
    (folder / "molecules.parquet").unlink()
    with pytest.raises(DataError, match=rf"found no such file; .* {again}"):
        stored.read(folder, records)
