"""A small freeway that SUMO simulates in about a second a day."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.simulate.traffic import lanefiles
from stages.simulate.traffic.options import Corridor, Demand, Incidents, Peak, Simulation

SHORT = Corridor(
    lanes=2,
    length_m=1200,
    exit_m=250,
    entry_m=400,
    acceleration_m=100,
    drop_m=900,
    stations_m=(100, 600, 750, 1000),
)
#: An hour of too many vehicles for one lane, in a freeway of 1.2 km.
SMALL = Simulation(
    seed=7,
    days=2,
    hours=(7, 8),
    lead_minutes=5,
    corridor=SHORT,
    demand=Demand(
        morning=Peak(vehicles_per_hour=2250, hour=7.5, width_hours=0.5), entry_share=0.1, exit_share=0.1, midday=1000
    ),
    incidents=Incidents(per_day=0),
)
SMALL = SMALL.model_copy(update={"limits": SMALL.limits.model_copy(update={"waiting": 0.3})})


@pytest.fixture(scope="session")
def simulation() -> Simulation:
    """The options of the small freeway."""
    return SMALL


@pytest.fixture(scope="session")
def lane_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its lane files."""
    folder = tmp_path_factory.mktemp("lanes")
    lanefiles.write(folder, SMALL)
    return folder
