"""Settings of L2L: what is refused, and with which words."""

from typing import Any

import pytest
from pydantic import ValidationError

from stages.systems.l2l.settings import ARMS, FORMS, Base, Endpoint, Grounder, Train, base_of
from tests.systems.l2l.small import BLOCK, SETTINGS, settings

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "side": ({"network": {"side": 20}}, "side is 20, and should be a multiple of 8"),
    "widths": ({"network": {"widths": [4, 5, 8]}}, r"widths are \[4, 5, 8\], and should be multiples of groups, 2"),
    "words": ({"network": {"words": 7}}, "words is 7, and should be even"),
    "no main arm": ({"arms": ["burn_in", "oracle"]}, "learned should be among the arms"),
    "twice": ({"arms": ["burn_in", "learned", "learned"]}, "one of the arms stands twice"),
    "no SESM to leave out": (
        {"arms": ["burn_in", "learned", "no_sesm"], "network": {"guidance": "none"}},
        "there is no SESM for the arm no_sesm to leave out",
    ),
    "no share": ({"shares": [0]}, "greater than 0"),
    "unknown arm": ({"arms": ["burn_in", "learned", "guess"]}, "Input should be"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_settings_that_do_not_fit_are_refused(name: str) -> None:
    changes, message = REFUSED[name]
    with pytest.raises(ValidationError, match=message):
        settings(**changes)


def test_a_prior_is_known_by_its_provider() -> None:
    assert isinstance(SETTINGS.prior, Grounder)
    found = settings(prior={"provider": "endpoint", "base_url": "http://localhost:1/v1", "model": "m"})
    assert isinstance(found.prior, Endpoint)
    with pytest.raises(ValidationError, match="base_url"):
        settings(prior={"provider": "endpoint", "base_url": "localhost", "model": "m"})


def test_every_arm_has_a_name_and_ablations_have_bases_of_their_own() -> None:
    assert set(FORMS) <= set(ARMS)
    network = SETTINGS.network
    assert base_of("learned", network) == base_of("oracle", network) == Base("maps", True)
    assert base_of("no_sesm", network) == base_of("burn_in_no_sesm", network) == Base("none", True)
    assert base_of("no_prior", network) == Base("maps", False)


def test_settings_survive_json() -> None:
    assert Train.model_validate(SETTINGS.model_dump(mode="json")) == SETTINGS
    assert Train.model_validate(BLOCK) == SETTINGS
