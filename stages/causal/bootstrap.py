"""How stable a causal graph is: moving-block bootstrap of the target times.

Blocks of neighbouring target times are drawn, each with its own untouched past, so no lag window ever joins times that
were not neighbours (Kuensch 1989, Annals of Statistics 17, for the blocks).

Shape suffixes: T time, N variable, L lag, B replicate.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.causal.errors import CausalDataError
from stages.causal.links import link_graph
from stages.causal.pcmci import PCMCIResult, pcmci_on_sample
from stages.causal.ranks import Floats, Integers
from stages.causal.row_sets import RowSets, row_sets
from stages.causal.samples import Test, lagged_sample, resampled

# Target times drawn ahead for all threads together.
_ROWS_AHEAD = 1 << 22


@dataclass(frozen=True)
class BootstrapResult:
    """Frequencies and percentile intervals of all links over the replicates.

    Attributes
    ----------
    frequency_NNL
        Share of the replicates in which the link's p-value was not above alpha.
    low_NNL, high_NNL
        Percentile interval of the partial correlation; NaN where nothing was tested.
    replicates
        Number of replicates.
    redrawn
        Replicates drawn again because a variable was constant in them or a test had too few samples.
    block_length
        Target times per block.
    alpha, level
        Level of the links, and coverage of the intervals.
    """

    frequency_NNL: Floats
    low_NNL: Floats
    high_NNL: Floats
    replicates: int
    redrawn: int
    block_length: int
    alpha: float
    level: float


def default_block_length(samples: int) -> int:
    """Block length that grows with the cube root of the sample, the optimal order for a variance (Kuensch 1989).

    Parameters
    ----------
    samples
        Number of target times.

    Returns
    -------
    int
        ceil(samples^(1/3)).
    """
    # The small step keeps exact cubes from being rounded up.
    return max(1, math.ceil(math.cbrt(samples) - 1e-9))


def draw_block_rows(rng: np.random.Generator, *, first: int, steps: int, block_length: int) -> Integers:
    """Draw as many target times as there are, in blocks of neighbours with uniform starts.

    Parameters
    ----------
    rng
        Source of randomness.
    first, steps
        First target time, and the length of the series.
    block_length
        Target times per block, at most steps - first.

    Returns
    -------
    ndarray
        Target times, first to steps - 1; the last block is cut to length.
    """
    count = steps - first
    if not 1 <= block_length <= count:
        raise ValueError(f"block length {block_length}: expected 1 to {count} target times")
    blocks = -(-count // block_length)
    start_K = rng.integers(first, steps - block_length + 1, size=blocks)
    return (start_K[:, None] + np.arange(block_length)).ravel()[:count]


def block_bootstrap(
    data_TN: ArrayLike,
    *,
    tau_max: int,
    pc_alpha: float,
    rng: np.random.Generator,
    replicates: int = 100,
    block_length: int | None = None,
    alpha: float = 0.05,
    level: float = 0.95,
    test: Test = "parcorr",
    mask_T: ArrayLike | None = None,
    mask_TN: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    candidates_NNL: ArrayLike | None = None,
    max_conds_dim: int | None = None,
    max_conds_py: int | None = None,
    max_conds_px: int | None = None,
    tau_min: int = 0,
    workers: int | None = None,
) -> BootstrapResult:
    """Repeat PCMCI, condition selection included, on moving-block resamples of the target times.

    The result does not depend on the number of threads: target times are drawn in one order, and each replicate's
    result depends on its own only.

    Parameters
    ----------
    data_TN, tau_max, pc_alpha, test, mask_T, mask_TN, names
        As in `stages.causal.pcmci.run_pcmci`.
    rng
        Source of randomness; the same state gives the same result.
    replicates
        Number of resamples.
    block_length
        Target times per block; `default_block_length` of their number by default.
    alpha
        Level at which a replicate counts a link.
    level
        Coverage of the percentile intervals.
    candidates_NNL, max_conds_dim, max_conds_py, max_conds_px, tau_min
        As in `stages.causal.pcmci.run_pcmci`.
    workers
        Number of threads; by default that of the cores this process may use.

    Returns
    -------
    BootstrapResult
        Link frequencies and intervals.

    Raises
    ------
    CausalDataError
        When the series itself, or more resamples than there are replicates, cannot carry the tests.
    """
    if replicates < 1:
        raise ValueError(f"replicates {replicates}: expected 1 or more")
    threads = available_cores() if workers is None else workers
    if threads < 1:
        raise ValueError(f"workers {workers}: expected 1 or more, or None")
    sample = lagged_sample(data_TN, tau_max=tau_max, test=test, mask_T=mask_T, mask_TN=mask_TN, names=names)
    first, steps = 2 * tau_max, sample.moments.x_NT.shape[1]
    length = default_block_length(steps - first) if block_length is None else block_length

    def replicate_all(rows_B: Sequence[Integers]) -> list[PCMCIResult | CausalDataError]:
        # One memory per share of the replicates, because a share is worked off by one thread.
        memory = row_sets(sample.moments, steps)
        return [replicate(rows, memory) for rows in rows_B]

    def replicate(rows: Integers, memory: RowSets) -> PCMCIResult | CausalDataError:
        try:
            return pcmci_on_sample(
                resampled(sample, rows),
                pc_alpha=pc_alpha,
                candidates_NNL=candidates_NNL,
                max_conds_dim=max_conds_dim,
                max_conds_py=max_conds_py,
                max_conds_px=max_conds_px,
                tau_min=tau_min,
                memory=memory,
            )
        except CausalDataError as fault:
            return fault

    results: list[PCMCIResult] = []
    redrawn = 0
    while len(results) < replicates:
        batch = min(replicates - len(results), max(threads, _ROWS_AHEAD // (steps - first)))
        rows_B = [draw_block_rows(rng, first=first, steps=steps, block_length=length) for _ in range(batch)]
        for outcome in _in_threads(replicate_all, rows_B, threads):
            if isinstance(outcome, PCMCIResult):
                results.append(outcome)
                continue
            redrawn += 1
            if redrawn > replicates:
                raise CausalDataError(
                    f"{redrawn} of {redrawn + len(results)} resamples failed, the last with: {outcome}"
                ) from outcome
    value_BNNL = np.stack([r.value_NNL for r in results])
    tail = 0.5 * (1.0 - level)
    bounds = np.quantile(value_BNNL, [tail, 1.0 - tail], axis=0)
    bounds[:, ~results[0].tested_NNL] = np.nan
    frequency_NNL = np.mean([link_graph(r, alpha=alpha) for r in results], axis=0)
    return BootstrapResult(frequency_NNL, bounds[0], bounds[1], replicates, redrawn, length, alpha, level)


def available_cores() -> int:
    """Cores that this process may use, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _in_threads(
    replicate_all: Callable[[Sequence[Integers]], list[PCMCIResult | CausalDataError]],
    rows_B: Sequence[Integers],
    threads: int,
) -> list[PCMCIResult | CausalDataError]:
    """Work off the replicates in equal shares and return the outcomes in the order of the draws."""
    threads = min(threads, len(rows_B))
    if threads == 1:
        return replicate_all(rows_B)
    outcome_B: list[PCMCIResult | CausalDataError] = [CausalDataError()] * len(rows_B)
    with ThreadPoolExecutor(threads) as pool:
        shares = pool.map(replicate_all, [rows_B[share::threads] for share in range(threads)])
        for share, outcomes in enumerate(shares):
            outcome_B[share::threads] = outcomes
    return outcome_B
