"""Induction loops: what SUMO is asked for, and a hand-made output."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stages.errors import DataError
from stages.simulate.traffic import loops
from stages.simulate.traffic.network import Detector

DETECTORS = (Detector(1, 1, 1, "entrance", 250.0), Detector(1, 2, 0, "entrance", 250.0))
ROW = '<interval begin="{}" end="{}" id="{}" nVehContrib="{}" flow="0" occupancy="{}" speed="{}" nVehEntered="0"/>'


def output(folder: Path, *rows: tuple[int, str, int, float, float]) -> Path:
    text = [ROW.format(begin, begin + 300, name, count, share, speed) for begin, name, count, share, speed in rows]
    file = folder / "measured.xml"
    file.write_text(f"<detector>{''.join(text)}</detector>")
    return file


WHOLE = (
    (0, "1_1", 9, 9.0, 9.0),
    (0, "1_2", 9, 9.0, 9.0),
    (300, "1_1", 30, 12.5, 25.0),
    (300, "1_2", 0, 0.0, -1.0),
    (600, "1_1", 0, 100.0, -1.0),
    (600, "1_2", 2, 0.5, 30.0),
)


def test_speeds_become_kilometres_an_hour_and_no_vehicle_is_no_speed(tmp_path: Path) -> None:
    """The first five minutes are the lead. A loop under a standing vehicle is covered, though none passed."""
    measured = loops.read(output(tmp_path, *WHOLE), DETECTORS, interval=300, start=300, intervals=2)
    np.testing.assert_allclose(measured.speed_TD, [[90, np.nan], [np.nan, 108]])
    np.testing.assert_array_equal(measured.flow_TD, [[30, 0], [0, 2]])
    np.testing.assert_allclose(measured.occupancy_TD, [[0.125, 0], [1, 0.005]])


def test_each_loop_is_asked_for_its_intervals(tmp_path: Path) -> None:
    tree = loops.document(DETECTORS, 60, tmp_path / "measured.xml")
    assert [loop.attrib["lane"] for loop in tree] == ["entrance_0", "entrance_1"]
    assert {loop.attrib["period"] for loop in tree} == {"60"}
    assert {loop.attrib["pos"] for loop in tree} == {"250"}


def test_a_missing_interval_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"detector 1_2: found no interval that begins at 600 s; expected 2 intervals"):
        loops.read(output(tmp_path, *WHOLE[:-1]), DETECTORS, interval=300, start=300, intervals=2)


def test_an_unknown_detector_is_named(tmp_path: Path) -> None:
    file = output(tmp_path, *WHOLE, (300, "2_1", 1, 1.0, 1.0))
    with pytest.raises(DataError, match=r"interval at 300 s: found the detector '2_1'; expected one of 1_1, 1_2"):
        loops.read(file, DETECTORS, interval=300, start=300, intervals=2)


@pytest.mark.parametrize("text", ["", "<detector><interval begin="])
def test_an_output_that_is_cut_short_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "measured.xml").write_text(text)
    with pytest.raises(DataError, match=r"measured\.xml: found no whole XML"):
        loops.read(tmp_path / "measured.xml", DETECTORS, interval=300, start=0, intervals=1)
