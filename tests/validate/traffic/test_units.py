from __future__ import annotations

import numpy as np
import pytest

from stages.validate.traffic.gate import Gate, kmh, written
from stages.validate.traffic.units import free_flow, negative_share, unit_doubt, vehicle_length


def test_free_flow_is_the_upper_end_of_the_typical_sensor() -> None:
    values = np.tile(np.arange(1, 101, dtype=np.float32)[:, None], (1, 3))
    values[:, 2] *= 10
    assert free_flow(values) == pytest.approx(95.05)
    assert free_flow(np.full((5, 2), np.nan, np.float32)) is None


@pytest.mark.parametrize(
    ("value", "unit", "told"),
    [
        (109, "mph", "km/h labelled mph? That would be 68 mph"),
        (18, "km h-1", "mph or m/s labelled km/h? That would be 29 or 65 km/h"),
        (0.97, "mph", "scaled values, not mph?"),
        (14, "mph", "m/s labelled mph? That would be 31 mph"),
        (110, "m s-1", "km/h or mph labelled m/s? That would be 31 or 49 m/s"),
        (300, "km h-1", "another unit?"),
    ],
)
def test_a_doubt_about_a_unit_says_what_it_may_be(value: float, unit: str, told: str) -> None:
    assert unit_doubt(value, unit, Gate().free_flow(unit)) == told  # type: ignore[call-arg]


def test_limits_follow_the_unit() -> None:
    gate = Gate()  # type: ignore[call-arg]
    assert gate.speed("mph") == (0, 120)
    assert gate.speed("km h-1") == (0, 200)
    assert gate.speed("m s-1") == pytest.approx((0, 55.56), abs=0.01)
    assert gate.flow("veh h-1", 5, lanes=False) == (0, 25_000)
    assert gate.flow("veh per step", 5, lanes=True) == pytest.approx((0, 4_000 / 12))
    assert kmh(60, "mph") == pytest.approx(96.56, abs=0.01)
    assert (written("km h-1"), written("1"), written("mph")) == ("km/h", "", "mph")


def test_the_length_of_vehicles_follows_from_speed_flow_and_occupancy() -> None:
    # 1200 veh/h at 60 km/h are 20 vehicles a km; 6.5 m each cover 13 % of the road
    ones = np.ones((4, 2), np.float32)
    found = vehicle_length(
        60 * ones,
        100 * ones,
        np.float32(0.13) * ones,
        speed_unit="km h-1",
        flow_unit="veh per step",
        step_minutes=5,
        lanes_S=np.array([1.0, np.nan]),
    )
    assert found == pytest.approx(6.5, rel=1e-5)
    unknown = np.array([np.nan, np.nan])
    options = {"speed_unit": "mph", "flow_unit": "veh h-1", "step_minutes": 5}
    assert vehicle_length(ones, ones, ones, lanes_S=unknown, **options) is None  # type: ignore[arg-type]


def test_the_share_of_negative_values_is_of_those_that_are_measured() -> None:
    assert negative_share(np.array([[-1.0, np.nan], [1.0, 2.0]], np.float32)) == pytest.approx(1 / 3)
    assert negative_share(np.full((2, 2), np.nan, np.float32)) == 0
