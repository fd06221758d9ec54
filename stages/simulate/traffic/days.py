"""The days: each a process of SUMO, as many at a time as there are cores."""

# Shapes: T interval, D detector.

from __future__ import annotations

import os
import queue
import threading
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from stages.errors import StageError
from stages.runtime import progress, random_numbers
from stages.simulate.traffic import demand, incidents, loops, network, programs
from stages.simulate.traffic.loops import Measured
from stages.simulate.traffic.options import Limits, Simulation

#: SUMO tells its time this often, in seconds of its own clock: it keeps some forty lines back when it writes to a pipe.
TELL_EVERY = 5
#: SUMO moves a vehicle out of a deadlock when it has stood this much longer than an incident lasts, s.
PATIENCE = 300
LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Counts:
    """Vehicles of a day with its lead: demanded = inserted + waiting, and inserted = arrived + inside."""

    demanded: int
    inserted: int
    waiting: int
    arrived: int
    inside: int
    teleported: int
    collisions: int
    mean_delay_s: float


@dataclass(frozen=True)
class Result:
    """One simulated day."""

    day: demand.Day
    measured: Measured
    counts: Counts
    incidents: list[dict[str, float | int]]


class Stopped(Exception):
    """Another day failed, so this one need not go on."""


def simulate(simulation: Simulation, folder: Path) -> list[Result]:
    """Simulate all days, in their order; SUMO's own files stay in ``folder``.

    Raises
    ------
    StageError
        SUMO failed on a day, or shows more faults than the limits allow.
    """
    road = build(simulation, folder)
    told: queue.SimpleQueue[int | None] = queue.SimpleQueue()
    stop = threading.Event()

    def announce(seconds: int) -> None:
        if stop.is_set():
            raise Stopped
        told.put(seconds)

    def one(number: int) -> Result:
        try:
            if stop.is_set():
                raise Stopped
            place = folder / f"day-{number}"
            place.mkdir()
            return simulate_day(simulation, road, number, place, announce)
        except BaseException:
            stop.set()
            raise
        finally:
            told.put(None)

    with ThreadPoolExecutor(processes(simulation.days)) as pool:
        try:
            running = [pool.submit(one, number) for number in range(simulation.days)]
            ticks = _ticks(told, simulation.days)
            total = simulation.days * (_end(simulation) // 60)
            for _ in progress(ticks, "simulating", total=total, unit="min of traffic"):
                pass
        except BaseException:
            stop.set()
            raise
    return _results(running)


def _ticks(told: queue.SimpleQueue[int | None], days: int) -> Iterator[int]:
    """The minutes that the days tell of, until the last has ended."""
    while days:
        seconds = told.get()
        if seconds is None:
            days -= 1
        elif seconds and seconds % 60 == 0:
            yield seconds


def _results(days: Sequence[Future[Result]]) -> list[Result]:
    """The results, or the first error that is not a mere consequence of another."""
    errors = [error for day in days if (error := day.exception()) is not None]
    for error in errors:
        if not isinstance(error, Stopped):
            raise error
    return [day.result() for day in days]


def processes(days: int) -> int:
    """How many days run at a time: as many as the cores that this process may use."""
    return min(days, len(os.sched_getaffinity(0)))


def build(simulation: Simulation, folder: Path) -> Path:
    """Let netconvert make SUMO's network of the freeway."""
    nodes, edges, connections = network.write(simulation.corridor, folder)
    road = folder / "freeway.net.xml"
    programs.run(
        "netconvert",
        *("--node-files", str(nodes), "--edge-files", str(edges), "--connection-files", str(connections)),
        *("--output-file", str(road), "--no-turnarounds", "true"),
    )
    return road


def simulate_day(
    simulation: Simulation, road: Path, number: int, folder: Path, announce: Callable[[int], None]
) -> Result:
    """Simulate one day in one process of SUMO.

    Raises
    ------
    StageError
        SUMO failed, or shows more faults than the limits allow.
    """
    of_day = demand.day(simulation, number)
    vehicles = demand.traffic(simulation, of_day)
    start, end = (hour * demand.SECONDS_PER_HOUR for hour in simulation.hours)
    zero = start - 60 * simulation.lead_minutes
    stops = incidents.stops(simulation.corridor, vehicles, incidents.draw(simulation, of_day))
    detectors = network.detectors(simulation.corridor)
    interval = 60 * simulation.interval_minutes
    files = {name: folder / f"{name}.xml" for name in ("routes", "loops", "measured", "statistics", "stops")}
    _write(files["routes"], demand.document(simulation, vehicles, stops, zero))
    _write(files["loops"], loops.document(detectors, interval, files["measured"]))
    seed = int(random_numbers(simulation.seed, "sumo", f"{number}").integers(LARGEST_SEED))
    programs.run(
        "sumo",
        *("--net-file", str(road), "--route-files", str(files["routes"]), "--additional-files", str(files["loops"])),
        *(
            "--begin",
            "0",
            "--end",
            f"{end - zero}",
            "--step-length",
            f"{simulation.step_seconds:g}",
            "--seed",
            f"{seed}",
        ),
        *("--statistic-output", str(files["statistics"]), "--duration-log.statistics", "true"),
        *("--stop-output", str(files["stops"]), "--stop-output.write-unfinished", "true"),
        *("--time-to-teleport", f"{PATIENCE + 60 * simulation.incidents.minutes[1]:g}"),
        *("--xml-validation", "never", "--no-warnings", "true"),
        *("--step-log.period", f"{round(TELL_EVERY / simulation.step_seconds)}"),
        announce=announce,
    )
    counts = read_counts(files["statistics"])
    check(of_day, counts, simulation.limits)
    intervals = (end - start) // interval
    return Result(
        day=of_day,
        measured=loops.read(files["measured"], detectors, interval, start - zero, intervals),
        counts=counts,
        incidents=incidents.happened(files["stops"], simulation.corridor, zero, end),
    )


def _end(simulation: Simulation) -> int:
    """SUMO's time at the end of a day, s."""
    start, end = simulation.hours
    return demand.SECONDS_PER_HOUR * (end - start) + 60 * simulation.lead_minutes


def _write(file: Path, tree: ET.Element) -> None:
    ET.ElementTree(tree).write(file, encoding="utf-8")


def read_counts(file: Path) -> Counts:
    """The counts in SUMO's statistics."""
    tree = ET.parse(file).getroot()

    def value(element: str, attribute: str) -> float:
        found = tree.find(element)
        assert found is not None, element
        return float(found.attrib[attribute])

    return Counts(
        demanded=int(value("vehicles", "inserted") + value("vehicles", "waiting")),
        inserted=int(value("vehicles", "inserted")),
        waiting=int(value("vehicles", "waiting")),
        arrived=int(value("vehicleTripStatistics", "count")),
        inside=int(value("vehicles", "running")),
        teleported=int(value("teleports", "total")),
        collisions=int(value("safety", "collisions")),
        mean_delay_s=value("vehicleTripStatistics", "timeLoss"),
    )


def check(of_day: demand.Day, counts: Counts, limits: Limits) -> None:
    """Refuse a day with too many faults.

    Raises
    ------
    StageError
        With the counts, the limit and what to change.
    """
    remedies = {
        "teleported": (counts.teleported, limits.teleports, "shorten incidents, or lower the demand"),
        "collisions": (counts.collisions, limits.collisions, "take a shorter step_seconds, or a longer headway_s"),
        "waiting": (counts.waiting, limits.waiting, "lower the demand, or lengthen the freeway before the lane drop"),
    }
    for name, (count, limit, remedy) in remedies.items():
        if count > limit * counts.demanded:
            raise StageError(
                f"simulated day {of_day.number} ({of_day.date}): {name} {count} of {counts.demanded} vehicles, more "
                f"than the limit of {limit:g}. Under traffic.simulated in params.yaml {remedy}, or raise limits."
            )
