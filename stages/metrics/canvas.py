"""Pictures as SVG whose bytes depend on what they show and on nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SERIES_COLOURS = ("#1b6ca8", "#c1502e", "#6b6b6b")
GRID = "#d9d9d9"


@contextmanager
def canvas(path: Path, width: float, height: float) -> Iterator[Figure]:
    """A figure of a size in inches that is saved as SVG; equal figures give equal bytes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.hashsalt": "braid",
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
