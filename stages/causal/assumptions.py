"""What is known of links before a search: those that cannot exist, those that do, and directions at lag 0.

Shape suffixes: N variable, L lag 0 to tau_max; [i, j, lag] is the link from i, lag steps before, to j.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from stages.causal.covariance import Booleans
from stages.causal.errors import link_name

#: Source, target (names or indices of variables) and lag in steps.
Link = tuple[str | int, str | int, int]


@dataclass(frozen=True)
class LinkAssumptions:
    """What is known of links; everything else is left to the data.

    Attributes
    ----------
    forbidden
        Links that do not exist. At lag 0 the pair is not adjacent, in whichever order it is given.
    required
        Links that exist, whatever their test says. At lag 0 the adjacency alone is required.
    oriented
        Contemporaneous links that point from source to target if they exist.
    """

    forbidden: Sequence[Link] = ()
    required: Sequence[Link] = ()
    oriented: Sequence[Link] = ()


class AssumedLinks(NamedTuple):
    """The assumptions as arrays.

    Attributes
    ----------
    allowed_NNL
        True where a link may exist; symmetric at lag 0.
    required_NNL
        True where it must; symmetric at lag 0.
    directed_NN
        True where the contemporaneous link can only point from i to j.
    """

    allowed_NNL: Booleans
    required_NNL: Booleans
    directed_NN: Booleans


def assumed_links(
    assumptions: LinkAssumptions | None, names: Sequence[str], *, tau_max: int, tau_min: int = 0
) -> AssumedLinks:
    """Check assumptions and write them as arrays.

    Parameters
    ----------
    assumptions
        The assumptions; None when nothing is known.
    names
        Names of the variables.
    tau_max, tau_min
        Largest and smallest lag of a link, in steps.

    Returns
    -------
    AssumedLinks
        The arrays.

    Raises
    ------
    ValueError
        When a link names no variable or lag of the search, or contradicts another one; the message names it.
    """
    n = len(names)
    if not 0 <= tau_min <= tau_max:
        raise ValueError(f"tau_min {tau_min}: expected 0 to tau_max {tau_max}")
    allowed_NNL = np.ones((n, n, tau_max + 1), np.bool_)
    allowed_NNL[:, :, :tau_min] = False
    allowed_NNL[np.arange(n), np.arange(n), 0] = False
    required_NNL = np.zeros_like(allowed_NNL)
    directed_NN = np.zeros((n, n), np.bool_)
    if assumptions is None:
        return AssumedLinks(allowed_NNL, required_NNL, directed_NN)
    lags = (tau_min, tau_max)
    for i, j, lag in _links(assumptions.forbidden, names, lags, "forbidden"):
        allowed_NNL[i, j, lag] = False
        if lag == 0:
            allowed_NNL[j, i, 0] = False
    for i, j, lag in _links(assumptions.required, names, lags, "required"):
        _refuse_forbidden(allowed_NNL, names, (i, j, lag), "required")
        required_NNL[i, j, lag] = True
        if lag == 0:
            required_NNL[j, i, 0] = True
    for i, j, lag in _links(assumptions.oriented, names, lags, "oriented"):
        if lag:
            raise ValueError(
                f"oriented link {link_name(names[i], names[j], lag)}: a lagged link is oriented by time. Leave it out."
            )
        _refuse_forbidden(allowed_NNL, names, (i, j, lag), "oriented")
        if directed_NN[j, i]:
            raise ValueError(f"oriented link {names[i]}(t) -> {names[j]}(t): the opposite direction is assumed too")
        directed_NN[i, j] = True
    _refuse_cycle(directed_NN, names)
    return AssumedLinks(allowed_NNL, required_NNL, directed_NN)


def _links(
    links: Iterable[Link], names: Sequence[str], lags: tuple[int, int], kind: str
) -> Iterable[tuple[int, int, int]]:
    """Links with their variables as indices."""
    for link in links:
        source, target, lag = link
        i, j = (_index(end, names, kind, link) for end in (source, target))
        if not lags[0] <= lag <= lags[1]:
            raise ValueError(f"{kind} link {link}: lag {lag}; expected {lags[0]} to {lags[1]}")
        if lag == 0 and i == j:
            raise ValueError(f"{kind} link {link}: a variable has no link to itself at lag 0")
        yield i, j, lag


def _index(end: str | int, names: Sequence[str], kind: str, link: Link) -> int:
    if isinstance(end, str) and end in names:
        return list(names).index(end)
    if isinstance(end, int) and 0 <= end < len(names):
        return end
    raise ValueError(f"{kind} link {link}: no variable {end!r}; expected one of {', '.join(names)} or its index")


def _refuse_forbidden(allowed_NNL: Booleans, names: Sequence[str], link: tuple[int, int, int], kind: str) -> None:
    i, j, lag = link
    if not allowed_NNL[i, j, lag]:
        raise ValueError(f"{kind} link {link_name(names[i], names[j], lag)} is forbidden too: take one of them out")


def _refuse_cycle(directed_NN: Booleans, names: Sequence[str]) -> None:
    """Name a cycle of the assumed directions."""
    left = set(range(len(names)))
    while True:
        # Variables that no assumed arrow of the rest points at are on no cycle.
        ends = {j for j in left if not any(directed_NN[i, j] for i in left)}
        if not ends:
            break
        left -= ends
    if not left:
        return
    path = [min(left)]
    while path.count(path[-1]) == 1:
        path.append(next(i for i in sorted(left) if directed_NN[i, path[-1]]))
    cycle = path[path.index(path[-1]) :][::-1]
    raise ValueError(f"oriented links make a cycle: {' -> '.join(f'{names[k]}(t)' for k in cycle)}")
