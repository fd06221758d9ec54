"""One prepared series in, its link tables out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from stages.causal.bootstrap import block_bootstrap
from stages.causal.errors import CausalDataError
from stages.causal.links import link_table
from stages.causal.pcmci import lagged_correlation, run_pcmci

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from stages.accepted.tower_series import Series
    from stages.systems.pcmci.train import Train

MAIN = "pcmci_robust"


def estimate(
    series: Series, train: Train, rng: np.random.Generator | None = None
) -> tuple[Series, pl.DataFrame | None, pl.DataFrame | None]:
    """Links of one series and, with ``rng``, their bootstrap.

    Where a test finds too few days on which all it needs was measured, the variable with fewest values is left out,
    with that reason, and the rest is tried again: one short record does not end the run of all towers.

    Returns
    -------
    series, links, bootstrap
        The series as it was used; None where fewer than two variables are left, or no bootstrap was asked for.
    """
    while len(series.names) > 1:
        try:
            links = methods(series.anomalies_TN, series.names, train, series.unused_T)
            return series, links, None if rng is None else bootstrap_table(series, train, rng)
        except CausalDataError as error:
            series = series.without_scarcest(f"with it, {error}")
    return series, None, None


def methods(
    data_TN: ArrayLike, names: Sequence[str], train: Train, mask_T: NDArray[np.bool_] | None = None
) -> pl.DataFrame:
    """Links by PCMCI with both tests, and by plain lagged correlation with the same lags and samples.

    Parameters
    ----------
    data_TN
        A series on a regular clock, NaN where missing, shape (time, variable).
    names
        Names of the variables.
    train
        Lags and levels.
    mask_T
        True where a time may be no target.

    Returns
    -------
    polars.DataFrame
        method, source, target, lag (steps), value, p, q, samples, low, high; a pair at lag 0 stands once.
    """
    search: dict[str, Any] = {"tau_max": train.tau_max, "names": names, "mask_T": mask_T}
    results = {
        MAIN: run_pcmci(data_TN, pc_alpha=train.pc_alpha, test="robust_parcorr", **search),
        "pcmci_parcorr": run_pcmci(data_TN, pc_alpha=train.pc_alpha, test="parcorr", **search),
        "correlation": lagged_correlation(data_TN, test="robust_parcorr", **search),
    }
    return pl.concat(
        link_table(result).select(pl.lit(method).alias("method"), pl.all()) for method, result in results.items()
    )


def bootstrap_table(series: Series, train: Train, rng: np.random.Generator) -> pl.DataFrame:
    """Share of block-bootstrap resamples that find each link, and the percentile interval of its value."""
    result = block_bootstrap(
        series.anomalies_TN,
        tau_max=train.tau_max,
        pc_alpha=train.pc_alpha,
        rng=rng,
        replicates=train.resamples,
        block_length=train.block,
        alpha=train.alpha,
        test="robust_parcorr",
        mask_T=series.unused_T,
        names=series.names,
    )
    i, j, lag = np.nonzero(np.isfinite(result.low_NNL))
    return pl.DataFrame(
        {
            "method": [MAIN] * i.size,
            "source": [series.names[k] for k in i],
            "target": [series.names[k] for k in j],
            "lag": lag,
            "frequency": result.frequency_NNL[i, j, lag],
            "low": result.low_NNL[i, j, lag],
            "high": result.high_NNL[i, j, lag],
        }
    )
