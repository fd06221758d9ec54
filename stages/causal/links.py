"""What a causal discovery result says, link by link: q-values, intervals, a table and a graph.

Shape suffixes: N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.

The family of tests of the false discovery rate: every tested lagged link once, and every tested contemporaneous pair
once, because its two directions are one test. A variable's link to itself at lag 0 is no test. Contemporaneous pairs
can be left out of the family; their q-value then is their p-value.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from scipy.special import ndtri

from stages.causal.covariance import Booleans
from stages.causal.orientation import Marks
from stages.causal.pcmci import PCMCIResult
from stages.causal.pcmci_plus import PCMCIPlusResult
from stages.causal.ranks import Floats


def benjamini_hochberg(p_K: Floats) -> Floats:
    """Q-values of a family of independent or positively dependent tests (Benjamini and Hochberg 1995).

    Parameters
    ----------
    p_K
        P-values.

    Returns
    -------
    ndarray
        The smallest level of the false discovery rate at which each test is rejected.
    """
    order_K = np.argsort(p_K, kind="stable")
    scaled_K = p_K[order_K] * p_K.size / np.arange(1, p_K.size + 1)
    q_K = np.empty(p_K.size)
    q_K[order_K] = np.minimum.accumulate(scaled_K[::-1])[::-1]
    return np.minimum(q_K, 1.0)


def link_q_values(result: PCMCIResult, *, exclude_contemporaneous: bool = False) -> Floats:
    """Q-values of all links, Benjamini-Hochberg over the family that the module text states.

    Parameters
    ----------
    result
        Result of a causal discovery.
    exclude_contemporaneous
        Leave lag 0 out of the family; q = p there.

    Returns
    -------
    ndarray
        q_NNL; 1 where nothing was tested.
    """
    family_NNL = counted_links(result)
    if exclude_contemporaneous:
        family_NNL[:, :, 0] = False
    q_NNL = result.p_NNL.copy()
    q_NNL[family_NNL] = benjamini_hochberg(result.p_NNL[family_NNL])
    if not exclude_contemporaneous:
        upper_NN = np.triu(q_NNL[:, :, 0])
        q_NNL[:, :, 0] = upper_NN + np.triu(q_NNL[:, :, 0], 1).T
    return q_NNL


def counted_links(result: PCMCIResult) -> Booleans:
    """Mark every test once: lagged links, and contemporaneous pairs with i before j.

    Parameters
    ----------
    result
        Result of a causal discovery.

    Returns
    -------
    ndarray
        counted_NNL.
    """
    counted_NNL = result.tested_NNL.copy()
    counted_NNL[:, :, 0] = np.triu(counted_NNL[:, :, 0], 1)
    return counted_NNL


def confidence_bounds(result: PCMCIResult, *, level: float = 0.95) -> tuple[Floats, Floats]:
    """Confidence interval of each partial correlation by Fisher's z, standard error 1 / sqrt(df - 1).

    Parameters
    ----------
    result
        Result of a causal discovery.
    level
        Coverage, between 0 and 1.

    Returns
    -------
    tuple
        low_NNL and high_NNL; -1 and 1 with a single degree of freedom, NaN where nothing was tested.
    """
    if not 0 < level < 1:
        raise ValueError(f"level {level}: expected a share between 0 and 1")
    inside_NNL = np.clip(result.value_NNL, -1.0 + 1e-16, 1.0 - 1e-16)
    z_NNL = np.arctanh(inside_NNL)
    wide_NNL = np.where(result.df_NNL > 1, ndtri(0.5 + 0.5 * level) / np.sqrt(np.maximum(result.df_NNL - 1, 1)), np.inf)
    low_NNL = np.where(result.tested_NNL, np.tanh(z_NNL - wide_NNL), np.nan)
    high_NNL = np.where(result.tested_NNL, np.tanh(z_NNL + wide_NNL), np.nan)
    return low_NNL, high_NNL


def link_table(result: PCMCIResult, *, level: float = 0.95, exclude_contemporaneous: bool = False) -> pl.DataFrame:
    """One row per test, in the order of source, target, lag; a contemporaneous pair stands once.

    Parameters
    ----------
    result
        Result of a causal discovery.
    level
        Coverage of the intervals.
    exclude_contemporaneous
        Leave lag 0 out of the family of the q-values.

    Returns
    -------
    DataFrame
        source, target, lag (steps), value (partial correlation), p, q, samples, low, high; of PCMCI+ also mark, the
        edge mark between source and target (empty: not adjacent).
    """
    i, j, lag = np.nonzero(counted_links(result))
    low_NNL, high_NNL = confidence_bounds(result, level=level)
    q_NNL = link_q_values(result, exclude_contemporaneous=exclude_contemporaneous)
    names = list(result.names)
    table = pl.DataFrame(
        {
            "source": [names[k] for k in i.tolist()],
            "target": [names[k] for k in j.tolist()],
            "lag": lag.astype(np.int64),
            "value": result.value_NNL[i, j, lag],
            "p": result.p_NNL[i, j, lag],
            "q": q_NNL[i, j, lag],
            "samples": result.samples_NNL[i, j, lag],
            "low": low_NNL[i, j, lag],
            "high": high_NNL[i, j, lag],
        },
        schema={
            "source": pl.String,
            "target": pl.String,
            "lag": pl.Int64,
            "value": pl.Float64,
            "p": pl.Float64,
            "q": pl.Float64,
            "samples": pl.Int64,
            "low": pl.Float64,
            "high": pl.Float64,
        },
    )
    if isinstance(result, PCMCIPlusResult):
        table = table.with_columns(pl.Series("mark", result.graph_NNL[i, j, lag].tolist(), dtype=pl.String))
    return table


def link_graph(
    result: PCMCIResult, *, alpha: float, corrected: bool = False, exclude_contemporaneous: bool = False
) -> Booleans:
    """Links at a level; lag 0 is symmetric, an adjacency without direction.

    Parameters
    ----------
    result
        Result of a causal discovery.
    alpha
        Level of the p-values, or of the q-values when corrected.
    corrected
        Use q-values.
    exclude_contemporaneous
        Leave lag 0 out of the family of the q-values.

    Returns
    -------
    ndarray
        graph_NNL, True where the p-value (q-value) is not above alpha; of PCMCI+ only adjacencies, and always the
        required ones.
    """
    p_NNL = link_q_values(result, exclude_contemporaneous=exclude_contemporaneous) if corrected else result.p_NNL
    graph_NNL: Booleans = result.tested_NNL & (p_NNL <= alpha)
    if isinstance(result, PCMCIPlusResult):
        graph_NNL = (result.graph_NNL != "") & (graph_NNL | result.required_NNL)
    return graph_NNL


def marked_graph(
    result: PCMCIPlusResult, *, alpha: float, corrected: bool = False, exclude_contemporaneous: bool = False
) -> Marks:
    """Edge marks of the links at a level, with the directions of the whole graph.

    Parameters
    ----------
    result
        Result of PCMCI+.
    alpha, corrected, exclude_contemporaneous
        As in `link_graph`.

    Returns
    -------
    ndarray
        graph_NNL, empty where the link is not in `link_graph`.
    """
    kept_NNL = link_graph(result, alpha=alpha, corrected=corrected, exclude_contemporaneous=exclude_contemporaneous)
    return np.where(kept_NNL, result.graph_NNL, "")
