"""Steps to the level of the baseline."""

from __future__ import annotations

from stages.systems.rna_transfer.convergence import Convergence, steps_to_level


def rows(*metrics: float | None) -> list[dict[str, float | None]]:
    return [{"step": 10 * number, "validation_metric": metric} for number, metric in enumerate(metrics)]


def test_the_level_is_nine_tenths_of_the_baselines_gain_over_chance() -> None:
    baseline, arm = rows(0.5, 0.6, 0.68, 0.7), rows(0.5, 0.69, 0.66, 0.9)
    assert steps_to_level(arm, baseline, 0.5) == Convergence(0.5 + 0.9 * (0.7 - 0.5), 10, 20)


def test_an_arm_that_never_gets_there_has_no_step_however_fast_it_ends() -> None:
    found = steps_to_level(rows(0.5, 0.55, 0.55), rows(0.5, 0.5, 0.7), 0.5)
    assert (found.step, found.baseline_step) == (None, 20)


def test_without_a_gain_of_the_baseline_there_is_no_level() -> None:
    assert steps_to_level(rows(0.5, 0.9), rows(0.5, 0.51), 0.5) == Convergence(None, None, None)
    assert steps_to_level(rows(0.5), rows(None, None), 0.5) == Convergence(None, None, None)


def test_unknown_metrics_are_passed_over() -> None:
    assert steps_to_level(rows(None, 0.8), rows(0.0, None, 0.8), 0.0).step == 10
