"""MATLAB files of version 5 whose bytes depend on their content alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Text of the header, which MATLAB and scipy fill with the platform and the time.
HEADER = b"MATLAB 5.0 MAT-file, simulated by braid"
HEADER_BYTES = 116


def write(path: Path, arrays: Mapping[str, Any]) -> None:
    """Write arrays, uncompressed, in the order given; equal arrays give equal bytes."""
    from scipy.io import savemat

    with path.open("w+b") as stream:
        savemat(stream, dict(arrays), format="5", do_compression=False)
        stream.seek(0)
        stream.write(HEADER.ljust(HEADER_BYTES))
