"""Several series of the same variables, such as the sites of a network, as one sample.

The series stand one after the other, and a target time belongs to the sample only where its whole window of lags lies
in its own series. Means that differ between sites look like links between the variables; with dummies, every test also
conditions on the site. In complete linear samples that is centring within sites, at the cost of one degree of freedom
for every site but the first.

Without dummies the numbers are those of tigramite's analysis of multiple datasets.

Shape suffixes: T time (of all series, one after the other), N variable, S site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from stages.causal.covariance import Booleans
from stages.causal.errors import CausalDataError, ConstantVariable
from stages.causal.independence import Cell, IndependenceTest
from stages.causal.partial_correlation import TestResult
from stages.causal.ranks import Floats, Integers
from stages.causal.sample_test import SampleTest
from stages.causal.samples import LaggedSample, Test, lagged_sample


@dataclass(frozen=True)
class PooledSeries:
    """Series one after the other, for any function that takes data_TN and rows.

    Attributes
    ----------
    sites
        Names of the series.
    names
        Names of the variables.
    data_TN
        All series.
    site_T
        Place of each time's site in ``sites``.
    rows
        Target times with their whole window in one series, not masked.
    """

    sites: tuple[str, ...]
    names: tuple[str, ...]
    data_TN: Floats
    site_T: Integers
    rows: Integers


class GivenCells:
    """A test that always conditions on some cells, and does not show the last variables.

    Parameters
    ----------
    base
        The test.
    given
        Cells that every test is conditioned on.
    hidden
        Number of variables, the last ones, that are no variables of the search.
    """

    def __init__(self, base: IndependenceTest, given: Sequence[Cell], *, hidden: int) -> None:
        self.base, self.given = base, tuple(given)
        self.names, self.tau_max = base.names[: len(base.names) - hidden], base.tau_max

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell] = ()) -> TestResult:
        """Test x against y given the conditions and the cells that are always given.

        Parameters
        ----------
        x, y, conditions
            Different cells.

        Returns
        -------
        TestResult
            The result; its degrees of freedom count the cells that are always given.
        """
        return self.base.measure(x, y, [*conditions, *self.given])


def pooled_series(
    series: Mapping[str, ArrayLike] | Sequence[ArrayLike],
    *,
    tau_max: int,
    masks: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    names: Sequence[str] | None = None,
) -> PooledSeries:
    """Put series one after the other.

    Parameters
    ----------
    series
        data_TN of each site, the same variables in all; sites of a sequence are called 0, 1, ...
    tau_max
        Largest lag of a link; windows reach back 2 tau_max steps.
    masks
        mask_T of each site, True = this target time is not used.
    names
        Names of the variables.

    Returns
    -------
    PooledSeries
        The series and their target times.

    Raises
    ------
    CausalDataError
        When a site has no target time; the message names it.
    """
    by_site = _by_site(series)
    masks_by_site = {} if masks is None else _by_site(masks)
    if not by_site or not set(masks_by_site) <= set(by_site):
        raise ValueError(
            f"masks of {list(masks_by_site)}, series of {list(by_site)}: expected masks of these sites only"
        )
    parts: list[Floats] = []
    rows: list[Integers] = []
    start = 0
    for site, values in by_site.items():
        data_TN = np.asarray(values, dtype=np.float64)
        if data_TN.ndim != 2 or (parts and data_TN.shape[1] != parts[0].shape[1]):
            raise ValueError(f"site {site}: data of shape {data_TN.shape}; expected (time, variable), as in all sites")
        unused_T = _mask(masks_by_site.get(site), len(data_TN), site)
        times = np.arange(2 * tau_max, len(data_TN))
        times = times[~unused_T[times]]
        if times.size == 0:
            raise CausalDataError(
                f"site {site}: the mask leaves no target time with {2 * tau_max} steps before it, of {len(data_TN)} "
                "steps. Leave the site out, or use a smaller tau_max or another mask."
            )
        rows.append(times + start)
        parts.append(data_TN)
        start += len(data_TN)
    n = parts[0].shape[1]
    labels = tuple(f"X{i}" for i in range(n)) if names is None else tuple(names)
    site_T = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    return PooledSeries(tuple(by_site), labels, np.concatenate(parts), site_T, np.concatenate(rows))


def pooled_sample(
    series: Mapping[str, ArrayLike] | Sequence[ArrayLike],
    *,
    tau_max: int,
    test: Test = "parcorr",
    masks: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    names: Sequence[str] | None = None,
) -> LaggedSample:
    """Take several series as one sample, without dummies: for sites that differ in nothing but chance.

    Parameters
    ----------
    series, tau_max, masks, names
        As for `pooled_series`.
    test
        ``parcorr`` or ``robust_parcorr``.

    Returns
    -------
    LaggedSample
        The sample, for compiled searches.

    Raises
    ------
    CausalDataError
        As from `pooled_series` and `lagged_sample`.
    """
    pooled = pooled_series(series, tau_max=tau_max, masks=masks, names=names)
    return lagged_sample(pooled.data_TN, tau_max=tau_max, test=test, rows=pooled.rows, names=pooled.names)


def pooled_test(
    series: Mapping[str, ArrayLike] | Sequence[ArrayLike],
    *,
    tau_max: int,
    test: Test = "parcorr",
    masks: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    names: Sequence[str] | None = None,
    dummies: bool = True,
) -> IndependenceTest:
    """Make a test on several series whose means may differ.

    Parameters
    ----------
    series, tau_max, test, masks, names
        As for `pooled_sample`. Normal scores are those of all sites together.
    dummies
        Condition every test on the site.

    Returns
    -------
    IndependenceTest
        The test. Where missing values leave a test no row of a site, that site still takes its degree of freedom.

    Raises
    ------
    CausalDataError
        As from `pooled_series` and `lagged_sample`.
    ConstantVariable
        When a variable is constant at every site, so that nothing is left of it given the site.
    """
    pooled = pooled_series(series, tau_max=tau_max, masks=masks, names=names)
    others = pooled.sites[1:] if dummies else ()
    if others:
        _refuse_site_constants(pooled)
    site_TS = (pooled.site_T[:, None] == np.arange(1, len(others) + 1)).astype(np.float64)
    sample = lagged_sample(
        np.column_stack([pooled.data_TN, site_TS]),
        tau_max=tau_max,
        test=test,
        rows=pooled.rows,
        names=[*pooled.names, *(f"site[{site}]" for site in others)],
    )
    n = len(pooled.names)
    return GivenCells(SampleTest(sample), [(n + s, 0) for s in range(len(others))], hidden=len(others))


def _refuse_site_constants(pooled: PooledSeries) -> None:
    for i, name in enumerate(pooled.names):
        values = [pooled.data_TN[pooled.site_T == s, i] for s in range(len(pooled.sites))]
        if all(np.unique(part[~np.isnan(part)]).size < 2 for part in values):
            raise ConstantVariable(
                f"{name} is constant at every site: given the site nothing is left of it. Leave it out, or pool without"
                " dummies."
            )


def _by_site(values: Mapping[str, ArrayLike] | Sequence[ArrayLike]) -> dict[str, ArrayLike]:
    if isinstance(values, Mapping):
        return dict(values)
    return {str(place): value for place, value in enumerate(values)}


def _mask(mask: ArrayLike | None, steps: int, site: str) -> Booleans:
    array = np.zeros(steps, np.bool_) if mask is None else np.asarray(mask)
    if array.dtype != np.bool_ or array.shape != (steps,):
        raise ValueError(
            f"site {site}: mask of {array.dtype} and shape {array.shape}; expected bool of shape {(steps,)}, True = not"
            " used"
        )
    return array
