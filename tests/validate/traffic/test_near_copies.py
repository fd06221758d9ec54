from __future__ import annotations

import numpy as np
import pytest

from stages.validate.traffic import near_copies
from stages.validate.traffic.near_copies import blocks, changes, time_copies, twins, typical_slots

STEPS_PER_DAY = 288
PARTS = {"train": (0, 2000), "validation": (2024, 2300), "test": (2324, 2880)}


def series(sensors: int = 4, steps: int = 2880, seed: int = 0) -> np.ndarray:
    """Ten days of speeds at 5 minutes: the same two rush hours every day, and a noise of its own."""
    random = np.random.default_rng(seed)
    hour = np.arange(steps)[:, None] / 12 % 24
    noise = np.cumsum(random.normal(0, 1, (steps, sensors)), axis=0)
    noise -= np.stack([np.convolve(noise[:, s], np.ones(48) / 48, "same") for s in range(sensors)], axis=1)
    return (60 - 20 * np.exp(-((hour - 8) ** 2) / 4) + noise).astype(np.float32)


def found(values: np.ndarray, **limits: float) -> list[near_copies.Copy]:
    slots = np.arange(len(values)) % STEPS_PER_DAY
    return time_copies(changes(values, slots), PARTS, STEPS_PER_DAY, **({"one": 0.85, "together": 0.6} | limits))


def test_days_that_are_alike_are_no_copies() -> None:
    values = series()
    first, last = values[:288, 0], values[2592:, 0]
    assert np.corrcoef(first, last)[0, 1] > 0.7
    assert found(values) == []


def test_a_block_of_all_sensors_is_found_with_its_shift_through_scale_and_noise() -> None:
    values = series()
    noise = np.random.default_rng(1).normal(0, 0.3, (432, 4))
    values[2400:2832] = 0.9 * values[384:816] + 3 + noise
    copies = [copy for copy in found(values) if copy.sensor is None]
    assert copies
    assert {copy.start - copy.source_start for copy in copies} == {2016}
    assert {copy.part for copy in copies} == {"test"}


def test_a_block_of_one_sensor_is_found_in_another_one() -> None:
    values = series()
    values[2324:2880, 3] = values[308:864, 1]
    copies = found(values)
    assert {(copy.sensor, copy.source_sensor, copy.start - copy.source_start) for copy in copies} == {(3, 1, 2016)}
    assert min(copy.correlation for copy in copies) > 0.85


def test_in_a_large_set_sensors_are_compared_at_the_same_time_of_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_copies, "BUDGET", 0)
    values = series()
    values[2324:2880, 3] = values[308:864, 1]
    assert {(copy.sensor, copy.source_sensor) for copy in found(values)} == {(3, 1)}


def test_a_repetition_within_training_is_no_leak() -> None:
    values = series()
    values[1000:1600] = values[136:736]
    assert found(values) == []


def test_missing_values_and_silent_sensors_make_no_copies() -> None:
    values = series()
    values[:, 0] = 0
    values[:, 1] = np.nan
    values[2400:2700, 2] = np.nan
    assert found(values) == []
    assert not changes(values, np.arange(2880) % 288)[:, :2].any()


def test_changes_have_no_unit_and_no_typical_day() -> None:
    values, slots = series(), np.arange(2880) % 288
    once = changes(values, slots)
    np.testing.assert_allclose(changes(5 * values + 100, slots), once, atol=1e-3)
    np.testing.assert_allclose((once[1:] ** 2).mean(axis=0), 1, rtol=1e-3)
    typical = np.tile(series(steps=288), (10, 1))
    assert np.abs(changes(typical, slots)).max() == 0


def test_a_long_set_has_a_typical_week() -> None:
    day, slot = np.repeat(np.arange(70), 24), np.tile(np.arange(24), 70)
    assert typical_slots(day, slot).max() == 7 * 24 - 1
    np.testing.assert_array_equal(typical_slots(day[:240], slot[:240]), slot[:240])


def test_blocks_cover_the_later_parts_half_a_block_apart() -> None:
    assert blocks(PARTS, 256) == [
        ("validation", 2024, 2280),
        ("validation", 2044, 2300),
        ("test", 2324, 2580),
        ("test", 2452, 2708),
        ("test", 2580, 2836),
        ("test", 2624, 2880),
    ]
    assert blocks({"train": (0, 350), "validation": (374, 400), "test": (424, 500)}, 256) == [("test", 424, 500)]


@pytest.mark.parametrize("every_shift", [True, False])
@pytest.mark.parametrize("shift", [0, 5, -3])
def test_a_sensor_that_repeats_another_is_a_twin(
    shift: int, every_shift: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not every_shift:
        monkeypatch.setattr(near_copies, "PAIRS_BUDGET", 0)
    values = series()
    values[:, 2] = 0.9 * np.roll(values[:, 0], shift)
    (twin,) = twins(changes(values, np.arange(2880) % 288), values, limit=0.95)
    assert (twin.sensor, twin.source, twin.shift) == (2, 0, shift)
    assert twin.factor == pytest.approx(0.9, rel=1e-3)
