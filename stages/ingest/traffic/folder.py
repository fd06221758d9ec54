"""Finding the files of a set in its folder: by a name in params.yaml, or by a pattern that one file matches."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stages.errors import DataError

#: Files that fetch or DVC put beside the data.
_BESIDE = {"manifest.json"}


class Folder:
    """The folder (or the single file) that ``path`` of params.yaml names, and the files of it that were read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.root = path.parent if path.is_file() else path
        self.read: list[str] = []

    def named(self, name: str, option: str) -> Path:
        """A file that params.yaml names.

        Raises
        ------
        DataError
            There is no such file.
        """
        file = self.root / name
        if not file.is_file():
            raise DataError(
                file,
                found="no such file",
                expected=f"what `format.{option}` names, relative to `path`",
                remedy="Correct the name in params.yaml.",
            )
        return self.taken(file)

    def matching(self, patterns: Iterable[str], passed_over: Iterable[Path] = ()) -> list[Path]:
        """Files whose name matches one of the patterns, case aside, in order of their names."""
        from fnmatch import fnmatchcase

        skipped = {file.resolve() for file in passed_over}
        wanted = [pattern.lower() for pattern in patterns]
        return [
            file
            for file in sorted(self.root.rglob("*"))
            if file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(self.root).parts)
            and file.name not in _BESIDE
            and file.resolve() not in skipped
            and any(fnmatchcase(file.name.lower(), pattern) for pattern in wanted)
        ]

    def one(
        self, name: str | None, option: str, patterns: Iterable[str], what: str, passed_over: Iterable[Path] = ()
    ) -> Path:
        """The file that is named, or the only one that matches.

        Raises
        ------
        DataError
            There is none, or more than one.
        """
        found = self.maybe(name, option, patterns, what, passed_over)
        if found is None:
            raise DataError(
                self.path,
                found=f"no file like {' or '.join(patterns)}",
                expected=what,
                remedy=f"Correct `path` in params.yaml, or name the file under `format.{option}`.",
            )
        return found

    def maybe(
        self, name: str | None, option: str, patterns: Iterable[str], what: str, passed_over: Iterable[Path] = ()
    ) -> Path | None:
        """As :meth:`one`, None where no file matches; several that match are still an error."""
        if name is not None:
            return self.named(name, option)
        if self.path.is_file() and option == "file":
            return self.taken(self.path)
        candidates = self.matching(patterns, passed_over)
        if len(candidates) > 1:
            names = ", ".join(self.relative(file) for file in candidates)
            raise DataError(
                self.path,
                found=f"{len(candidates)} candidates: {names}",
                expected=f"one: {what}",
                remedy=f"Name the right one under `format.{option}` in params.yaml.",
            )
        return self.taken(candidates[0]) if candidates else None

    def taken(self, file: Path) -> Path:
        """Remember that a file is read."""
        name = self.relative(file)
        if name not in self.read:
            self.read.append(name)
        return file

    def relative(self, file: Path) -> str:
        """Name of a file as it is noted in the set's description."""
        return file.relative_to(self.root).as_posix() if file.is_relative_to(self.root) else file.name
