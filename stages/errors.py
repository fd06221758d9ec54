"""Errors that reach the user as one paragraph, each with the exit code of its kind."""

from __future__ import annotations

from pathlib import Path


class StageError(Exception):
    """A failure the user can act on; printed without a traceback."""

    exit_code = 1


class UsageError(StageError):
    """The command line or params.yaml asks for something that does not exist."""

    exit_code = 2


class GateStopped(StageError):
    """Validation refuses the data set; the verdict is kept for inspection."""

    exit_code = 3


class DataError(StageError):
    """A file or a record is not what it should be.

    Parameters
    ----------
    file
        The file the fault lies in.
    found, expected
        What stands there, and what should.
    remedy
        What the user can do about it.
    record
        Line, column, member or record inside the file, where one can be named.
    """

    def __init__(self, file: str | Path, *, found: str, expected: str, remedy: str, record: str | None = None) -> None:
        self.file = str(file)
        self.record = record
        where = self.file if record is None else f"{self.file}, {record}"
        super().__init__(f"{where}: found {found}; expected {expected}. {remedy}")
