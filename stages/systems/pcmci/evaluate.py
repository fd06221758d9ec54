"""``evaluate pcmci``: known graphs, links with their stability, replication in held-out years, expected physics."""

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

TABLES = ("series", "links", "bootstrap", "twins")

CITATIONS = [
    "Runge, J., Nowack, P., Kretschmer, M., Flaxman, S. and Sejdinovic, D.: Detecting and quantifying causal "
    "associations in large nonlinear time series datasets. Science Advances 5, eaau4996, 2019.",
    "Krich, C., Runge, J., Miralles, D. G. et al.: Estimating causal networks in biosphere-atmosphere interaction with "
    "the PCMCI approach. Biogeosciences 17, 1033-1061, 2020.",
]


class Evaluate(Config):
    """How the graphs are judged."""

    stable_share: float = Field(gt=0, le=1, description="a link is stable when this share of the resamples finds it")
    tolerance: float = Field(ge=0, lt=1, description="false-positive rate above alpha that still counts as controlled")


class Params(StageParams):
    """Params of ``evaluate-pcmci``."""

    seeds: list[int] = bound("seeds")
    evaluate: Evaluate = bound("systems.pcmci.evaluate")


def run(params: Params, *, name: str, key: str) -> None:
    """Read the models of all seeds and write metrics.json, the link table and the plots."""
    import polars as pl

    from stages.systems.pcmci import tables
    from stages.systems.pcmci.scores import replication, twin_scores

    models, config = read_tables(name, params.seeds, TABLES), read_config(name, params.seeds)
    alpha = float(config["alpha"])
    links = tables.link_table(models["links"], models["bootstrap"])
    scores = twin_scores(models["twins"], alpha)
    rates = tables.rates(scores, random_numbers(0, name, "rates"))
    again = replication(links, alpha)
    main_links = links.filter((pl.col("sample") == "all") & (pl.col("method") == tables.MAIN))
    with artifacts.atomic(artifacts.evaluation(name)) as draft:
        (draft / "plots").mkdir(parents=True)
        plots = draw(draft / "plots", main_links, rates, config)
        artifacts.write_table(draft / "links.parquet", links)
        summary = Summary(
            system=name,
            title="PCMCI",
            domain="land_atmosphere",
            headline=tables.headline(scores, len(params.seeds), random_numbers(0, name, "headline")),
            claims=tables.claims(rates, main_links, models["series"], alpha, params.evaluate.tolerance),
            tables=[
                tables.series_table(models["series"], main_links, alpha),
                tables.physics_table(main_links, models["series"], alpha),
                *tables.found_links(main_links, alpha, params.evaluate.stable_share),
                tables.replication_table(again),
                tables.known_graphs_table(rates, alpha),
            ],
            plots=plots,
            figures=tables.figures(rates, main_links, again, alpha),
            citations=CITATIONS,
        )
        write_summary(draft, summary)


def draw(folder: Path, links: pl.DataFrame, rates: pl.DataFrame, config: dict[str, Any]) -> list[Plot]:
    """Draw a graph and the lag functions of each tower, and the rates on known graphs."""
    import polars as pl

    from stages.causal.process_graphs import draw_graph, draw_lag_functions
    from stages.systems.pcmci.plots import draw_known_graphs
    from stages.systems.pcmci.scores import cross_links

    alpha, step, variables = config["alpha"], STEPS[config["aggregation"]], config["variables"]
    drawn = []
    for site in progress(sorted(links["site"].unique()), "plots", unit="towers"):
        of_site = links.filter(pl.col("site") == site)
        names = [name for name in variables if name in set(of_site["source"])]
        tested = of_site.with_columns(found=pl.col("q") <= alpha)
        found = tested.filter("found")
        own = found.filter(pl.col("source") == pl.col("target")).sort(pl.col("value").abs())
        auto = dict(own.select("source", "value").rows())
        draw_graph(folder / f"graph_{site}.svg", names, cross_links(found), auto, step)
        draw_lag_functions(folder / f"lags_{site}.svg", names, tested, step)
        drawn += [
            Plot(
                file=f"graph_{site}.svg",
                title=f"{site}: causal graph",
                caption=f"Links with FDR q ≤ {alpha:g} in the warm season, RobustParCorr. Arrow: lagged "
                "links, coloured by the strongest; plain line: lag 0, no direction. Node: its own past.",
            ),
            Plot(
                file=f"lags_{site}.svg",
                title=f"{site}: lag functions",
                caption=f"Row causes column. Filled: q ≤ {alpha:g}; bars: 95 % intervals of the partial correlation.",
            ),
        ]
    draw_known_graphs(folder / "known_graphs.svg", rates, alpha)
    drawn.append(
        Plot(
            file="known_graphs.svg",
            title="Series with a known graph (simulated)",
            caption="Mean rates over series with 95 % bootstrap intervals, links to the own past left out.",
        )
    )
    return drawn
