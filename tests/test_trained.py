"""Models of every seed as an evaluation reads them."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError
from stages.trained import read_config, read_tables


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two seeds of one system."""
    monkeypatch.chdir(tmp_path)
    for seed, loss in ((3, [1.0, 2.0]), (5, [None, None])):
        with artifacts.atomic(artifacts.model("first", seed)) as draft:
            draft.mkdir()
            artifacts.write_json(draft / "config.json", {"from": seed})
            pl.DataFrame({"loss": loss}).write_parquet(draft / "history.parquet")
    return artifacts.model("first")


def test_tables_are_stacked_by_seed(trained: Path) -> None:
    found = read_tables("first", [3, 5], ["history"])["history"]
    assert found.to_dict(as_series=False) == {"loss": [1.0, 2.0, None, None], "seed": [3, 3, 5, 5]}
    assert found.schema == {"loss": pl.Float64, "seed": pl.Int64}


def test_the_config_is_that_of_the_first_seed(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert read_config("first", [5, 3]) == {"from": 5}
    assert capsys.readouterr().err == ""


def test_a_seed_that_params_does_not_name_is_ignored_and_said(
    trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read_config("first", [3]) == {"from": 3}
    assert "data/models/first/5: not among the seeds [3] of params.yaml, ignored" in capsys.readouterr().err


def test_a_missing_seed_is_named_with_the_command(trained: Path) -> None:
    with pytest.raises(DataError, match=r"first/4/config\.json.*dvc repro evaluate-first.*train first@4"):
        read_config("first", [3, 4])
    with pytest.raises(DataError, match=r"first/4/history\.parquet.*the model of seed 4"):
        read_tables("first", [4], ["history"])
