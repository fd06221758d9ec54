"""Assumptions become arrays, and contradictions an error that names the link."""

from __future__ import annotations

import numpy as np
import pytest

from stages.causal.assumptions import LinkAssumptions, assumed_links

NAMES = ("P", "SWC", "LE")


def test_nothing_known_allows_every_link_but_those_of_a_variable_to_itself_at_lag_0() -> None:
    known = assumed_links(None, NAMES, tau_max=2)
    assert known.allowed_NNL.sum() == 3 * 3 * 3 - 3
    assert not np.diag(known.allowed_NNL[:, :, 0]).any()
    assert not known.required_NNL.any()
    assert not known.directed_NN.any()
    assert assumed_links(None, NAMES, tau_max=2, tau_min=1).allowed_NNL.sum() == 18


def test_lag_0_is_symmetric_but_for_directions() -> None:
    links = LinkAssumptions(
        forbidden=[("P", "LE", 0)], required=[("P", "SWC", 0), ("LE", "LE", 2)], oriented=[(0, 1, 0)]
    )
    known = assumed_links(links, NAMES, tau_max=2)
    assert not known.allowed_NNL[0, 2, 0]
    assert not known.allowed_NNL[2, 0, 0]
    assert known.required_NNL[0, 1, 0]
    assert known.required_NNL[1, 0, 0]
    assert known.required_NNL[2, 2, 2]
    assert np.argwhere(known.directed_NN).tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"forbidden": [("P", "SWC", 1)], "required": [(0, 1, 1)]}, r"required link P\(t-1\) -> SWC\(t\) is forbidden"),
        ({"forbidden": [("SWC", "P", 0)], "required": [("P", "SWC", 0)]}, r"required link P\(t\) -- SWC\(t\) is forb"),
        ({"forbidden": [("SWC", "P", 0)], "oriented": [("P", "SWC", 0)]}, r"oriented link P\(t\) -- SWC\(t\) is forb"),
        ({"oriented": [("P", "SWC", 0), ("SWC", "P", 0)]}, r"SWC\(t\) -> P\(t\): the opposite direction"),
        (
            {"oriented": [("P", "SWC", 0), ("SWC", "LE", 0), ("LE", "P", 0)]},
            r"cycle: P\(t\) -> SWC\(t\) -> LE\(t\) -> P\(t\)",
        ),
        ({"oriented": [("P", "SWC", 1)]}, r"P\(t-1\) -> SWC\(t\): a lagged link is oriented by time"),
        ({"required": [("RAIN", "SWC", 1)]}, "no variable 'RAIN'; expected one of P, SWC, LE"),
        ({"required": [(3, "SWC", 1)]}, "no variable 3"),
        ({"required": [("P", "SWC", 3)]}, "lag 3; expected 0 to 2"),
        ({"forbidden": [("P", "P", 0)]}, "no link to itself at lag 0"),
    ],
)
def test_contradictions_name_the_link(links: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        assumed_links(LinkAssumptions(**links), NAMES, tau_max=2)
