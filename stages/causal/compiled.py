"""The one way a function of this package becomes machine code.

numba's own on-disk cache looks at the file of a function only, not at the files of the functions it calls: after an
edit (or a `git pull`) of a callee, a stale kernel would run. So the cache lies in a folder named by the hash of every
module that holds kernels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

_config: Any = numba.config

KERNEL_MODULES = (
    "compiled.py",
    "student.py",
    "ranks.py",
    "covariance.py",
    "partial_correlation.py",
    "row_sets.py",
    "block_association.py",
    "search.py",
    "skeleton_kernels.py",
)

# Sums may be reordered (so that they vectorise); NaN and infinity keep their meaning.
REORDERED_SUMS = {"reassoc", "contract", "nsz", "arcp"}


def _cache_folder() -> str:
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for name in KERNEL_MODULES:
        digest.update((here / name).read_bytes())
    root = Path(_config.CACHE_DIR) if _config.CACHE_DIR else here / "__pycache__"
    return str(root / f"numba-{digest.hexdigest()[:16]}")


_FOLDER = _cache_folder()


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call and keep the machine code beside the sources that it was made from.

    Parameters
    ----------
    function
        A function of arrays and numbers whose module is listed in ``KERNEL_MODULES``.

    Returns
    -------
    Callable
        The compiled function, with the signature of the given one.
    """
    outer = _config.CACHE_DIR
    _config.CACHE_DIR = _FOLDER
    try:
        kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=REORDERED_SUMS)(function)
    finally:
        _config.CACHE_DIR = outer
    return cast("Callable[P, R]", kernel)
