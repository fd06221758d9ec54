"""The line of column names of a delimited text, behind comments and blank lines."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass

from stages.errors import DataError
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.tables import Layout

BOM = b"\xef\xbb\xbf"
OTHER_DELIMITERS = (",", ";", "\t", "|")


@dataclass(frozen=True)
class Header:
    """Column names, how many lines stand before the data, and the bytes of those lines."""

    names: list[str]
    lines: int
    size: int


def read_header(member: Member, layout: Layout) -> Header:
    """Find the line of column names behind comments and blank lines.

    Raises
    ------
    DataError
        No such line, or its delimiter is another one.
    """
    head = member.head()
    if b"\n" not in head and b"\r" in head:
        raise DataError(
            member.label,
            found="lines that end in a carriage return alone",
            expected="lines that end in a newline",
            remedy=r"Convert it: `tr '\r' '\n' < OLD > NEW`.",
        )
    size = 0
    for number, line in enumerate(head.split(b"\n"), start=1):
        size += len(line) + 1
        text = decoded(line.removeprefix(BOM) if number == 1 else line)
        if _is_header(text, number, layout):
            names = [name.strip() for name in split_fields(text, layout.delimiter)]
            _check_delimiter(member, text, names, layout)
            for _ in range(layout.skip_lines):
                size = head.find(b"\n", size) + 1 or len(head)
            return Header(names, number + layout.skip_lines, min(size, len(head)))
    raise DataError(
        member.label,
        found="comments and blank lines only",
        expected="a line of column names",
        remedy="Correct `comment` and `header_line` in params.yaml, or fetch the file again.",
    )


def decoded(line: bytes) -> str:
    """A line as text, without its end; Latin-1 where it is not UTF-8."""
    try:
        return line.decode("utf-8").rstrip("\r")
    except UnicodeDecodeError:
        return line.decode("latin-1").rstrip("\r")


def split_fields(text: str, delimiter: str) -> list[str]:
    """The fields of one line; a carriage return inside it is a blank."""
    return next(csv.reader([text.replace("\r", " ")], delimiter=delimiter))


def _is_header(text: str, number: int, layout: Layout) -> bool:
    if layout.header_line is not None:
        return number == layout.header_line
    plain = text.strip().lstrip('"')
    return bool(plain.strip(f"{layout.delimiter} ")) and not (layout.comment and plain.startswith(layout.comment))


def _check_delimiter(member: Member, text: str, names: Sequence[str], layout: Layout) -> None:
    if len(names) > 1:
        return
    for other in OTHER_DELIMITERS:
        if other != layout.delimiter and text.count(other) > 1:
            raise DataError(
                member.label,
                record="the line of column names",
                found=f"columns separated by {other!r}",
                expected=f"{layout.delimiter!r}",
                remedy=f"Set `delimiter: {other!r}` under `format` in params.yaml.",
            )
