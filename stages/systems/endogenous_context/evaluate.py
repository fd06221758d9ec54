"""``evaluate endogenous_context``: regimes, their graphs and the expected physics, and the twin against its truth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from stages import artifacts
from stages.accepted.series_config import STEPS
from stages.metrics.summary import Plot, Summary, write_summary
from stages.params import Config, StageParams, bound
from stages.runtime import progress, random_numbers
from stages.trained import read_config, read_tables

if TYPE_CHECKING:
    import polars as pl

TABLES = ("series", "regimes", "days", "analyses", "links", "context_links", "bootstrap", "twins", "study")
CITATIONS = [
    "Causal discovery with endogenous, time-dependent contexts. International Conference on Machine Learning, 2026; "
    "predecessor arXiv:2412.04981.",
    "Runge, J.: Discovering contemporaneous and lagged causal relations in autocorrelated nonlinear time series "
    "datasets. Conference on Uncertainty in Artificial Intelligence, PMLR 124, 2020.",
    "Seneviratne, S. I., Corti, T., Davin, E. L. et al.: Investigating soil moisture-climate interactions in a "
    "changing climate: A review. Earth-Science Reviews 99, 125-161, 2010.",
]


class Evaluate(Config):
    """How the graphs are judged."""

    stable_share: float = Field(gt=0, le=1, description="a link is stable when this share of the resamples finds it")


class Params(StageParams):
    """Params of ``evaluate-endogenous_context``."""

    seeds: list[int] = bound("seeds")
    evaluate: Evaluate = bound("systems.endogenous_context.evaluate")


def run(params: Params, *, name: str, key: str) -> None:
    """Read the models of all seeds and write metrics.json, the link table and the plots."""
    import polars as pl

    from stages.systems.endogenous_context import scores, study_tables, tables, twin_tables

    models, config = read_tables(name, params.seeds, TABLES), read_config(name, params.seeds)
    alpha, levels = float(config["alpha"]), list(config["context"]["levels"])
    links = tables.link_table(models["links"], models["bootstrap"], alpha)
    one = {table: frame.filter(pl.col("seed") == params.seeds[0]).drop("seed") for table, frame in models.items()}
    sites = one["analyses"]["site"].unique().sort().to_list()
    judged = tables.judgements(links, sites, levels, alpha)
    shared = scores.shared_links(links.filter(pl.col("method") == tables.MAIN))
    rng = random_numbers(0, name, "rates")
    rates = scores.means(scores.twin_scores(models["twins"]), ["rule", "kind", "level", "method"], scores.RATES, rng)
    switched = scores.switch_scores(models["twins"], levels)
    switches = scores.means(switched, ["rule", "method"], ["dry", "wet", "right"], rng)
    study, level = models["study"], float(config["study"]["alpha"])
    rng = random_numbers(0, name, "study")
    examples = study_tables.example_means(study, rng)
    with artifacts.atomic(artifacts.evaluation(name)) as draft:
        (draft / "plots").mkdir(parents=True)
        plots = draw_towers(draft / "plots", one, links, config)
        plots += draw_summaries(draft / "plots", shared, rates, sites, levels)
        plots.append(draw_study(draft / "plots", examples, level))
        artifacts.write_table(draft / "links.parquet", links)
        summary = Summary(
            system=name,
            title="Endogenous contexts",
            domain="land_atmosphere",
            headline=study_tables.study_headline(study, len(params.seeds), random_numbers(0, name, "headline")),
            claims=[
                *study_tables.study_claims(study, examples, level, rng),
                *twin_tables.claims(switches),
                *tables.tower_claims(judged, sites, levels),
            ],
            tables=[
                tables.physics_table(judged, sites, levels, alpha),
                tables.regimes_table(one["series"], one["regimes"], one["analyses"]),
                tables.assumptions_table(one["series"], one["analyses"], one["context_links"], levels),
                tables.methods_table(links, one["analyses"], levels),
                tables.sites_table(shared, levels),
                *tables.found_links(links, levels, params.evaluate.stable_share),
                *twin_tables.rate_tables(rates, switches),
                *study_tables.study_tables(study, examples, level, rng),
            ],
            plots=plots,
            figures=tables.figures(judged, links, switches, sites, levels)
            | study_tables.study_figures(study, examples),
            citations=CITATIONS,
        )
        write_summary(draft, summary)


def draw_towers(folder: Path, one: dict[str, pl.DataFrame], links: pl.DataFrame, config: dict[str, Any]) -> list[Plot]:
    """Draw each tower: its graphs, lag functions, regimes, and evaporation in them."""
    import polars as pl

    from stages.causal.process_graphs import draw_graphs, draw_lag_functions
    from stages.systems.endogenous_context import plots
    from stages.systems.endogenous_context.tables import MAIN, METHODS

    alpha, step, levels = config["alpha"], STEPS[config["aggregation"]], list(config["context"]["levels"])
    drawn = []
    towers = one["series"].filter(pl.col("failure").is_null()).sort("site")
    for tower in progress(list(towers.iter_rows(named=True)), "plots", unit="towers"):
        site, names, cuts = tower["site"], tower["variables"], (levels, tower["thresholds"], tower["unit"])
        days = one["days"].filter(pl.col("site") == site)
        of_main = links.filter((pl.col("site") == site) & (pl.col("method") == MAIN))
        failed = one["analyses"].filter((pl.col("site") == site) & (pl.col("method") == MAIN))["failure"][0]
        draw_graphs(folder / f"graphs_{site}.svg", names, graph_panels(of_main, levels, failed), step)
        plots.draw_regimes(folder / f"regimes_{site}.svg", days, *cuts)
        plots.draw_evaporation(folder / f"evaporation_{site}.svg", days, *cuts)
        drawn += [
            Plot(
                file=f"graphs_{site}.svg",
                title=f"{site}: causal graph of each regime",
                caption=f"{METHODS[MAIN]}, FDR q ≤ {alpha:g} in the warm season. Bent arrow: lagged links; straight "
                "line: lag 0, with a head where oriented, dashed where conflicting. Node: its own past.",
            ),
            Plot(
                file=f"regimes_{site}.svg",
                title=f"{site}: soil moisture and its regimes",
                caption="Measured soil moisture; days of the season shaded by regime, dashed: the thresholds.",
            ),
            Plot(
                file=f"evaporation_{site}.svg",
                title=f"{site}: evaporation and soil moisture",
                caption="Measured daily means in the season, no anomalies. Line and band: median and quartiles of "
                "twelve classes of equally many days. Where it rises, soil moisture limits evaporation.",
            ),
        ]
        if of_main.height:
            colours = plots.regime_colours(levels)
            draw_lag_functions(folder / f"lags_{site}.svg", names, of_main, step, colours)
            drawn.append(
                Plot(
                    file=f"lags_{site}.svg",
                    title=f"{site}: lag functions by regime",
                    caption=f"{METHODS[MAIN]}. Row causes column. Filled: in the graph with q ≤ {alpha:g}; bars: 95 % "
                    "intervals of the partial correlation.",
                )
            )
    return drawn


def graph_panels(
    links: pl.DataFrame, levels: list[str], failed: str | None
) -> dict[str, tuple[pl.DataFrame, dict[str, float]] | str]:
    """For each regime the links found and the strongest link of each variable with its own past, or the error."""
    import polars as pl

    from stages.systems.endogenous_context.scores import cross_links

    panels: dict[str, tuple[pl.DataFrame, dict[str, float]] | str] = {}
    for level in levels:
        if failed:
            panels[level] = f"no graph: {failed}"
            continue
        found = links.filter((pl.col("level") == level) & pl.col("found"))
        own = found.filter(pl.col("source") == pl.col("target")).sort(pl.col("value").abs())
        samples = links.filter(pl.col("level") == level)["samples"].to_list()
        panels[f"{level}, {min(samples)} to {max(samples)} samples a test"] = (
            cross_links(found),
            dict(own.select("source", "value").rows()),
        )
    return panels


def draw_summaries(
    folder: Path, shared: pl.DataFrame, rates: pl.DataFrame, sites: list[str], levels: list[str]
) -> list[Plot]:
    """Draw which links hold where, and the rates on the twin."""
    from stages.systems.endogenous_context import plots
    from stages.systems.endogenous_context.tables import MAIN, METHODS

    plots.draw_where(folder / "where.svg", shared, levels, sites)
    plots.draw_twin(folder / "twin.svg", rates, METHODS, levels)
    return [
        Plot(
            file="where.svg",
            title="Which links hold where",
            caption=f"{METHODS[MAIN]}. Colour: strongest partial correlation; size: share of the resamples that find "
            "the link; square: no direction; ring: tested and not found; nothing: not measured.",
            on_results_page=True,
        ),
        Plot(
            file="twin.svg",
            title="Rates on the bucket model (simulated)",
            caption="Means over series with 95 % bootstrap intervals; regimes cut at the critical moisture, and at "
            "quantiles as for the towers.",
            on_results_page=True,
        ),
    ]


def draw_study(folder: Path, examples: pl.DataFrame, alpha: float) -> Plot:
    """Draw the false link of the collider example."""
    from stages.systems.endogenous_context.study_tables import draw_examples

    draw_examples(folder / "collider.svg", examples, alpha)
    return Plot(
        file="collider.svg",
        title="False links where the system drives its context (simulated)",
        caption="X → R ← Y without a link between X and Y: share of the graphs of a context that join them, with 95 % "
        "bootstrap intervals over series. Dotted: the level of the tests.",
        on_results_page=True,
    )
