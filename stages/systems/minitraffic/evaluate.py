"""``evaluate minitraffic``: forecasts of the test part by every arm, comparisons, claims and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from stages import artifacts
from stages.errors import DataError
from stages.metrics.summary import Plot, Summary, Table, write_summary
from stages.params import Config, StageParams, bound
from stages.runtime import progress
from stages.systems.minitraffic.settings import ARMS, DOMAIN, MAIN, Train, arms_of
from stages.trained import read_config

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from stages.systems.minitraffic.comparisons import Comparison, Tested
    from stages.systems.minitraffic.predictions import TestPart
    from stages.systems.minitraffic.problem import Target

CITATIONS = [
    "MiniTraffic: lightweight pre-training for road and lane traffic. International Conference on Machine Learning, "
    "2026 (its code has no licence and was not read; the method here is made from its description, see "
    "docs/systems/minitraffic.md).",
    "Kim, T., Kim, J., Tae, Y., Park, C., Choi, J.-H. and Choo, J.: Reversible instance normalization for accurate "
    "time-series forecasting against distribution shift. International Conference on Learning Representations, 2022.",
    "Nie, Y., Nguyen, N. H., Sinthong, P. and Kalagnanam, J.: A time series is worth 64 words: Long-term forecasting "
    "with transformers. International Conference on Learning Representations, 2023.",
    "van den Oord, A., Li, Y. and Vinyals, O.: Representation learning with contrastive predictive coding. "
    "arXiv:1807.03748, 2018.",
    "Zeng, A., Chen, M., Zhang, L. and Xu, Q.: Are transformers effective for time series forecasting? AAAI Conference "
    "on Artificial Intelligence, 2023.",
]


class Evaluate(Config):
    """How the test part is forecast."""

    windows: int = Field(ge=10, description="test windows of a target at most, spread evenly; fewer if all are fewer")


class Params(StageParams):
    """Params of ``evaluate-minitraffic``."""

    seeds: list[int] = bound("seeds")
    evaluate: Evaluate = bound("systems.minitraffic.evaluate")


def run(params: Params, *, name: str, key: str) -> None:
    """Forecast the test part with every arm, share and seed; write metrics.json, errors, one day's forecasts, plots."""
    from stages.systems.minitraffic import comparisons, costing, tables
    from stages.systems.minitraffic.predictions import open_test_part
    from stages.systems.minitraffic.problem import open_target
    from stages.systems.minitraffic.scores_by_block import ErrorTable

    config = read_config(name, params.seeds)
    train = Train.model_validate({field: value for field, value in config.items() if field != "learnt"})
    learnt, shares = config["learnt"], sorted(train.shares)
    targets = {goal.set: open_target(goal, train) for goal in train.targets}
    check(name, params.seeds[0], targets, learnt)
    parts = {key: open_test_part(target, params.evaluate.windows) for key, target in targets.items()}
    errors, day = forecast(name, params.seeds, train, targets, parts)
    tested = {
        key: describe(target, parts[key], learnt[key], shares, tuple(arms_of(train, target.goal)))
        for key, target in targets.items()
    }
    found = comparisons.Comparison(ErrorTable(errors), tested)
    share = comparisons.headline_share(shares)
    costs = {
        key: costing.costs_of(name, params.seeds, train, target, learnt[key], share) for key, target in targets.items()
    }
    grown = costing.growth(train)
    with artifacts.atomic(artifacts.evaluation(name)) as draft:
        (draft / "plots").mkdir(parents=True)
        plots = draw(draft / "plots", name, params.seeds[0], found, shares, targets, day)
        artifacts.write_table(draft / "errors.parquet", errors)
        artifacts.write_table(draft / "predictions.parquet", day)
        lead = comparisons.leading(tested)
        summary = Summary(
            system=name,
            title="MiniTraffic",
            domain=DOMAIN,
            headline=comparisons.headline(found, share, len(params.seeds)),
            claims=comparisons.claims(found, shares, costs[lead]),
            tables=[
                *(
                    table
                    for key in in_order(tested)
                    for table in target_tables(found, key, shares, targets[key], params)
                ),
                tables.simple_table(found, shares),
                *(tables.cost_table(tested[key], share, costs[key], grown) for key in in_order(tested)),
                tables.choices_table(found, learnt, share),
            ],
            plots=plots,
            figures=comparisons.figures(found, shares, costs),
            citations=CITATIONS,
        )
        write_summary(draft, summary)


def in_order(tested: dict[str, Tested]) -> list[str]:
    """Targets, the one that counts first."""
    from stages.systems.minitraffic.comparisons import leading

    lead = leading(tested)
    return [lead, *(key for key in tested if key != lead)]


def check(name: str, seed: int, targets: dict[str, Target], learnt: dict[str, Any]) -> None:
    """Refuse models whose sensors or training part are not those the gate gives now.

    Raises
    ------
    DataError
        The set changed after training: its test part may have been learnt from.
    """
    for key, target in targets.items():
        there = {
            "sensors": target.accepted.sensors["sensor"].to_list(),
            "parts": {part: list(steps) for part, steps in target.accepted.parts.items()},
        }
        then = {"sensors": learnt[key]["sensor_ids"], "parts": learnt[key]["parts"]}
        for what, value in there.items():
            if value != then[what]:
                raise DataError(
                    artifacts.model(name, seed) / "config.json",
                    record=f"target {key}",
                    found=f"models of other {what}",
                    expected=f"the {what} that the gate gives now",
                    remedy=f"Run `dvc repro evaluate-{name}`, which trains again.",
                )


def forecast(
    name: str, seeds: list[int], train: Train, targets: dict[str, Target], parts: dict[str, TestPart]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Errors of every arm, share and seed, and one day's forecasts of the first seed."""
    import polars as pl

    from stages.systems.minitraffic.comparisons import headline_share
    from stages.systems.minitraffic.forecasts import load, predict
    from stages.systems.minitraffic.predictions import arm_errors, day_forecasts, shown_day

    errors, days = [], []
    shown = headline_share(train.shares)
    for key, target in targets.items():
        part, day = parts[key], shown_day(target)
        fits = [
            (seed, share, arm)
            for seed in seeds
            for share in sorted(train.shares)
            for arm in arms_of(train, target.goal)
        ]
        for seed, share, arm in progress(fits, f"{key}: forecasts", unit="arms"):
            forecaster = load(artifacts.model(name, seed), target, arm, share)
            batches = list(predict(forecaster, target, part="test", stride=part.stride))
            labels = {"target": pl.lit(key), "share": pl.lit(share), "arm": pl.lit(arm), "seed": pl.lit(seed)}
            columns = [value.alias(column) for column, value in labels.items()]
            errors.append(arm_errors(batches, part).select(*columns, pl.all()))
            if seed == seeds[0] and share == shown and arm in DAY_ARMS:
                ahead = tuple(sorted({1, target.horizon}))
                if part.stride > 1:  # every step of the day is drawn
                    batches = list(predict(forecaster, target, part="test"))
                days.append(day_forecasts(batches, day, ahead).select(*columns, pl.all()))
    return pl.concat(errors), pl.concat(days)


#: Arms whose forecasts of one day are kept.
DAY_ARMS = ("last_value", "road_ridge", "scratch", MAIN)


def describe(
    target: Target, part: TestPart, learnt: dict[str, Any], shares: list[float], arms: tuple[str, ...]
) -> Tested:
    """What a target is and how it was tested."""
    import numpy as np

    from stages.systems.minitraffic.comparisons import Tested

    accepted = target.accepted
    start, stop = accepted.part("test")
    day_T = accepted.local().day_T[start:stop]
    there_TS = np.isfinite(target.values_TS[start:stop])
    records = sum(int(there_TS[day_T == day].any(axis=0).sum()) for day in np.unique(day_T))
    sources = zip(learnt["sources"], learnt["source_simulated"], strict=True)
    blocks = {share: learnt["blocks"][f"{share:g}"] for share in shares}
    return Tested(
        key=target.key,
        mode=target.goal.mode,
        unit=accepted.unit,
        simulated=accepted.simulated,
        sensor_ids=tuple(accepted.sensors["sensor"].cast(str).to_list()),
        windows=len(part.start_W),
        stride=part.stride,
        blocks=part.blocks.number,
        block_noun=part.blocks.noun,
        records=records,
        step_minutes=accepted.step_minutes,
        clock=accepted.clock,
        horizon=target.horizon,
        sources=tuple(f"{source}{' (simulated)' if made else ''}" for source, made in sources),
        own_roads=bool(learnt["own_roads"]),
        few={share: (int(block["steps"]), int(block["windows"])) for share, block in blocks.items()},
        arms=arms,
    )


def target_tables(found: Comparison, key: str, shares: list[float], target: Target, params: Params) -> list[Table]:
    """The tables of one target."""
    import numpy as np

    from stages.systems.minitraffic import tables
    from stages.systems.minitraffic.comparisons import headline_share

    share, about = headline_share(shares), found.tested[key]
    start, stop = target.accepted.part("test")
    test_TS = target.values_TS[start:stop]
    there_TS = np.isfinite(test_TS)
    least_S = np.where(there_TS, test_TS, np.inf).min(axis=0)
    constant_S = least_S >= np.where(there_TS, test_TS, -np.inf).max(axis=0)
    made = [tables.methods_table(found, key, share, params.seeds)]
    if len(shares) > 1:
        made.append(tables.share_table(found, key, shares))
    made.append(tables.horizon_table(found, key, share))
    if about.clock:
        made.append(tables.period_table(found, key, share))
    if about.mode == "lane":
        if target.accepted.roads_TR is not None:
            made.append(tables.granularity_table(found, key, share))
        made.append(tables.lane_table(found, key, share, target.accepted.lane_order))
    return [*made, tables.sensor_table(found, key, share, constant_S)]


def draw(
    folder: Path,
    name: str,
    seed: int,
    found: Comparison,
    shares: list[float],
    targets: dict[str, Target],
    day: pl.DataFrame,
) -> list[Plot]:
    """Draw the pictures of every target, the one that counts first."""
    import polars as pl

    from stages.systems.minitraffic import plots
    from stages.systems.minitraffic.comparisons import headline_share, percent

    share, drawn = headline_share(shares), []
    graph = artifacts.read_table(artifacts.model(name, seed) / "graph.parquet").collect()
    for key in in_order(dict(found.tested)):
        about = found.tested[key]
        drawn += space_time(folder, targets[key], about, day.filter(pl.col("target") == key))
        counted = f"95 % bootstrap intervals over {about.counted} and the seeds"
        far = [ARMS[arm] for arm in plots.comparable(found, key, share)[1]]
        left_out = f" Far worse, and left out: {', '.join(far)}." if far else ""
        pictures = [
            ("horizons", plots.draw_horizons, "MAE by step ahead", f"At {percent(share)}; {counted}."),
            ("differences", plots.draw_differences, "MiniTraffic's MAE less that of each arm",
             f"At {percent(share)}, paired; {counted}. Left of the line MiniTraffic is better.{left_out}"),
        ]  # fmt: skip
        if about.clock:
            pictures.append(("periods", plots.draw_periods, "MAE by time of day", f"At {percent(share)}; {counted}."))
        for stem, drawing, title, caption in pictures:
            drawing(folder / f"{stem}_{key}.svg", found, key, share)
            on_page = stem == "differences"
            full = f"{about.title}: {title}"
            drawn.append(Plot(file=f"{stem}_{key}.svg", title=full, caption=caption, on_results_page=on_page))
        if len(shares) > 1:
            plots.draw_shares(folder / f"shares_{key}.svg", found, key, shares)
            drawn.append(
                Plot(
                    file=f"shares_{key}.svg",
                    title=f"{about.title}: few-shot curve",
                    caption=f"MAE by the share of the training steps that was learnt from; {counted}.",
                    on_results_page=True,
                )
            )
        mine = graph.filter((pl.col("target") == key) & (pl.col("share") - share).abs().le(1e-9))
        if mine.height:
            drawn.append(learned_graph(folder, targets[key], about, mine, share))
    return drawn


def space_time(folder: Path, target: Target, about: Tested, day: pl.DataFrame) -> list[Plot]:
    """Truth and forecasts of one day over sensors and time, at the longest lead."""
    import numpy as np
    import polars as pl

    from stages.systems.minitraffic.comparisons import unit_of
    from stages.systems.minitraffic.maps import draw_space_time
    from stages.systems.minitraffic.settings import REFERENCE

    last = day.filter(pl.col("ahead") == day["ahead"].max()).sort("step", "position")
    first, steps = int(last["step"].min()), last["step"].n_unique()  # type: ignore[arg-type]
    arrays = {
        arm: last.filter(pl.col("arm") == arm).select("observed", "forecast").cast(pl.Float32).to_numpy()
        for arm in (REFERENCE, MAIN)
    }
    shape = (steps, target.sensors)
    minute = int(target.accepted.local().minute_T[first]) if about.clock else 0
    draw_space_time(
        folder / f"day_{about.key}.svg",
        arrays[MAIN][:, 0].reshape(shape),
        {arm: values[:, 1].reshape(shape) for arm, values in arrays.items()},
        target.accepted.sensors,
        hours_T=(minute + np.arange(steps) * about.step_minutes) / 60,
        variable=target.accepted.variable,
        unit=unit_of("mae", about),
    )
    date = f" on {np.datetime_as_string(target.accepted.time_T[first], 'D')}" if about.clock else ""
    lead = about.horizon * about.step_minutes
    return [
        Plot(
            file=f"day_{about.key}.svg",
            title=f"{about.title}: a test day{date}",
            caption=f"Observed, and forecast {lead:g} minutes before; first seed. Grey: not measured or quarantined."
            + (
                " Each lane shows the roads in the order of the file from top to bottom."
                if about.mode == "lane"
                else ""
            ),
        )
    ]


def learned_graph(folder: Path, target: Target, about: Tested, graph: pl.DataFrame, share: float) -> Plot:
    """The learned graph of one target."""
    import numpy as np
    import polars as pl

    from stages.systems.minitraffic.comparisons import percent
    from stages.systems.minitraffic.maps import draw_graph

    cluster_S = np.zeros(target.sensors, np.int64)
    cluster_S[graph["position"].to_numpy()] = graph["cluster"].to_numpy()
    edges = graph.filter(pl.col("neighbour_position").is_not_null()).select("position", "neighbour_position").rows()
    draw_graph(folder / f"graph_{about.key}.svg", target.accepted.sensors, cluster_S, edges)
    return Plot(
        file=f"graph_{about.key}.svg",
        title=f"{about.title}: the learned graph",
        caption=f"First seed, at {percent(share)}: clusters by colour, lines to the nearest neighbours inside each "
        f"({len(edges)} edges). Learned from the series alone; the set's own graph is not used.",
    )
