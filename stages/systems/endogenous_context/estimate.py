"""One series and its regimes in, the graph of each regime out, by five methods, with a bootstrap over years.

Shape suffixes: T time, N variable, L lag 0 to tau_max, M level, B resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.accepted.tower_series import Series
from stages.causal.bootstrap import draw_block_rows
from stages.causal.errors import CausalDataError
from stages.causal.links import counted_links, link_table
from stages.causal.pcmci_plus import PCMCIPlusResult
from stages.runtime import random_numbers
from stages.systems.endogenous_context.adaptive import Algorithm, ContextResult, discover
from stages.systems.endogenous_context.context_links import ContextLink

if TYPE_CHECKING:
    from stages.systems.endogenous_context.train import Search

METHODS: tuple[Algorithm, ...] = get_args(Algorithm)
CONTEXT_NAME = "R"
#: Years below which days are resampled in blocks: two years have three different resamples.
FEWEST_YEARS = 3
#: Draws for one resample before it counts as failed.
ATTEMPTS = 3


@dataclass(frozen=True)
class Case:
    """A prepared series with the regime of each of its days.

    Attributes
    ----------
    site
        The tower, or the twin.
    series
        Anomalies and season.
    level_T
        Level of each time, -1 where it is not known.
    levels
        Names of the levels.
    year_T
        Calendar year of each time.
    defined_by
        The variable whose thresholds the levels are.
    """

    site: str
    series: Series
    level_T: NDArray[np.int64]
    levels: tuple[str, ...]
    year_T: NDArray[np.int64]
    defined_by: str = "SWC"

    def without_scarcest(self, why: str) -> Case:
        """The case without the variable with fewest values, other than the one that defines the regimes."""
        return replace(self, series=self.series.without_scarcest(why, keep=self.defined_by))


class Estimate(NamedTuple):
    """What one method says of one case; links is None where it failed.

    Attributes
    ----------
    links
        level, source, target, lag (steps), value, p, q, samples, low, high, mark; a pair at lag 0 stands once.
    samples
        Days of each level that the method can use.
    kept
        Share of the days of each level with that level over the whole lag window.
    adjacent
        Variables found adjacent to the context.
    context_links
        Links found at the context, where the method asks.
    failure
        Why there is no graph.
    """

    links: pl.DataFrame | None
    samples: dict[str, int]
    kept: dict[str, float]
    adjacent: list[str]
    context_links: list[ContextLink]
    failure: str | None


def search(case: Case, method: Algorithm, settings: Search, rows: NDArray[np.int64] | None = None) -> ContextResult:
    """Find the graph of each regime by one method, on all targets of the season or on a resample of them.

    Raises
    ------
    CausalDataError
        A context leaves a link too few samples, or a variable does not vary in it; the message names both.
    """
    return discover(
        case.series.anomalies_TN,
        case.level_T,
        algorithm=method,
        tau_max=settings.tau_max,
        pc_alpha=settings.pc_alpha,
        test="robust_parcorr",
        names=case.series.names,
        mask_T=case.series.unused_T,
        rows=rows,
        defined_by=case.defined_by,
        context_name=CONTEXT_NAME,
        levels=case.levels,
        min_samples=settings.min_samples,
    )


def usable_case(case: Case, settings: Search) -> Case:
    """The case with the variables that a pooled graph can be estimated on.

    Where a test finds too few days on which all it needs was measured, the variable with fewest values is left out,
    with that reason. The regimes then work with the same variables; where one leaves too few days, its method says so.
    """
    while len(case.series.names) > 1:
        try:
            search(case, "pooled", settings)
            return case
        except CausalDataError as error:
            case = case.without_scarcest(f"with it, {error}")
    return case


def estimate(case: Case, method: Algorithm, settings: Search) -> Estimate:
    """Links of each regime by one method; an error of the data is said, not raised."""
    try:
        result = search(case, method, settings)
    except CausalDataError as error:
        return Estimate(None, {}, {}, [], [], str(error))
    links = pl.concat(
        marked_links(graph).select(pl.lit(level).alias("level"), pl.all()) for level, graph in result.graphs.items()
    )
    at_context = result.context_links
    if at_context is None:
        return Estimate(links, result.samples, result.kept, [], [], None)
    adjacent = [result.pooled.names[variable] for variable in sorted(at_context.adjacent)]
    return Estimate(links, result.samples, result.kept, adjacent, list(at_context.links), None)


def marked_links(graph: PCMCIPlusResult) -> pl.DataFrame:
    """The link table of a graph with the mark of each edge: ``-->``, ``<--``, ``o-o``, ``x-x``, empty without edge."""
    i, j, lag = np.nonzero(counted_links(graph))
    table = link_table(graph).select("source", "target", "lag", "value", "p", "q", "samples", "low", "high")
    return table.with_columns(mark=pl.Series([str(mark) for mark in graph.graph_NNL[i, j, lag]], dtype=pl.String))


def draw_rows(
    target_T: NDArray[np.bool_], year_T: NDArray[np.int64], rng: np.random.Generator, *, first: int, block: int
) -> NDArray[np.int64]:
    """Draw target times: whole years with replacement; in a short record, blocks of neighbouring days.

    Parameters
    ----------
    target_T
        True where a time may be a target.
    year_T
        Calendar year of each time.
    rng
        Source of randomness.
    first
        First time whose lags lie in the series.
    block
        Days of a block, where there are fewer than `FEWEST_YEARS` years.

    Returns
    -------
    ndarray
        Times of the targets, each with its own untouched past.
    """
    usable = np.flatnonzero(target_T)
    usable = usable[usable >= first]
    years = np.unique(year_T[usable])
    if years.size >= FEWEST_YEARS:
        return np.concatenate([usable[year_T[usable] == year] for year in rng.choice(years, years.size)])
    return usable[draw_block_rows(rng, first=0, steps=usable.size, block_length=min(block, usable.size))]


def target_times(case: Case) -> NDArray[np.bool_]:
    """Times of the season that hold a value."""
    return ~case.series.unused_T & np.isfinite(case.series.anomalies_TN).any(axis=1)


def resampling(case: Case, block: int) -> str:
    """What is resampled, in words."""
    years = np.unique(case.year_T[target_times(case)]).size
    return f"{years} years" if years >= FEWEST_YEARS else f"blocks of {block} days"


class Resamples(NamedTuple):
    """Results of some resamples, stacked; a failed one is left out.

    Attributes
    ----------
    value_BMNNL
        Partial correlations.
    mark_BMNNL
        Marks of the edges.
    failed
        Resamples that no draw could carry.
    """

    value_BMNNL: NDArray[np.float64]
    mark_BMNNL: NDArray[np.str_]
    failed: int


class Attempt(NamedTuple):
    """A task: one case by one method."""

    case: Case
    method: Algorithm
    settings: Search

    def run(self) -> Estimate:
        """Links of each regime."""
        return estimate(*self)


class Draws(NamedTuple):
    """A task: some resamples of one case by one method; number b of a seed is the same whoever draws it."""

    case: Case
    method: Algorithm
    settings: Search
    seed: int
    numbers: range
    block: int

    def run(self) -> Resamples:
        """Search on each of the resamples."""
        drawn = [self.draw(number) for number in self.numbers]
        graphs = [of_levels for of_levels in drawn if of_levels is not None]
        n, levels = len(self.case.series.names), self.case.levels
        shape = (0, len(levels), n, n, self.settings.tau_max + 1)
        values = [[of_levels[level].value_NNL for level in levels] for of_levels in graphs]
        marks = [[of_levels[level].graph_NNL for level in levels] for of_levels in graphs]
        return Resamples(
            np.array(values) if graphs else np.empty(shape),
            np.array(marks, "<U3") if graphs else np.empty(shape, "<U3"),
            len(drawn) - len(graphs),
        )

    def draw(self, number: int) -> dict[str, PCMCIPlusResult] | None:
        """Graphs of one resample; None where no draw can carry the search."""
        rng = random_numbers(self.seed, "bootstrap", self.case.site, str(number))
        for _ in range(ATTEMPTS):
            rows = draw_rows(
                target_times(self.case), self.case.year_T, rng, first=2 * self.settings.tau_max, block=self.block
            )
            try:
                return search(self.case, self.method, self.settings, rows).graphs
            except CausalDataError:
                continue
        return None


def stability(case: Case, parts: Sequence[Resamples], level: float = 0.95) -> pl.DataFrame | None:
    """How many resamples find each link, with which mark, and the percentile interval of its value.

    Returns
    -------
    polars.DataFrame or None
        level, source, target, lag, frequency, forward and backward (shares with ``-->`` and ``<--``), low, high,
        resamples, failed; a pair at lag 0 stands once. None where every resample failed.
    """
    value_BMNNL = np.concatenate([part.value_BMNNL for part in parts])
    mark_BMNNL = np.concatenate([part.mark_BMNNL for part in parts])
    failed = sum(part.failed for part in parts)
    if not len(value_BMNNL):
        return None
    tail = 0.5 * (1.0 - level)
    low_MNNL, high_MNNL = np.quantile(value_BMNNL, [tail, 1.0 - tail], axis=0)
    shares = {
        "frequency": (mark_BMNNL != "").mean(axis=0),
        "forward": (mark_BMNNL == "-->").mean(axis=0),
        "backward": (mark_BMNNL == "<--").mean(axis=0),
        "low": low_MNNL,
        "high": high_MNNL,
    }
    number_M, i, j, lag = np.indices(low_MNNL.shape).reshape(4, -1)
    once = (lag > 0) | (i < j)
    at = (number_M[once], i[once], j[once], lag[once])
    names = np.array(case.series.names)
    return pl.DataFrame(
        {
            "level": np.array(case.levels)[at[0]],
            "source": names[at[1]],
            "target": names[at[2]],
            "lag": at[3],
            **{name: share[at] for name, share in shares.items()},
        }
    ).with_columns(resamples=pl.lit(len(value_BMNNL)), failed=pl.lit(failed))
