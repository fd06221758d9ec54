"""Bug cases of traffic pipelines, from files as a user has them to what she is told.

The numbers are those of the project's list of cases. Each kind of fault is tested in breadth beside its module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml

from stages import artifacts
from stages.__main__ import main
from tests.ingest.traffic import layouts

KEY = "cas"


@pytest.fixture(autouse=True)
def _in_workspace(workspace: Path) -> None:
    """Every case has a folder of its own."""


def ingest(format_: Any) -> int:
    """Write params.yaml for the set under raw/, run ``ingest``, and return the exit code."""
    sets = {KEY: {"path": "raw", "format": format_, "gate": {}}}
    Path("params.yaml").write_text(yaml.safe_dump({"traffic": {"sets": sets}}))
    return main(["ingest", f"traffic@{KEY}"])


def records() -> pl.DataFrame:
    return pl.read_parquet(artifacts.ingested("traffic", KEY) / "records.parquet")


def values(variable: str, group: str = "series") -> np.ndarray:
    return np.asarray(artifacts.open_dataset(artifacts.ingested("traffic", KEY) / "data.zarr", group)[variable])


def notes() -> list[str]:
    return list(artifacts.read_json(artifacts.ingested("traffic", KEY) / "set.json")["notes"])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().err.split())


def test_25_zero_flow_at_night_is_real() -> None:
    layouts.wide(Path("raw/flow.csv"), np.array([[0.0], [0.0], [12.0]]), ["400001"])
    assert ingest({"reader": "wide", "time": "time", "variable": "flow", "unit": "veh/step"}) == 0
    assert values("flow")[:, 0].tolist() == [0, 0, 12]
    day = records().row(0, named=True)
    assert (day["flow_coverage"], day["flow_mean"], day["flow_null_share"]) == (1, 4, 0)
    assert day["flow_zeros_share"] == pytest.approx(2 / 3)


def test_26_a_sensor_that_is_zero_all_the_time_is_reported_by_id() -> None:
    speeds = layouts.speeds(288, 3)
    speeds[:, 1] = 0
    layouts.wide(Path("raw/speed.csv"), speeds)
    assert ingest({"reader": "wide", "time": "time", "unit": "mph"}) == 0
    dead = records().filter(pl.col("speed_zeros_share") == 1)
    assert dead.select("sensor", "speed_std", "speed_longest_flat_minutes").rows() == [("767541", 0, 1440)]


def test_29_normalised_values_keep_their_sign_for_the_gate() -> None:
    speeds = layouts.speeds(288, 1)
    layouts.wide(Path("raw/speed.csv"), (speeds - speeds.mean()) / speeds.std(), ["400001"])
    assert ingest({"reader": "wide", "time": "time", "unit": "mph"}) == 0
    assert records()["speed_min"].item() < 0


def test_30_missing_steps_and_rows_without_a_time_one_by_one() -> None:
    missing, blank = (172, 303, 1451, 3053, 3325, 3850, 6204), (2015, 6047)
    layouts.lanes(Path("raw"), steps=8064, missing=missing, blank=blank)
    lines = Path("raw/PeMS_Speed.csv").read_text().splitlines()
    assert len(lines) == 1 + 8059
    assert sum(line.startswith(",") for line in lines) == 2
    assert ingest("lanes") == 0
    speed = values("speed")
    assert speed.shape == (8064, 4)
    assert np.flatnonzero(np.isnan(speed).all(axis=1)).tolist() == list(missing)
    told = [note for note in notes() if note.startswith("PeMS_Speed.csv")]
    assert sum("no time stamp" in note for note in told) == 2
    assert next(note for note in told if note.endswith("missing")) == "PeMS_Speed.csv, 2012-03-01 14:20: missing"
    assert sum(note.endswith("missing") for note in told) == 7


def test_31_roads_and_lanes_of_different_length_are_joined_on_time() -> None:
    lanes = layouts.lanes(Path("raw"), steps=600, missing=(100,), blank=(50, 300))
    counts = [len(Path("raw", name).read_text().splitlines()) for name in ("PeMS_Speed.csv", "PeMS_road_speed.csv")]
    assert counts == [602, 600]
    assert ingest("lanes") == 0
    road = values("speed", "roads")
    kept = np.delete(np.arange(600), 100)
    np.testing.assert_allclose(road[kept, 1], lanes[kept, 2:].mean(axis=1), rtol=1e-6)
    assert records()["road_difference"].max() < 1e-4  # type: ignore[operator]


def test_31_pairing_by_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    layouts.lanes(Path("raw"), steps=40, blank=(5,))
    text = Path("raw/PeMS_road_speed.csv").read_text().splitlines()
    Path("raw/PeMS_road_speed.csv").write_text("\n".join(line.partition(",")[2] for line in text) + "\n")
    assert ingest("lanes") == 1
    assert "PeMS_road_speed.csv: found 0 columns 'Sample Time'" in said(capsys)


AUTUMN = [f"2025-11-02 {hour:02d}:{minute:02d}" for hour in (0, 1, 1, 2) for minute in range(0, 60, 5)]


def autumn(format_: dict[str, Any], stamps: list[str]) -> int:
    layouts.wide(Path("raw/speed.csv"), layouts.speeds(len(stamps), 1), ["400001"], stamps)
    return ingest({"reader": "wide", "time": "time", "unit": "mph", **format_})


def test_33_a_repeated_hour_is_kept_by_its_offset_or_its_order() -> None:
    zoned = [f"{stamp}-0{7 if index < 24 else 8}:00" for index, stamp in enumerate(AUTUMN)]
    for stamps in (zoned, AUTUMN):
        assert autumn({"timezone": "America/Los_Angeles"}, stamps) == 0
        np.testing.assert_array_equal(values("speed")[:, 0], layouts.speeds(48, 1)[:, 0].astype(np.float32))
        assert notes() == []


@pytest.mark.parametrize(
    ("format_", "stamps"),
    [({}, AUTUMN), ({"timezone": "America/Los_Angeles"}, sorted(AUTUMN)), ({"timezone": "-08:00"}, AUTUMN)],
)
def test_33_or_refused_as_ambiguous_and_never_averaged(
    format_: dict[str, Any], stamps: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert autumn(format_, stamps) == 1
    told = said(capsys)
    assert "Nothing is averaged" in told
    assert "2025-11-02 01:00" in told
    assert not artifacts.ingested("traffic", KEY).exists()


def test_33_the_missing_spring_hour_is_no_gap() -> None:
    stamps = [f"2025-03-09 {hour:02d}:{minute:02d}" for hour in (0, 1, 3, 4) for minute in range(0, 60, 5)]
    assert autumn({"timezone": "America/Los_Angeles"}, stamps) == 0
    assert values("speed").shape == (48, 1)
    assert notes() == []
