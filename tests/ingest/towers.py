"""Small towers with values a reader can check by hand, in the layout of each format."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from stages.ingest.land_atmosphere.config import Format
from stages.ingest.land_atmosphere.native import Native, harmonise, read_tower

FORMAT: TypeAdapter[Any] = TypeAdapter(Format)
HALF_HOUR = 30


def ingest(path: Path, format_: str | dict[str, Any], site: str = "xx-tst") -> Native:
    """Read a tower as the stage does, without writing it."""
    return harmonise(read_tower(path, FORMAT.validate_python(format_)), site)


def values(native: Native, name: str) -> list[float | None]:
    """Values of a variable with None for missing."""
    return [None if np.isnan(value) else round(float(value), 9) for value in native.dataset[name].values]


def stamps(first: str, count: int, step: int = HALF_HOUR) -> list[np.datetime64]:
    return list(np.datetime64(first, "m") + step * np.arange(count))


def digits(stamp: np.datetime64, length: int = 12) -> str:
    return "".join(c for c in str(stamp) if c.isdigit()).ljust(12, "0")[:length]


def table(columns: Mapping[str, Sequence[Any]], *, above: str = "", delimiter: str = ",", end: str = "\n") -> str:
    """Delimited text of columns."""
    lines = [delimiter.join(columns)]
    lines += [delimiter.join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    return above + end.join(lines) + end


def half_hours(first: str, columns: Mapping[str, Sequence[Any]], step: int = HALF_HOUR) -> dict[str, Sequence[Any]]:
    """Columns with TIMESTAMP_START and TIMESTAMP_END before them."""
    count = len(next(iter(columns.values())))
    start = stamps(first, count, step)
    return {
        "TIMESTAMP_START": [digits(stamp) for stamp in start],
        "TIMESTAMP_END": [digits(stamp + step) for stamp in start],
        **columns,
    }


def days(count: int, step: int = HALF_HOUR) -> dict[str, list[float]]:
    """Whole days of every variable: sun around noon, a value that differs from step to step."""
    per_day = 24 * 60 // step
    hour = (np.arange(count * per_day) % per_day + 0.5) * step / 60
    sun = np.clip(800 * np.sin((hour - 6) / 12 * np.pi), 0, None).round(3)
    wave = np.arange(count * per_day) % 7
    return {
        "SWC": (20 + wave).tolist(),
        "P": np.where(wave == 0, 0.5, 0.0).tolist(),
        "LE": (sun / 4 + wave).tolist(),
        "H": (sun / 3 + wave).tolist(),
        "G": (sun / 10 + wave).tolist(),
        "NETRAD": (sun * 0.7 + wave).tolist(),
        "SW_IN": sun.tolist(),
        "VPD": (10 + wave).tolist(),
        "TA": (15 + wave).tolist(),
    }


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode(encoding))
    return path


def write_zip(path: Path, files: Mapping[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def fluxnet_name(resolution: str, product: str = "FULLSET", site: str = "DE-Tha", years: str = "2014-2014") -> str:
    return f"FLX_{site}_FLUXNET2015_{product}_{resolution}_{years}_1-4.csv"
