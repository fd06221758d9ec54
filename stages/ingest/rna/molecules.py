"""Molecules and sets in memory, whatever the format on disk.

Shapes: N pairs, L bases. Positions count from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.ingest.rna import text
from stages.rna.structure import Pairs, orders


class Molecule(NamedTuple):
    """One molecule: a tuple, since making a frozen dataclass takes longer than reading a short record.

    Attributes
    ----------
    name
        As in the file; not unique.
    sequence
        Bases in the alphabet of stages/rna/alphabet.py: upper case, U, no gap.
    source_file
        File the molecule stands in, relative to the set's folder.
    line
        Line of that file where it begins, from 1.
    position_map
        (L,) column of the file's row for each base; None where nothing was removed.
    gaps_removed
        Number of gap characters taken out of the row.
    pairs
        (N, 2); None where the file says nothing of structure, empty where it says that no base pairs.
    structure_source
        "file" for a structure of the molecule's own, "consensus" for that of its family.
    pairs_lost
        Pairs of the consensus that the molecule cannot have; None where there is no consensus.
    evidence
        Where the structure comes from, as Rfam's ``#=GF SS`` line begins: Published, Predicted.
    family, family_name
        Accession or name, and name.
    rna_type
        Kind of RNA, such as ``Gene; tRNA``.
    """

    name: str
    sequence: str
    source_file: str
    line: int
    position_map: NDArray[np.int32] | None = None
    gaps_removed: int = 0
    pairs: Pairs | None = None
    structure_source: Literal["file", "consensus"] | None = None
    pairs_lost: int | None = None
    evidence: str | None = None
    family: str | None = None
    family_name: str | None = None
    rna_type: str | None = None

    @property
    def order(self) -> NDArray[np.int8] | None:
        """Pseudoknot order of each pair (N,); None without a structure."""
        return None if self.pairs is None else orders(self.pairs)


@dataclass
class Notes:
    """What a user should know about the way a set was read; complete once its molecules have been read.

    Attributes
    ----------
    texts
        One sentence each, in the order in which they were noticed, each once.
    """

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Keep a note, unless it is there already."""
        if text not in self.texts:
            self.texts.append(text)


@dataclass(frozen=True)
class RnaSet:
    """A set whose molecules can be read, one after the other, as often as wanted.

    Attributes
    ----------
    key
        Name of the set in params.yaml.
    path
        File or folder it was opened from.
    files
        Files in order of reading, relative to the folder.
    structures
        Whose structures the files hold: of each molecule, of a family, or none.
    notes
        Filled while the molecules are read.
    """

    key: str
    reader: str
    path: Path
    files: tuple[str, ...]
    structures: Literal["molecule", "family", "none"]
    read: Callable[[], Iterator[Molecule]]
    notes: Notes = field(default_factory=Notes)

    def molecules(self) -> Iterator[Molecule]:
        """The molecules in order of the files.

        Raises
        ------
        DataError
            A record is not what it should be; the message names file, record and line.
        """
        return self.read()


def set_of_files(
    path: Path,
    files: Sequence[Path],
    read_file: Callable[[Path, str], Iterable[Molecule]],
    *,
    key: str,
    reader: str,
    structures: Literal["molecule", "family", "none"],
    notes: Notes | None = None,
) -> RnaSet:
    """A set whose files are read one after the other.

    Parameters
    ----------
    read_file
        The molecules of a file, which is given with its name relative to ``path``.
    """
    named = [(file, text.relative(file, path)) for file in files]

    def read() -> Iterator[Molecule]:
        for file, name in named:
            yield from read_file(file, name)

    return RnaSet(key, reader, path, tuple(name for _, name in named), structures, read, notes or Notes())
