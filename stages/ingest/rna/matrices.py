"""Sets in csv files: BEACON's, with a matrix of pairs (npy) for each sequence, and ArchiveII with pairs in a column.

Shapes: L bases, N pairs.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from stages.errors import DataError
from stages.ingest.rna import rows, text
from stages.ingest.rna.config import ArchiveII, Beacon
from stages.ingest.rna.molecules import Molecule, Notes, RnaSet, set_of_files
from stages.ingest.rna.rows import Place
from stages.rna import structure
from stages.rna.structure import Pairs, StructureError

SUFFIXES = (".csv",)
BEACON_COLUMNS = ("seq", "file_name")
ARCHIVEII_COLUMNS = ("id", "sequence", "structure")
#: Longest field of a csv: the pairs of a molecule of a million bases.
LONGEST_FIELD = 1 << 25
#: Values of a matrix that are looked at at once.
BLOCK = 1 << 24


def open_beacon(path: Path, options: Beacon, key: str) -> RnaSet:
    """Open BEACON's csv (bpRNA.csv, pdbRNA.csv) with its matrices below it, in TR0/, VL0/, TS0/ or ct/.

    Raises
    ------
    DataError
        No csv has the columns ``seq`` and ``file_name``.
    """
    notes = Notes()
    files = _tables(path, options.files, BEACON_COLUMNS, notes)

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        found = 0
        for line, row in table(file, BEACON_COLUMNS):
            split = row.get("data_name") or ""
            if options.splits is None or split in options.splits:
                found += 1
                place = Place(file, source, row["file_name"], line)
                yield _of_matrix(row["seq"], split, place, rows.family_of(row["file_name"], options.family))
        if not found:
            raise _empty(file, f"a sequence of {', '.join(options.splits)}" if options.splits else "a sequence")

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="molecule", notes=notes)


def open_archiveii(path: Path, options: ArchiveII, key: str) -> RnaSet:
    """Open ArchiveII's csv: id, sequence, structure, and base_pairs (from 1) and len where they are there.

    Raises
    ------
    DataError
        No csv has the columns ``id``, ``sequence`` and ``structure``.
    """
    notes = Notes()
    files = _tables(path, options.files, ARCHIVEII_COLUMNS, notes)

    def read_file(file: Path, source: str) -> Iterator[Molecule]:
        line = 0
        for line, row in table(file, ARCHIVEII_COLUMNS):
            yield _of_row(row, Place(file, source, row["id"], line), rows.family_of(row["id"], options.family))
        if not line:
            raise _empty(file, "a molecule")

    return set_of_files(path, files, read_file, key=key, reader=options.reader, structures="molecule", notes=notes)


def _empty(file: Path, expected: str) -> DataError:
    return DataError(file, found="no row", expected=expected, remedy="Correct `format` in params.yaml, or the file.")


def _tables(path: Path, pattern: str | None, needed: tuple[str, ...], notes: Notes) -> list[Path]:
    """The csv files that have the columns; one without them is passed over with a note."""
    files = text.files_of(path, pattern, SUFFIXES)
    fitting = [file for file in files if not set(needed) - set(_columns(file))]
    if not fitting:
        raise DataError(
            files[0],
            record="line 1",
            found=f"columns {', '.join(_columns(files[0])) or 'none'}",
            expected=f"columns {', '.join(needed)}",
            remedy="Correct `path` or `format.files` in params.yaml, or name the columns so.",
        )
    for file in files:
        if file not in fitting:
            notes.add(f"{text.relative(file, path)}: passed over, it has no columns {', '.join(needed)}")
    return fitting


def _columns(file: Path) -> list[str]:
    return next(csv.reader(line for _, line in text.lines(file)), [])


def table(file: Path, needed: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows of a csv with a header, each with its line.

    Raises
    ------
    DataError
        A row has more or fewer fields than the header, or a needed one is empty.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))
    reader = csv.reader(line for _, line in text.lines(file))
    header = next(reader)
    for fields in reader:
        if not fields:
            continue
        row = dict(zip(header, fields, strict=False))
        place = Place(file, file.name, row.get(needed[0], "") if needed[0] != "seq" else "", reader.line_num)
        if len(fields) != len(header):
            raise place.fault(f"{len(fields)} fields", f"{len(header)}, as in the header", text.AGAIN)
        empty = [name for name in needed if not row[name].strip()]
        if empty:
            raise place.fault(f"an empty field {empty[0]}", "a value", "Complete the row, or take it out.")
        yield reader.line_num, row


def _of_row(row: dict[str, str], place: Place, family: str | None) -> Molecule:
    """A molecule of ArchiveII; its two forms of the structure and its length have to agree."""
    found = rows.bracketed(row["sequence"], row["structure"], place, place.line, family)
    assert found.pairs is not None
    columns = len(row["sequence"])
    if row.get("len") and row["len"] != str(columns):
        raise place.fault(f"a sequence of {columns} letters", f"{row['len']}, as in the column len", text.AGAIN)
    if row.get("base_pairs"):
        try:
            listed = np.array(json.loads(row["base_pairs"]), dtype=np.int64).reshape(-1, 2) - 1
        except (ValueError, TypeError):
            raise place.fault("base_pairs that are no list of pairs", "[[1, 9], [2, 8]]", text.AGAIN) from None
        _same_pairs(found.pairs, listed, columns, place)
    return found


def _same_pairs(pairs: Pairs, listed: np.ndarray, columns: int, place: Place) -> None:
    try:
        other = structure.checked(listed, columns)
    except StructureError as error:
        raise rows.structure_fault(error, place) from None
    if not np.array_equal(pairs, other):
        raise place.fault(
            f"{len(other)} base_pairs that are not the {len(pairs)} of the structure",
            "the same pairs in both columns",
            "One of the two is wrong: correct it, or take the column base_pairs out.",
        )


def _of_matrix(row: str, split: str, place: Place, family: str | None) -> Molecule:
    """A molecule of BEACON: its matrix lies below the csv under the name of the row."""
    found = rows.bases(row, place)
    if Path(place.record).name != place.record:
        raise place.fault("a file_name that is a path", "a name", "Correct the csv.")
    name = f"{place.record}.npy"
    places = [Path(split) / name, Path("ct") / split / name, Path("ct") / name, Path(name)]
    file = next((place.file.parent / each for each in places if (place.file.parent / each).is_file()), None)
    if file is None:
        raise place.fault(
            f"no {places[0].as_posix()} beside the csv",
            "the matrix of its pairs",
            "Bring the folder of matrices, or leave the split out with `format.splits`.",
        )
    try:
        pairs = structure.checked(_pairs_of(file, found.columns, place), found.columns)
    except StructureError as error:
        raise rows.structure_fault(error, place) from None
    return rows.paired(found, pairs, place, family)


def _pairs_of(file: Path, length: int, place: Place) -> Pairs:
    """Places of the ones of a matrix (L, L), in both triangles or in one."""
    try:
        matrix_LL = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise DataError(
            file, found=f"no array of numbers ({error})", expected=f"a matrix of {length} x {length}", remedy=text.AGAIN
        ) from None
    if matrix_LL.shape != (length, length) or matrix_LL.dtype.kind not in "buif":
        raise DataError(
            file,
            found=f"an array of shape {matrix_LL.shape}, {matrix_LL.dtype}",
            expected=f"numbers, ({length}, {length}) for the sequence on line {place.line} of {place.file.name}",
            remedy="The matrix is of another sequence, or the csv is of another version.",
        )
    held = []
    step = max(1, BLOCK // max(1, length))
    for start in range(0, length, step):
        part = np.asarray(matrix_LL[start : start + step])
        if not np.isin(part, (0, 1)).all():
            raise DataError(
                file, found="values other than 0 and 1", expected="1 where two bases pair, else 0", remedy=text.AGAIN
            )
        held.append(np.argwhere(part == 1) + np.array([start, 0]))
    return np.concatenate(held).astype(np.int32) if held else structure.no_pairs()
