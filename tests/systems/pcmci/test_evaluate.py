"""The verb on models of two seeds: the estimates on towers are one, the resamples and twins of both count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.accepted.tower_series import Series
from stages.errors import DataError
from stages.metrics.summary import Summary, read_summary
from stages.runtime import random_numbers
from stages.systems.pcmci import evaluate
from stages.systems.pcmci.estimate import bootstrap_table, methods
from stages.systems.pcmci.train import Train, Twins
from stages.systems.pcmci.twins import twin_tables

TRAIN = Train(
    variables=["P", "SWC", "LE"],
    aggregation="daily",
    months=[6],
    harmonics=0,
    tau_max=2,
    pc_alpha=0.05,
    alpha=0.05,
    min_days=30,
    resamples=10,
    block=5,
    twins=Twins(repeats=2, steps=200),
)


def write_model(seed: int, series: Series) -> None:
    """What ``train`` writes for one tower with the same data in every sample of its years."""
    folder = artifacts.model("pcmci", seed)
    labels = [pl.lit("de-fak").alias("site"), pl.lit("all").alias("sample")]
    links = methods(series.anomalies_TN, series.names, TRAIN).select(*labels, pl.all())
    samples = [links.with_columns(sample=pl.lit(name)) for name in ("all", "train", "test")]
    rows = [
        {"site": "de-fak", "sample": name, "variables": series.names, "left_out": ["H: not measured"], "days": 300}
        for name in ("all", "train", "test")
    ]
    tables = {
        "series": pl.DataFrame(rows),
        "links": pl.concat(samples),
        "bootstrap": bootstrap_table(series, TRAIN, random_numbers(seed, "b")).select(*labels, pl.all()),
        "twins": pl.concat(twin_tables(TRAIN, random_numbers(seed, "t"))),
    }
    for name, table in tables.items():
        artifacts.write_table(folder / f"{name}.parquet", table)
    artifacts.write_json(folder / "config.json", TRAIN.model_dump())


@pytest.fixture
def summary(workspace: Path, capsys: pytest.CaptureFixture[str]) -> Summary:
    rng = np.random.default_rng(0)
    rain = rng.gamma(0.5, 4, 300)
    soil = np.zeros(300)
    for day in range(1, 300):
        soil[day] = 0.7 * soil[day - 1] + rain[day - 1] + rng.normal()
    data_TN = np.column_stack([rain, soil, 0.3 * soil + rng.normal(size=300)])
    series = Series(["P", "SWC", "LE"], data_TN, np.zeros(300, bool), {"H": "not measured"})
    for seed in (0, 1, 7):
        write_model(seed, series)
    settings = evaluate.Evaluate(stable_share=0.8, tolerance=0.02)
    evaluate.run(evaluate.Params(seeds=[0, 1], evaluate=settings), name="pcmci", key="")
    assert "data/models/pcmci/7: not among the seeds [0, 1]" in capsys.readouterr().err
    return read_summary(artifacts.evaluation("pcmci"))


def rows(summary: Summary, title: str) -> list[list[Any]]:
    return next(table.rows for table in summary.tables if table.title == title)


def test_two_seeds_do_not_count_a_link_twice(summary: Summary) -> None:
    links_of_one_graph = 3 + 3 * 2 * 2  # pairs at lag 0, ordered pairs at lags 1 and 2
    for row in rows(summary, "Links found again in held-out years"):
        assert row[2] == links_of_one_graph
        assert row[3] == row[4]  # the same data in both samples of years: every link is found again


def test_the_twins_of_both_seeds_count(summary: Summary) -> None:
    assert (summary.headline.records, summary.headline.seeds, summary.headline.simulated) == (2 * 2, 2, True)


def test_rain_wets_the_soil_in_a_series_made_so(summary: Summary) -> None:
    claim = next(claim for claim in summary.claims if claim.claim.startswith("P → SWC"))
    assert claim.verdict == "shown"
    assert "lag 1" in claim.evidence
    untested = next(claim for claim in summary.claims if claim.claim.startswith("SW_IN → H"))
    assert untested.verdict == "not tested"
    link = next(row for row in rows(summary, "de-fak: links") if row[:3] == ["P", "SWC", 1])
    assert link[3] > 0.7
    assert link[-2:] == [1.0, True]


def test_every_plot_is_there(summary: Summary) -> None:
    folder = artifacts.evaluation("pcmci") / "plots"
    assert sorted(plot.file for plot in summary.plots) == sorted(path.name for path in folder.iterdir())


def test_a_seed_that_was_not_trained_is_named(workspace: Path) -> None:
    settings = evaluate.Evaluate(stable_share=0.8, tolerance=0.02)
    with pytest.raises(DataError, match=r"data/models/pcmci/3/series\.parquet: found no such file"):
        evaluate.run(evaluate.Params(seeds=[3], evaluate=settings), name="pcmci", key="")
