"""SUMO's induction loops (E1): their definition, and what their output says of each interval."""

# Shapes: T interval, D detector.

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stages.errors import DataError
from stages.simulate.traffic.network import KMH, Detector

Floats = NDArray[np.float64]
#: SUMO's speed of an interval in which no vehicle passed.
NO_VEHICLE = -1.0
PERCENT = 100.0
REMEDY = "Run the stage again; if it stays, look at the free space and at SUMO's version."


@dataclass(frozen=True)
class Measured:
    """Intervals of all detectors.

    Attributes
    ----------
    speed_TD
        Mean speed of the vehicles that passed, km/h; NaN where none did.
    flow_TD
        Number of vehicles that passed.
    occupancy_TD
        Share of the interval during which a vehicle stood over the loop, 0 to 1.
    """

    speed_TD: Floats
    flow_TD: Floats
    occupancy_TD: Floats


def document(detectors: Sequence[Detector], interval: int, output: Path) -> ET.Element:
    """SUMO's additional file: one loop for each detector, its values every ``interval`` seconds."""
    tree = ET.Element("additional")
    for detector in detectors:
        ET.SubElement(
            tree,
            "e1Detector",
            {"id": detector.name, "lane": detector.lane_id, "pos": f"{detector.along_m:g}"}
            | {"period": f"{interval}", "file": str(output.resolve()), "friendlyPos": "true"},
        )
    return tree


def read(file: Path, detectors: Sequence[Detector], interval: int, start: int, intervals: int) -> Measured:
    """Read SUMO's output of the loops.

    Parameters
    ----------
    interval
        Length of an interval, s.
    start
        SUMO's time of the first interval to keep, s; earlier ones are the lead.
    intervals
        Number of intervals to keep.

    Raises
    ------
    DataError
        The file is cut short, holds an unknown detector, or lacks an interval of one.
    """
    column = {detector.name: d for d, detector in enumerate(detectors)}
    shape = (intervals, len(detectors))
    speed_TD, flow_TD, occupancy_TD = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
    seen_TD = np.zeros(shape, dtype=bool)
    try:
        rows = list(ET.parse(file).getroot().iter("interval"))
    except (ET.ParseError, OSError) as error:
        raise DataError(
            file.name, found=f"no whole XML ({error})", expected="the output of SUMO's induction loops", remedy=REMEDY
        ) from None
    for row in rows:
        name, begin = row.attrib["id"], float(row.attrib["begin"])
        if name not in column:
            raise DataError(
                file.name, record=f"interval at {begin:g} s", found=f"the detector {name!r}",
                expected=f"one of {', '.join(column)}", remedy=REMEDY,
            )  # fmt: skip
        t, d = round((begin - start) / interval), column[name]
        if not 0 <= t < intervals:
            continue
        speed = float(row.attrib["speed"])
        speed_TD[t, d] = np.nan if speed == NO_VEHICLE else KMH * speed
        flow_TD[t, d] = float(row.attrib["nVehContrib"])
        occupancy_TD[t, d] = float(row.attrib["occupancy"]) / PERCENT
        seen_TD[t, d] = True
    if not seen_TD.all():
        t, d = np.argwhere(~seen_TD)[0]
        raise DataError(
            file.name,
            record=f"detector {detectors[d].name}",
            found=f"no interval that begins at {start + t * interval} s",
            expected=f"{intervals} intervals of {interval} s for each of {len(detectors)} detectors",
            remedy=REMEDY,
        )
    return Measured(speed_TD, flow_TD, occupancy_TD)
