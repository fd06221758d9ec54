"""What DVC says, in the words of a run: its errors, those of the disk, and that another DVC process is in the way."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from flows.errors import FlowError, GraphError

if TYPE_CHECKING:
    from dvc.repo import Repo

T = TypeVar("T")
POLL_SECONDS = 0.5


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Errors of DVC and of the disk as errors of this stage, in words."""
    from dvc.exceptions import ConfirmRemoveError, DvcException
    from dvc.lock import LockError
    from dvc.output import OutputDoesNotExistError

    try:
        yield
    except LockError:
        raise
    except OutputDoesNotExistError as error:
        raise GraphError(f"{name}: the command ended without an error, but {error}") from None
    except ConfirmRemoveError as error:
        # DVC only logs that an object could not be written, and stumbles over its absence later.
        raise FlowError(f"{name}: the result could not be written to the cache; is the disk full? ({error})") from error
    except (DvcException, OSError, sqlite3.Error) as error:
        raise FlowError(f"{name}: {' '.join(str(error).split()) or type(error).__name__}") from error


def patiently(repo: Repo, say: Callable[[str], None], action: Callable[[], T], *, wait: bool = True) -> T:
    """Act with DVC's lock held, and again as long as another DVC process is in the way; ``say`` so once."""
    from dvc.lock import LockError

    told = False
    while True:
        try:
            with repo.lock:
                return action()
        except LockError as error:
            if not wait:
                raise
            if not told:
                say(f"waits for another DVC process: {' '.join(str(error).split())}")
            told = True
            time.sleep(POLL_SECONDS)


@contextmanager
def quiet() -> Iterator[None]:
    """DVC tells of every stage on stdout, where the report stands; its warnings stay."""
    logger = logging.getLogger("dvc")
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)
