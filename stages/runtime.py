"""What every running stage shares: progress bars and random numbers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

import numpy as np
from tqdm import tqdm

T = TypeVar("T")


def progress(items: Iterable[T], description: str, *, total: int | None = None, unit: str = "") -> Iterable[T]:
    """Iterate with a progress bar on stderr; where stderr is no terminal, a line every ten seconds."""
    piped = not sys.stderr.isatty()
    return tqdm(items, desc=description, total=total, unit=f" {unit}", mininterval=10 if piped else 0.1)


def random_numbers(seed: int, *stream: str) -> np.random.Generator:
    """A generator for one named use of a seed: other uses of the same seed draw independent numbers."""
    return np.random.default_rng([seed, *(byte for name in stream for byte in name.encode())])
