"""Bug cases of land-atmosphere pipelines, from a file as a user has it to what she is told.

The numbers are those of the project's list of cases. Each kind of fault is tested in breadth beside its module.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from stages import artifacts
from stages.__main__ import main
from stages.accepted.land_atmosphere import open_tower
from tests.conftest import ROOT
from tests.ingest.towers import days, half_hours, table, write

SITE = "xx-cas"
VALIDATED = Path("data/validated/land_atmosphere")


def tower(columns: dict[str, Any], format_: Any = "base", text: str | None = None) -> int:
    """Write a tower's file and params.yaml, run ``ingest``, and return the exit code."""
    write(Path("raw/tower.csv"), table(half_hours("2015-06-01T00:00", columns)) if text is None else text)
    params = yaml.safe_load((ROOT / "params.yaml").read_text())
    params["land_atmosphere"]["sites"] = {SITE: {"path": "raw/tower.csv", "format": format_}}
    Path("params.yaml").write_text(yaml.safe_dump(params))
    return main(["ingest", f"land_atmosphere@{SITE}"])


def opened(group: str) -> Any:
    return artifacts.open_dataset(artifacts.ingested("land_atmosphere", SITE) / "data.zarr", group)


def verdict() -> dict[str, Any]:
    return pl.read_parquet(VALIDATED / "verdict.parquet").row(0, named=True)


@pytest.mark.usefixtures("workspace")
class TestCases:
    def test_34_a_sentinel_is_missing_and_a_suspicious_one_is_named(self, capsys: pytest.CaptureFixture[str]) -> None:
        month = days(30)
        month["LE"][:3] = [100, -9999, 120]
        month["H"][::50] = [-99999] * len(month["H"][::50])
        assert tower(month) == 0
        flux = opened("native")["LE"].to_numpy()
        assert np.nanmean(flux[:3]) == 110
        assert np.isnan(flux).sum() == 1
        assert main(["validate", "land_atmosphere"]) == 3
        assert "-99999" in verdict()["reason"]
        assert "Most frequent reasons" in " ".join(capsys.readouterr().err.split())

    def test_39_shortwave_that_peaks_in_the_evening_is_a_question_of_time_zone(self) -> None:
        month = days(30)
        month["SW_IN"] = np.roll(month["SW_IN"], 12).tolist()  # six hours late
        assert tower(month) == 0
        assert main(["validate", "land_atmosphere"]) == 3
        assert "18" in verdict()["reason"]
        assert "time zone" in verdict()["reason"]

    def test_39_columns_are_found_by_name_in_any_order(self) -> None:
        month = days(30)
        assert tower(dict(reversed(list(month.items())))) == 0
        np.testing.assert_allclose(opened("native")["H"], month["H"])
        assert main(["validate", "land_atmosphere"]) == 0

    def test_40_a_day_without_its_night_has_no_mean(self) -> None:
        month = days(30)
        month["LE"][:12] = month["LE"][36:48] = [-9999] * 12
        assert tower(month) == 0
        daily = opened("daily")
        assert np.isnan(daily["LE"][0])
        assert daily["LE_COVERAGE"][0] == 0.5
        assert np.isfinite(daily["LE"][1:]).all()

    def test_42_a_column_of_whole_numbers_may_end_in_fractions_and_null_tokens(self) -> None:
        month = {"TA": [1] * 100 + [1, 2, 2.1, "NA", "", "null"]}
        assert tower(month) == 0
        values = opened("native")["TA"].to_numpy()
        assert values[100:103].tolist() == [1, 2, 2.1]
        assert np.isnan(values[103:]).all()

    def test_38_an_empty_variable_shrinks_no_other_sample(self) -> None:
        month = days(30)
        month["G"] = [-9999] * len(month["G"])
        assert tower(month) == 0
        assert main(["validate", "land_atmosphere"]) == 0
        dataset = open_tower(artifacts.ingested("land_atmosphere", SITE), VALIDATED / "verdict.parquet", "daily")
        assert dataset is not None
        assert np.isfinite(dataset["LE"]).all()
        assert not np.isfinite(dataset["G"]).any()

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "found an empty file"),
            ("TIMESTAMP_START,TIMESTAMP_END,LE\n", "a header without data"),
            ("TIMESTAMP_START,TIMESTAMP_END,LE\n201506010000,201506010030,much\n", "line 2"),
        ],
    )
    def test_57_a_file_without_rows_never_passes(
        self, capsys: pytest.CaptureFixture[str], text: str, message: str
    ) -> None:
        assert tower({}, text=text) == 1
        error = " ".join(capsys.readouterr().err.split())
        assert "raw/tower.csv" in error
        assert message in error
        assert not artifacts.ingested("land_atmosphere", SITE).exists()

    def test_57_an_empty_table_of_records_never_passes(self) -> None:
        assert tower(days(30)) == 0
        records = artifacts.ingested("land_atmosphere", SITE) / "records.parquet"
        pl.read_parquet(records).clear().write_parquet(records)
        assert main(["validate", "land_atmosphere"]) == 3

    def test_60_what_is_undefined_is_null(self) -> None:
        month = days(30)
        month["NETRAD"] = month["G"] = [0] * len(month["G"])  # no energy to balance
        assert tower(month) == 0
        main(["validate", "land_atmosphere"])
        text = (VALIDATED / "summary.json").read_text()
        assert "NaN" not in text
        json.loads(text)

    def test_54_line_endings_are_other_content_and_equal_numbers(self) -> None:
        month = days(30)
        folder = artifacts.ingested("land_atmosphere", SITE)
        assert tower(month) == 0
        text = Path("raw/tower.csv").read_text()
        first = (folder / "manifest.json").read_bytes(), artifacts.sha256_tree(folder / "data.zarr")
        assert tower({}, text=text.replace("\n", "\r\n")) == 0
        second = (folder / "manifest.json").read_bytes(), artifacts.sha256_tree(folder / "data.zarr")
        assert first[0] != second[0]
        assert first[1] == second[1]
