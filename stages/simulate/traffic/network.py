"""The freeway as SUMO's plain network: sections between ramps and the lane drop, and the lanes that go on.

Lanes have SUMO's index: 0 is the rightmost. Ramps and the lane that ends are on the right, so a lane that goes on keeps
its place from the left.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from stages.simulate.traffic.options import Corridor

KMH = 3.6
RAMP_KMH = 80.0
RAMP_M = 250.0
LANE_M = 3.2
#: How far a ramp lies beside the freeway, m.
RAMP_ASIDE_M = 40.0
EXIT, ENTRY = "exit", "entry"
ROUTES = {"through": (0, 1, 2, 3, 4), EXIT: (0,), ENTRY: (2, 3, 4)}


@dataclass(frozen=True)
class Section:
    """A stretch of the freeway without a ramp or a change of lanes: one edge of SUMO's network."""

    edge: str
    start_m: float
    stop_m: float
    lanes: int


@dataclass(frozen=True)
class Detector:
    """One induction loop.

    Attributes
    ----------
    station
        Number of the station in the direction of travel, from 1.
    lane
        Number of the lane from the right, from 1: SUMO's index + 1.
    from_left
        Place of the lane from the left, from 0; a lane that goes on keeps it.
    """

    station: int
    lane: int
    from_left: int
    edge: str
    along_m: float

    @property
    def name(self) -> str:
        """Name in SUMO's files."""
        return f"{self.station}_{self.lane}"

    @property
    def column(self) -> str:
        """Column in the lane files."""
        return f"sensors {self.station} Lane {self.lane}"

    @property
    def lane_id(self) -> str:
        """SUMO's name of the lane."""
        return f"{self.edge}_{self.lane - 1}"


def sections(corridor: Corridor) -> tuple[Section, ...]:
    """The freeway from its start to its end; the acceleration lane adds a lane, the drop takes one away."""
    lanes = corridor.lanes
    names = {"entrance": lanes, "middle": lanes, "merge": lanes + 1, "before_drop": lanes, "after_drop": lanes - 1}
    marks_m = corridor.marks_m
    return tuple(Section(name, marks_m[i], marks_m[i + 1], count) for i, (name, count) in enumerate(names.items()))


def section_at(corridor: Corridor, place_m: float) -> Section:
    """The section that holds a place."""
    return next(section for section in sections(corridor) if section.start_m <= place_m < section.stop_m)


def detectors(corridor: Corridor) -> tuple[Detector, ...]:
    """One loop in every lane of every station, by station, then from the right."""
    found = []
    for station, place_m in enumerate(corridor.stations_m, start=1):
        section = section_at(corridor, place_m)
        for lane in range(1, section.lanes + 1):
            found.append(
                Detector(station, lane, section.lanes - lane, section.edge, round(place_m - section.start_m, 2))
            )
    return tuple(found)


def neighbours(first: Detector, second: Detector) -> bool:
    """Whether two loops lie side by side in one station, or in the same lane of stations that follow each other."""
    if first.station == second.station:
        return abs(first.lane - second.lane) == 1
    return abs(first.station - second.station) == 1 and first.from_left == second.from_left


def routes(corridor: Corridor) -> dict[str, tuple[str, ...]]:
    """Edges of each route: all along, out by the exit, in by the entry."""
    edges = [section.edge for section in sections(corridor)]
    found = {name: tuple(edges[i] for i in order) for name, order in ROUTES.items()}
    return found | {EXIT: (*found[EXIT], EXIT), ENTRY: (ENTRY, *found[ENTRY])}


def write(corridor: Corridor, folder: Path) -> tuple[Path, Path, Path]:
    """Write SUMO's plain files of nodes, edges and connections, in this order."""
    files = tuple(folder / f"freeway.{kind}.xml" for kind in ("nod", "edg", "con"))
    for file, tree in zip(files, (nodes(corridor), edges(corridor), connections(corridor)), strict=True):
        ET.ElementTree(tree).write(file, encoding="utf-8")
    return files[0], files[1], files[2]


def nodes(corridor: Corridor) -> ET.Element:
    """Where sections begin and end: on a straight line, the ramps beside it."""
    tree = ET.Element("nodes")
    places = {f"mark{i}": (x_m, 0.0) for i, x_m in enumerate(corridor.marks_m)}
    places[f"{EXIT}_end"] = (corridor.exit_m + RAMP_M, -RAMP_ASIDE_M)
    places[f"{ENTRY}_start"] = (corridor.entry_m - RAMP_M, -RAMP_ASIDE_M)
    for name, (x_m, y_m) in places.items():
        ET.SubElement(tree, "node", id=name, x=f"{x_m:g}", y=f"{y_m:g}")
    return tree


def edges(corridor: Corridor) -> ET.Element:
    """Sections and ramps; the freeway goes before the entry."""
    tree = ET.Element("edges")

    def edge(name: str, start: str, stop: str, lanes: int, kmh: float, **more: str) -> None:
        attributes = {"id": name, "from": start, "to": stop, "numLanes": f"{lanes}", "speed": f"{kmh / KMH:.2f}"}
        ET.SubElement(tree, "edge", attributes | more)

    def ramp(start_m: float, start_y: float, stop_m: float, stop_y: float) -> str:
        return f"{start_m:g},{start_y:g} {stop_m:g},{stop_y:g}"

    for i, section in enumerate(sections(corridor)):
        edge(section.edge, f"mark{i}", f"mark{i + 1}", section.lanes, corridor.speed_limit_kmh, priority="3")
    # Ramps touch the right side of the freeway, not its middle: else netconvert draws junctions of a hundred metres.
    side_y, far_y = -LANE_M * corridor.lanes, -RAMP_ASIDE_M
    shape = ramp(corridor.exit_m, side_y, corridor.exit_m + RAMP_M, far_y)
    edge(EXIT, "mark1", f"{EXIT}_end", 1, RAMP_KMH, priority="1", shape=shape)
    shape = ramp(corridor.entry_m - RAMP_M, far_y, corridor.entry_m, side_y)
    edge(ENTRY, f"{ENTRY}_start", "mark2", 1, RAMP_KMH, priority="1", shape=shape)
    return tree


def connections(corridor: Corridor) -> ET.Element:
    """Which lane leads to which: each to the one with its place from the left, where there is one."""
    tree = ET.Element("connections")

    def connect(before: str, after: str, from_lane: int, to_lane: int) -> None:
        lanes = {"fromLane": f"{from_lane}", "toLane": f"{to_lane}"}
        ET.SubElement(tree, "connection", {"from": before, "to": after} | lanes)

    freeway = sections(corridor)
    for before, after in pairwise(freeway):
        for from_left in range(min(before.lanes, after.lanes)):
            connect(before.edge, after.edge, before.lanes - 1 - from_left, after.lanes - 1 - from_left)
    connect(freeway[0].edge, EXIT, 0, 0)
    connect(ENTRY, freeway[2].edge, 0, 0)
    return tree
