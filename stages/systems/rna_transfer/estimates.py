"""Estimates with 95 % intervals: over test families and seeds, and over seeds alone.

Molecules of one family are alike, so that families are resampled and not molecules; a molecule without a family counts
as one. Seeds are resampled beside them. The score of a resample is the mean over its seeds of the score of each seed.

Shape suffixes: G seed, K family, C sum, R resample, N answered molecule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.metrics.intervals import RESAMPLES
from stages.metrics.summary import Verdict
from stages.runtime import random_numbers
from stages.systems.rna_transfer.scored import Floats, value_of

LEVEL = 0.95


class Interval(NamedTuple):
    """An estimate and its interval; low and high are NaN where there is none."""

    value: float
    low: float
    high: float


NOTHING = Interval(math.nan, math.nan, math.nan)


class Cells(NamedTuple):
    """Sums of one arm in one task.

    Attributes
    ----------
    sums_NC
        A row an answered molecule and seed.
    seed_N, group_N
        Seed and family of each row.
    """

    sums_NC: Floats
    seed_N: NDArray[np.int64]
    group_N: NDArray[np.str_]


class Term(NamedTuple):
    """A score times a weight: one part of a difference."""

    weight: float
    cells: Cells
    score: str


def contrast(terms: Sequence[Term], *, level: float = LEVEL) -> Interval:
    """A weighted sum of scores with its percentile bootstrap interval; all terms have the same resamples.

    Parameters
    ----------
    terms
        One term for an estimate; weights 1 and -1 for a paired difference.
    level
        Probability that the interval holds.
    """
    seeds = np.unique(np.concatenate([term.cells.seed_N for term in terms]))
    groups = np.unique(np.concatenate([term.cells.group_N for term in terms]))
    value = point(terms)
    if len(groups) < 2 or not math.isfinite(value):
        return Interval(value, math.nan, math.nan)
    times_RG, times_RK = resamples(len(seeds), len(groups))
    drawn_R = np.zeros(len(times_RG))
    for weight, cells, score in terms:
        sums_GKC = _by_seed_and_group(cells, seeds, groups)
        totals_RGC = np.einsum("rk,gkc->rgc", times_RK, sums_GKC, optimize=True)
        drawn_R = drawn_R + weight * _over_seeds(value_of(totals_RGC, score), times_RG)
    drawn_R = drawn_R[np.isfinite(drawn_R)]
    if not drawn_R.size:
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(drawn_R, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def point(terms: Sequence[Term]) -> float:
    """A weighted sum of scores; NaN where one is not defined."""
    total = 0.0
    for weight, cells, score in terms:
        seeds = np.unique(cells.seed_N)
        sums_GC = np.array([cells.sums_NC[cells.seed_N == seed].sum(axis=0) for seed in seeds])
        if not len(seeds):
            return math.nan
        total += weight * float(_over_seeds(value_of(sums_GC, score), np.ones(len(seeds))))
    return total


@lru_cache(maxsize=64)
def resamples(seeds: int, groups: int) -> tuple[Floats, Floats]:
    """How many times each seed and each family is drawn, shapes (R, G) and (R, K)."""
    rng = random_numbers(0, "rna_transfer")
    drawn = [rng.multinomial(size, np.full(size, 1 / size), RESAMPLES).astype(np.float64) for size in (seeds, groups)]
    return drawn[0], drawn[1]


def _by_seed_and_group(cells: Cells, seeds: NDArray[np.int64], groups: NDArray[np.str_]) -> Floats:
    sums_GKC = np.zeros((len(seeds), len(groups), cells.sums_NC.shape[1]))
    places = np.searchsorted(seeds, cells.seed_N), np.searchsorted(groups, cells.group_N)
    np.add.at(sums_GKC, places, cells.sums_NC)
    return sums_GKC


def _over_seeds(value_G: Floats, times_G: Floats) -> Floats:
    """Mean over seeds, those without a score left out; NaN where all are."""
    times_G = np.where(np.isfinite(value_G), times_G, 0.0)
    total = times_G.sum(axis=-1)
    with np.errstate(invalid="ignore"):
        mean: Floats = np.where(total > 0, (times_G * np.nan_to_num(value_G)).sum(axis=-1) / total, math.nan)
    return mean


def over_seeds(values: Sequence[float], *, level: float = LEVEL) -> Interval:
    """Mean over seeds with Student's interval: what is one number a seed is too few for a bootstrap."""
    known = np.array([value for value in values if math.isfinite(value)])
    if not known.size:
        return NOTHING
    mean = float(known.mean())
    if known.size < 2:
        return Interval(mean, math.nan, math.nan)
    from scipy.stats import t

    half = float(t.ppf((1 + level) / 2, known.size - 1)) * float(known.std(ddof=1)) / math.sqrt(known.size)
    return Interval(mean, mean - half, mean + half)


def ratio_over_seeds(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Geometric mean over seeds of value / other, with Student's interval of the logarithms.

    Seeds where one of the two is not positive are left out.
    """
    logs = [math.log(a / b) for a, b in zip(values, others, strict=True) if a > 0 and b > 0]
    found = over_seeds(logs)
    return Interval(*(math.exp(bound) if math.isfinite(bound) else math.nan for bound in found))


def judged(difference: Interval) -> Verdict:
    """Shown where the whole interval lies above zero; not tested where there is none."""
    if not math.isfinite(difference.low):
        return "not tested"
    return "shown" if difference.low > 0 else "not shown"


def amount(found: Interval, sign: str = "") -> str:
    """An estimate with its interval in words; ``sign`` is + for differences."""
    if not math.isfinite(found.value):
        return "none"
    if math.isnan(found.low):
        return f"{found.value:{sign}.3g} (no interval)"
    return f"{found.value:{sign}.3g} [{found.low:{sign}.3g}, {found.high:{sign}.3g}]"
