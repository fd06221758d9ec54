"""Tables of any number of molecules in a memory that does not grow with it: parts on disk, then one file of each.

A record is known as ``KEY/NAME``; a name that stands several times gets ``#2``, ``#3`` behind it from the second on.
Which names repeat is known from digests of 8 bytes, sorted a share at a time, so that only repeated names are held.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.io.plugins import register_io_source

from stages.ingest.rna.molecules import Molecule
from stages.ingest.rna.records import MOLECULES, RECORDS, frames

#: A part holds at most so many molecules, and is closed once it has so many letters.
PART_ROWS = 20_000
PART_LETTERS = 1 << 22
#: Digests sorted at once.
SORTED = 1 << 20

_NUMBERED = re.compile(r"#\d+$")


class Parts:
    """Parts of molecules.parquet and records.parquet of one set.

    Attributes
    ----------
    count, letters
        Molecules and bases so far.
    repeated
        Molecules whose name had stood before; known once the tables are written.
    examples
        Some of those names.
    """

    def __init__(self, folder: Path, key: str) -> None:
        self.folder = folder
        self.key = key
        self.count = 0
        self.letters = 0
        self.repeated = 0
        self.examples: list[str] = []
        self._parts = 0
        self._held: list[Molecule] = []
        self._held_letters = 0
        folder.mkdir()

    def add(self, molecule: Molecule) -> None:
        """Add a molecule."""
        self._held.append(molecule)
        self._held_letters += len(molecule.sequence)
        if len(self._held) >= PART_ROWS or self._held_letters >= PART_LETTERS:
            self._close_part()

    def write(self, molecules: Path, records: Path) -> None:
        """Write the two tables and delete the parts."""
        if self._held:
            self._close_part()
        repeated = self._repeated()
        size = max(1, min(PART_ROWS, PART_LETTERS * self.count // max(1, self.letters)))
        for kind, schema, target in (("molecules", MOLECULES, molecules), ("records", RECORDS, records)):
            self.repeated, self.examples = 0, []
            rows = register_io_source(Source(self._named(kind, repeated)), schema=schema)
            rows.sink_parquet(target, compression="zstd", row_group_size=size)
        shutil.rmtree(self.folder)

    def _close_part(self) -> None:
        molecule_frame, record_frame = frames(self._held, self.key)
        molecule_frame.write_parquet(self._file("molecules", self._parts), compression="zstd")
        record_frame.write_parquet(self._file("records", self._parts), compression="zstd")
        np.save(self._file("digests", self._parts), record_frame["name"].hash().to_numpy(), allow_pickle=False)
        self.count += len(self._held)
        self.letters += self._held_letters
        self._parts += 1
        self._held, self._held_letters = [], 0

    def _file(self, kind: str, number: int) -> Path:
        return self.folder / f"{kind}-{number:06d}{'.npy' if kind == 'digests' else '.parquet'}"

    def _repeated(self) -> NDArray[np.uint64]:
        """Digests of the names that stand more than once (and of any other of equal digest, which does no harm)."""
        shares = max(1, -(-self.count // SORTED))
        found = []
        for share in range(shares):
            digests = (np.load(self._file("digests", part), allow_pickle=False) for part in range(self._parts))
            ordered = np.concatenate([digest[digest % np.uint64(shares) == share] for digest in digests])
            ordered.sort()
            found.append(np.unique(ordered[1:][ordered[1:] == ordered[:-1]]))
        return np.concatenate(found)

    def _named(self, kind: str, repeated: NDArray[np.uint64]) -> Iterator[pl.DataFrame]:
        """Parts with their record_id."""
        seen: Counter[str] = Counter()
        for number in range(self._parts):
            part = pl.read_parquet(self._file(kind, number))
            names = part["name"]
            ids = [record_id(self.key, name, 1) for name in names]
            for row in np.flatnonzero(np.isin(names.hash().to_numpy(), repeated)).tolist():
                name = names[row]
                seen[name] += 1
                if seen[name] > 1:
                    self.repeated += 1
                    self.examples = [*self.examples, name][:3]
                ids[row] = record_id(self.key, name, seen[name])
            yield part.with_columns(record_id=pl.Series(ids, dtype=pl.String))


class Source:
    """What polars reads its batches from; limits of a query do not occur, a sink takes all there is."""

    def __init__(self, batches: Iterator[pl.DataFrame]) -> None:
        self._batches = batches

    def __call__(
        self, columns: Sequence[str] | None, predicate: Any, rows: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        """The batches as they come."""
        assert columns is None
        assert predicate is None
        return self._batches


def record_id(key: str, name: str, number: int) -> str:
    """Identifier of the ``number``-th molecule of a name; one that ends like ours keeps its place with a number."""
    return f"{key}/{name}" if number == 1 and not _NUMBERED.search(name) else f"{key}/{name}#{number}"
