"""The baselines on a small lane set: equally many candidates, and only the few steps and the roads in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stages.systems.minitraffic.fits import FewShot, candidates, forecast_of, road_profile
from stages.systems.minitraffic.problem import Target
from stages.systems.minitraffic.search import Candidate, Judge, choose
from tests.systems.minitraffic.small import SETTINGS, panel, waves
from tests.systems.minitraffic.tested import target

BLOCK = (24, 72)
TUNED = ("historical_average", "ridge", "road_ridge", "dlinear")


def few(found: Target | None = None, **options: Any) -> FewShot:
    made = found or target(**options)
    return FewShot(made, made.panel(BLOCK), [panel(waves())], SETTINGS.finetuning, 0)


@pytest.mark.parametrize("arm", TUNED)
def test_every_tuned_baseline_has_as_many_looks_as_the_networks(arm: str) -> None:
    assert len(list(candidates(arm, few()))) == SETTINGS.finetuning.looks


@pytest.mark.parametrize("arm", ["last_value", *TUNED])
@pytest.mark.parametrize("options", [{}, {"clock": False}, {"mode": "road"}])
def test_what_is_stored_gives_the_same_finite_forecast(arm: str, options: dict[str, Any]) -> None:
    made = few(**options)
    windows = made.target.windows("test")
    at = np.arange(len(windows))
    for candidate in candidates(arm, made):
        told = candidate.forecast(windows, at)
        assert told.shape == (len(windows), 6, 3)
        assert np.isfinite(told).all()
        again = forecast_of(arm, candidate.tensors, made.target)(windows, at)
        np.testing.assert_array_equal(told, again)


@pytest.mark.parametrize("arm", TUNED)
def test_steps_outside_the_block_change_no_candidate(arm: str) -> None:
    """The roads are the lanes' means here, and may be learnt from; the lanes outside the block may not."""
    before = [each.tensors for each in candidates(arm, few())]
    other = target()
    other.values_TS[: BLOCK[0]] += 50
    other.values_TS[BLOCK[1] :] += 50
    after = [each.tensors for each in candidates(arm, few(other))]
    for here, there in zip(before, after, strict=True):
        assert here.keys() == there.keys()
        for name in here:
            np.testing.assert_array_equal(here[name], there[name])


def test_a_lane_without_a_road_has_the_mean_profile() -> None:
    made = target()
    made.accepted.road_of_sensor_S[5] = -1
    profile_VS = road_profile(made)
    assert profile_VS is not None
    np.testing.assert_allclose(profile_VS[:, 5], profile_VS[:, [0, 2, 4]].mean(axis=1))
    assert road_profile(target(clock=False)) is None
    assert road_profile(target(mode="road")) is None


def test_an_infinite_penalty_makes_the_road_ridge_of_the_roads() -> None:
    """On lanes that are their road, the few steps and the roads say the same at every penalty."""
    made = target()
    assert made.accepted.roads_TR is not None
    made.values_TS[:] = made.accepted.roads_TR[:, made.accepted.road_of_sensor_S]
    whole = made.accepted.part("train")
    all_steps = FewShot(made, made.panel(whole), [], SETTINGS.finetuning, 0)
    found = [each.tensors["weights"] for each in candidates("road_ridge", all_steps)]
    for each in found:
        np.testing.assert_allclose(each, found[-1], atol=1e-3)


def test_ridge_finds_a_rule_of_the_series() -> None:
    """Each value is the last one plus half of its last step: the second lag is all there is to know."""
    made = target()
    step = np.random.default_rng(0).normal(size=(len(made.values_TS), 6))
    for place in range(1, len(step)):
        step[place] = 0.5 * step[place - 1] + 1e-3 * step[place] if place % 9 else step[place]
    made.values_TS[:] = 50 + np.cumsum(step, axis=0)
    weights = next(iter(candidates("ridge", few(made)))).tensors["weights"]
    assert weights[4, 0] == pytest.approx(-0.5, abs=0.15)  # the value before the last, less the last


def counted(error: float, choice: dict[str, float]) -> Candidate:
    def forecast(windows: Any, at: Any) -> Any:
        return windows.batch(at)[1] + np.float32(error)

    return Candidate({"level": np.array([error])}, choice, forecast)


def test_the_least_error_is_chosen_the_first_of_equals_and_missing_targets_do_not_count() -> None:
    made = target()
    validation = made.accepted.part("validation")
    made.values_TS[validation[0] : validation[0] + 10, 0] = np.nan
    judge = Judge(made.windows("validation"), 100)
    chosen = choose([counted(2, {"pull": 0}), counted(-1, {"pull": 1}), counted(1, {"pull": 2})], judge)
    assert chosen.choice == {"pull": 1}
    assert chosen.validation_mae == pytest.approx(1, rel=1e-5)
    assert [row["chosen"] for row in chosen.history] == [False, True, False]
    assert chosen.looks == 3


def test_without_a_measured_validation_target_the_first_is_chosen() -> None:
    made = target()
    start, stop = made.accepted.part("validation")
    made.values_TS[start:stop] = np.nan
    several: Callable[[], list[Candidate]] = lambda: [counted(2, {"pull": 0}), counted(1, {"pull": 1})]  # noqa: E731
    chosen = choose(several(), Judge(made.windows("validation"), 100))
    assert (chosen.choice, chosen.validation_mae) == ({"pull": 0}, None)
