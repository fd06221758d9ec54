"""A few dozen small scenes, and scenes put together by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stages.ingest import unpickle
from stages.simulate.refcoco import layout, scenes
from stages.simulate.refcoco.meanings import Facts
from stages.simulate.refcoco.options import Design, Scene, Simulation
from stages.simulate.refcoco.scenes import Shape

SMALL = Simulation(
    seed=7, design=Design(train=16, validation=4, test_a=6, test_b=6), scene=Scene(sides_px=(72, 96), touching=0.6)
)


@pytest.fixture(scope="session")
def simulation() -> Simulation:
    """The options of the small scenes."""
    return SMALL


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their folder in the REFER layout."""
    folder = tmp_path_factory.mktemp("scenes")
    layout.write(folder, SMALL)
    return folder


@pytest.fixture(scope="session")
def instances(written: Path) -> dict[str, Any]:
    """instances.json of the small scenes."""
    found: dict[str, Any] = json.loads((written / "refcoco" / "instances.json").read_text())
    return found


@pytest.fixture(scope="session", params=["refcoco", "refcoco+"])
def refs(written: Path, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The refs of either data set."""
    found: list[dict[str, Any]] = unpickle.load(written / request.param / "refs(unc).p")
    return found


def shape(words: str, x: float, y: float, radius: float = 8.0) -> Shape:
    """An object by its words: size, colour, pattern, category; unturned."""
    size, colour, pattern, category = words.split()
    return Shape(category, colour, pattern, size, x, y, radius, 0.0)


def facts(*objects: Shape) -> Facts:
    """What sentences can say of objects in a frame of 100 x 100 px."""
    return Facts(objects, scenes.measure(scenes.paint(100, 100, objects)))
