"""Sets in small files, and what the user is told about broken ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from stages.errors import DataError
from stages.ingest.rna.config import AnyFormat, Format
from stages.ingest.rna.molecules import Molecule, RnaSet
from stages.ingest.rna.sets import open_set
from stages.rna.structure import brackets

STOCKHOLM = """\
# STOCKHOLM 1.0

#=GF AC   RF00001
#=GF ID   5S_rRNA
#=GF SS   Published; PMID:11283358
#=GF TP   Gene; rRNA;
#=GF RT   A title with the word AC in it
#=GF SQ   3

short/1-9       GGC.AAAGCC
a-longer/2-11   ggcTAAAgcc
gappy/1-7       --CUAAAG.C
#=GC SS_cons    <<<____>>>
#=GC RF         GGCUAAAGCC
//
"""


def format_of(block: Any) -> AnyFormat:
    options: AnyFormat = TypeAdapter(Format).validate_python(block)
    return options


def opened(path: Path, block: Any) -> RnaSet:
    return open_set(path, format_of(block), "key")


def read(path: Path, block: Any) -> list[Molecule]:
    return list(opened(path, block).molecules())


def read_text(folder: Path, name: str, content: str | bytes, block: Any) -> list[Molecule]:
    """Molecules of a set of one file."""
    return read(written(folder, name, content), block)


def written(folder: Path, name: str, content: str | bytes) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def shape(molecule: Molecule) -> str | None:
    """The structure in brackets."""
    return None if molecule.pairs is None else brackets(molecule.pairs, len(molecule.sequence))


def told(path: Path, block: Any) -> str:
    """What the user is told about a set that cannot be read."""
    try:
        read(path, block)
    except DataError as error:
        return str(error)
    raise AssertionError("it was read")
