"""Both verbs on a small lane set and a small road set behind a gate that is taken as passed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.accepted.traffic import Accepted
from stages.errors import DataError
from stages.metrics.summary import Summary, read_summary
from stages.report.svg import inline
from stages.systems.minitraffic import evaluate, problem, train
from stages.systems.minitraffic.costing import growth
from stages.systems.minitraffic.scores_by_block import SUMS, value_of
from stages.systems.minitraffic.settings import ARMS, MAIN
from tests.systems.minitraffic.tested import HORIZON, SETTINGS, accepted

FEW = evaluate.Evaluate(windows=50)


def roads() -> Accepted:
    """Road sensors without a clock, and too few days for whole ones in the test part."""
    made = accepted(days=8, clock=False, seed=1)
    nothing = made.sensors.with_columns(pl.lit(None, pl.String).alias("road"), pl.lit(None, pl.Int64).alias("lane"))
    return replace(
        made, key="roads", unit="km/h", sensors=nothing, roads_TR=None, road_ids=(), simulated=False, lane_order=None,
        road_of_sensor_S=np.full(6, -1), parts=made.parts | {"test": (150, 192)},
    )  # fmt: skip


def made_sets() -> dict[str, Accepted]:
    return {"corridor": accepted(), "roads": roads()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A workspace in which two seeds were trained and evaluated."""
    made = made_sets()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("evaluated"))
        patch.setattr(problem, "open_set", lambda key, variable=None: made[key])
        for seed in ("0", "1"):
            train.run(train.Params(train=SETTINGS), name="minitraffic", key=seed)
        artifacts.model("minitraffic", 7).mkdir()
        evaluate.run(evaluate.Params(seeds=[0, 1], evaluate=FEW), name="minitraffic", key="")
        yield artifacts.evaluation("minitraffic").resolve()


@pytest.fixture
def summary(folder: Path) -> Summary:
    return read_summary(folder)


@pytest.fixture
def sets(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Accepted]:
    made = made_sets()
    monkeypatch.setattr(problem, "open_set", lambda key, variable=None: made[key])
    return made


def rows(summary: Summary, title: str) -> list[list[Any]]:
    return next(table.rows for table in summary.tables if table.title.startswith(title))


def test_metrics_say_what_was_measured_on_what_and_all_of_it_is_there(summary: Summary, folder: Path) -> None:
    said = summary.headline
    assert "lanes of corridor" in said.metric  # the lane target counts, though the road target stands first
    assert (said.unit, said.split_unit, said.seeds, said.simulated) == ("mph", "time", 2, True)
    assert (said.groups, said.records) == (3, 24)  # forecasts of three days, contexts of four; six lanes each

    titles = [table.title for table in summary.tables]
    for name in ("arms at 20 %", "few-shot curve", "errors by step ahead", "MAE by sensor"):
        for target in ("corridor (simulated)", "roads"):
            assert any(title.startswith(f"{target}: {name}") for title in titles), (target, name)
    for name in ("errors by time of day", "errors of lanes and of roads", "errors by lane"):
        assert [title for title in titles if name in title] == [f"corridor (simulated): {name}"]
    assert "Where a simple baseline wins" in titles

    table = artifacts.read_table(folder / "errors.parquet").collect()
    mine = table.filter(
        (pl.col("target") == "corridor") & (pl.col("share") == 0.2) & (pl.col("arm") == MAIN)
        & (pl.col("by") == "horizon") & (pl.col("granularity") == "lane")
    )  # fmt: skip
    assert said.value == pytest.approx(float(value_of(mine.select(SUMS).sum().to_numpy()[0], "mae")), rel=1e-5)

    assert sorted(plot.file for plot in summary.plots) == sorted(path.name for path in (folder / "plots").iterdir())
    stems = {plot.file.rpartition("_")[0] for plot in summary.plots if plot.file.endswith("_corridor.svg")}
    assert stems == {"day", "horizons", "differences", "periods", "shares", "graph"}
    for plot in summary.plots:
        assert inline(folder / "plots" / plot.file, prefix="p", label=plot.title, system="minitraffic").width > 0

    claims = {claim.claim: claim.verdict for claim in summary.claims}
    assert all(verdict in ("shown", "not shown", "not tested") for verdict in claims.values())
    for start in (
        "Pre-trained and fine-tuned",
        "FDA",
        "Clustering",
        "Pre-training on roads",
        "It has far fewer",
        "No ",
    ):
        assert any(claim.startswith(start) for claim in claims), start

    mae = summary.figures["mae"]["corridor"]["20_percent"]
    assert set(mae) == set(ARMS)
    assert summary.figures["forward_flops"]["corridor"]["last_value"] == 0
    assert summary.figures["forward_flops"]["corridor"]["ridge"] == 2 * (6 - 1 + 1) * HORIZON * 6
    assert summary.figures["parameters"]["corridor"][MAIN] == summary.figures["parameters"]["roads"][MAIN]
    costs = {row[0]: row for row in rows(summary, "corridor (simulated): parameters")}
    assert costs[ARMS[MAIN]][5] > costs[ARMS["scratch"]][5] == 0
    assert costs[ARMS["zero_shot"]][4] == 0


def test_one_day_is_kept_as_it_was_forecast_and_the_last_value_is_the_last_value(folder: Path) -> None:
    day = artifacts.read_table(folder / "predictions.parquet").collect()
    assert set(day["ahead"]) == {1, HORIZON}
    assert day["seed"].unique().to_list() == [0]
    mine = day.filter((pl.col("target") == "corridor") & (pl.col("arm") == "last_value") & (pl.col("ahead") == HORIZON))
    values_TS = made_sets()["corridor"].values_TS
    before = values_TS[mine["step"].to_numpy() - HORIZON, mine["position"].to_numpy()]
    known = np.isfinite(before)
    assert mine["forecast"].to_numpy()[known] == pytest.approx(before[known], abs=1e-5)
    assert not any(math.isnan(value) for value in day["forecast"])


def test_models_of_other_sensors_or_another_split_are_refused(
    sets: dict[str, Accepted], capsys: pytest.CaptureFixture[str]
) -> None:
    few = SETTINGS.model_copy(update={"arms": ["last_value", MAIN], "shares": [0.2]})
    train.run(train.Params(train=few), name="minitraffic", key="0")
    artifacts.model("minitraffic", 7).mkdir()
    sets["corridor"] = replace(sets["corridor"], parts=sets["corridor"].parts | {"test": (120, 192)})
    with pytest.raises(
        DataError, match="target corridor: found models of other parts; expected the parts that the gate"
    ):
        evaluate.run(evaluate.Params(seeds=[0], evaluate=FEW), name="minitraffic", key="")
    assert "data/models/minitraffic/7: not among the seeds [0] of params.yaml, ignored" in capsys.readouterr().err
    with pytest.raises(DataError, match=r"data/models/minitraffic/3/config\.json: found no such file"):
        evaluate.run(evaluate.Params(seeds=[3], evaluate=FEW), name="minitraffic", key="")


def test_the_forward_cost_grows_as_the_number_of_sensors() -> None:
    told = growth(SETTINGS)
    assert "to the power 1.00" in told
    assert "for 4000 sensors, 2 neighbours each" in told


def test_equal_models_give_equal_bytes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = artifacts.sha256_tree(folder)
    evaluate.run(evaluate.Params(seeds=[0, 1], evaluate=FEW), name="minitraffic", key="")
    assert "ignored" in capsys.readouterr().err
    assert artifacts.sha256_tree(folder) == before
