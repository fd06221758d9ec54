"""Errors of DVC and of the disk, in the words of a run."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from flows.errors import FlowError, GraphError


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Errors of DVC and of the disk as errors of this stage, in words."""
    from dvc.exceptions import DvcException
    from dvc.lock import LockError
    from dvc.output import OutputDoesNotExistError

    try:
        yield
    except LockError:
        raise
    except OutputDoesNotExistError as error:
        raise GraphError(f"{name}: the command ended without an error, but {error}") from None
    except (DvcException, OSError, sqlite3.Error) as error:
        raise FlowError(f"{name}: {' '.join(str(error).split()) or type(error).__name__}") from error
