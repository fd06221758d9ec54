"""Train and evaluate on towers made of the bucket model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from stages import artifacts
from stages.errors import DataError
from stages.metrics.summary import Summary, read_summary
from stages.systems.endogenous_context import evaluate, towers, train
from tests.systems.endogenous_context.bucket_towers import TRAIN, bucket_tower, without

NAME = "endogenous_context"
SETTINGS = evaluate.Evaluate(stable_share=0.8)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder in which two towers were trained and evaluated; a third has no soil moisture."""
    folder = tmp_path_factory.mktemp("endogenous")
    made = [
        bucket_tower("de-fak", years=3),
        without(bucket_tower("de-one", years=1, seed=1), "SW_IN"),
        without(bucket_tower("de-two", years=1), "SWC"),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(towers, "towers", lambda aggregation: iter(made))
        patch.setattr("stages.causal.processes.available_cores", lambda: 1)
        for seed in (0, 1):
            train.run(train.Params(train=TRAIN), name=NAME, key=str(seed))
        evaluate.run(evaluate.Params(seeds=[0, 1], evaluate=SETTINGS), name=NAME, key="")
    return folder


@pytest.fixture
def summary(workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Summary:
    monkeypatch.chdir(workplace)
    return read_summary(artifacts.evaluation(NAME))


def rows(summary: Summary, title: str) -> list[list[Any]]:
    return next(table.rows for table in summary.tables if table.title == title)


def test_every_plot_is_there(summary: Summary) -> None:
    folder = artifacts.evaluation(NAME) / "plots"
    assert sorted(plot.file for plot in summary.plots) == sorted(path.name for path in folder.iterdir())
    assert {plot.file for plot in summary.plots if "de-two" in plot.file} == set()


def test_rows_fit_their_columns(summary: Summary) -> None:
    for table in summary.tables:
        assert {len(row) for row in table.rows} <= {len(table.columns)}


def test_a_tower_without_soil_moisture_is_named_and_the_others_go_on(summary: Summary) -> None:
    regimes = rows(summary, "Soil-moisture regimes")
    (refused,) = [row for row in regimes if row[0] == "de-two"]
    assert refused[3] == "no regimes, SWC is not measured"
    assert [row[3] for row in regimes if row[0] == "de-fak"] == ["dry", "wet"]


def test_the_regimes_of_the_training_years_are_halves(summary: Summary) -> None:
    days = {row[3]: row[6] for row in rows(summary, "Soil-moisture regimes") if row[0] == "de-one"}
    assert sum(days.values()) == 153
    assert abs(days["dry"] - days["wet"]) <= 1


def test_physics_says_what_was_not_measured(summary: Summary) -> None:
    verdicts = {(row[0], row[1]): row[4] for row in rows(summary, "Expected physics, by regime")}
    assert verdicts["de-one", "SW_IN → LE (+)"] == "not tested"
    assert verdicts["de-fak", "SWC → H (−)"] == "not tested"
    assert verdicts["de-fak", "P → SWC (+)"] == "shown"


def test_the_twins_of_both_seeds_count(summary: Summary) -> None:
    assert (summary.headline.records, summary.headline.seeds, summary.headline.simulated) == (2 * 2, 2, True)


def test_the_estimates_on_towers_do_not_depend_on_the_seed(summary: Summary) -> None:
    one, two = (artifacts.read_table(artifacts.model(NAME, seed) / "links.parquet").collect() for seed in (0, 1))
    assert one.equals(two)
    links = artifacts.read_table(artifacts.evaluation(NAME) / "links.parquet").collect()
    assert links.height == one.height
    assert links.filter(pl.col("method") == "A")["resamples"].unique().to_list() == [2 * TRAIN.resamples]


def test_short_records_are_resampled_in_blocks(summary: Summary) -> None:
    table = artifacts.read_table(artifacts.model(NAME, 0) / "series.parquet").collect()
    assert dict(table.select("site", "resampled").rows()) == {
        "de-fak": "3 years",
        "de-one": "blocks of 10 days",
        "de-two": None,
    }


def test_a_second_training_gives_equal_bytes(workplace: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On two processes as on one."""
    made = [bucket_tower("de-fak", years=3)]
    monkeypatch.setattr(towers, "towers", lambda aggregation: iter(made))
    hashes = []
    for cores in (1, 2):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("stages.causal.processes.available_cores", lambda cores=cores: cores)
        train.run(train.Params(train=TRAIN), name=NAME, key=str(cores * 0))
        hashes.append(artifacts.sha256_tree(artifacts.model(NAME, 0)))
    assert hashes[0] == hashes[1]


def test_a_seed_that_was_not_trained_is_named(workspace: Path) -> None:
    with pytest.raises(DataError, match=r"data/models/endogenous_context/3/series\.parquet: found no such file"):
        evaluate.run(evaluate.Params(seeds=[3], evaluate=SETTINGS), name=NAME, key="")


def test_no_tower_with_a_graph_is_an_error_that_says_why(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(towers, "towers", lambda aggregation: iter([without(bucket_tower("x", years=1), "SWC")]))
    monkeypatch.setattr("stages.causal.processes.available_cores", lambda: 1)
    with pytest.raises(DataError, match="no regimes, SWC is not measured"):
        train.run(train.Params(train=TRAIN), name=NAME, key="0")


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ({"quantiles": [0.5], "levels": ["dry"]}, "at least 2"),
        ({"quantiles": [0.5, 0.6], "levels": ["dry", "wet"]}, "2 levels for 2 quantiles"),
        ({"quantiles": [0.6, 0.5], "levels": ["dry", "medium", "wet"]}, "the quantiles must rise"),
        ({"quantiles": [0.5], "levels": ["dry", "dry"]}, "the same level stands twice"),
    ],
)
def test_regimes_that_make_no_sense_are_refused(context: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train.Context(**context)
