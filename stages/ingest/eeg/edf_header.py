"""The header of an EDF, EDF+ or BDF file, and whether its records follow one another without a gap.

mne joins the records of a discontinuous file as if there were no gap, and renames a channel that stands twice; both
have to be known before it reads. The layout is that of the published specifications of EDF (1992), EDF+ (2003) and
BDF.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from stages.errors import DataError
from stages.ingest.eeg.trials import AGAIN

ANNOTATIONS = ("EDF Annotations", "BDF Annotations")
FIXED = 256
ONSET = re.compile(rb"^([+-]\d+(?:\.\d*)?)(?:\x15\d+(?:\.\d*)?)?\x14")

#: Widths of the fields that follow the fixed part, each repeated for all signals.
WIDTHS = (16, 80, 8, 8, 8, 8, 8, 80, 8, 32)
NAME, DIMENSION, SAMPLES = 0, 2, 8


@dataclass(frozen=True)
class Header:
    """What the header says.

    Attributes
    ----------
    names, units, samples
        Of each signal: its name, its physical dimension, its samples in one record.
    seconds
        Length of a record.
    offset
        Bytes before the first record.
    width
        Bytes of one sample, 2 or 3.
    discontinuous
        Whether the file is declared EDF+D.
    """

    file: Path
    names: tuple[str, ...]
    units: tuple[str, ...]
    samples: tuple[int, ...]
    records: int
    seconds: float
    offset: int
    width: int
    discontinuous: bool

    def rate(self, index: int) -> float:
        """Sampling rate of one signal in Hz, not rounded."""
        return self.samples[index] / self.seconds

    @property
    def record_bytes(self) -> int:
        """Length of one record."""
        return sum(self.samples) * self.width


def read(file: Path) -> Header:
    """Read the header and compare it with the size of the file.

    Raises
    ------
    DataError
        The file is no EDF or BDF, or is cut short.
    """
    with file.open("rb") as stream:
        fixed = stream.read(FIXED)
        binary = fixed[:8] == b"\xffBIOSEMI"
        if len(fixed) < FIXED or not (binary or fixed[:8].strip() == b"0"):
            raise DataError(
                file,
                found=f"first bytes {fixed[:8]!r}",
                expected="an EDF or BDF file",
                remedy=f"{AGAIN} Other formats have readers of their own.",
            )
        try:
            count = int(fixed[252:256])
            offset, records, seconds = int(fixed[184:192]), int(fixed[236:244]), float(fixed[244:252])
            columns = [[stream.read(width).decode("latin1").strip() for _ in range(count)] for width in WIDTHS]
            samples = tuple(int(text) for text in columns[SAMPLES])
        except ValueError as error:
            raise DataError(
                file, record="header", found=f"a damaged header ({error})", expected="numbers", remedy=AGAIN
            ) from None
    names, units = tuple(columns[NAME]), tuple(columns[DIMENSION])
    kind = fixed[192:236].decode("latin1")
    header = Header(
        file, names, units, samples, records, seconds, offset, 3 if binary else 2, kind.startswith(("EDF+D", "BDF+D"))
    )
    return _complete(header)


def require_continuous(header: Header) -> None:
    """Compare the onsets of the records of a file that is declared discontinuous.

    Raises
    ------
    DataError
        There is a gap, or the onsets are not there.
    """
    if not header.discontinuous:
        return
    place = next((index for index, name in enumerate(header.names) if name in ANNOTATIONS), None)
    onsets = [] if place is None else _onsets(header, place)
    for index, onset in enumerate(onsets):
        expected = onsets[0] + index * header.seconds
        tolerance = 0.5 * header.seconds / max(header.samples)
        if abs(onset - expected) > tolerance:
            raise DataError(
                header.file,
                record=f"record {index + 1}",
                found=f"an onset of {onset:g} s in a discontinuous file (EDF+D)",
                expected=f"{expected:g} s, right behind the record before",
                remedy="Export each uninterrupted part as a file of its own (EDF+C).",
            )
    if len(onsets) != header.records:
        raise DataError(
            header.file,
            found=f"onsets of {len(onsets)} of {header.records} records in a discontinuous file (EDF+D)",
            expected="an onset in each record",
            remedy="Export the recording as EDF+C.",
        )


def _complete(header: Header) -> Header:
    if header.seconds <= 0 or header.record_bytes <= 0:
        raise DataError(
            header.file,
            record="header",
            found=f"records of {header.seconds:g} s and {header.record_bytes} bytes",
            expected="records with samples",
            remedy=AGAIN,
        )
    there = (header.file.stat().st_size - header.offset) / header.record_bytes
    if header.records == -1:  # a recording that was not closed: the header was never brought up to date
        return Header(**{**header.__dict__, "records": int(there)})
    if there < header.records:
        raise DataError(
            header.file,
            found=f"{there:.2f} records",
            expected=f"{header.records}, as the header says",
            remedy=f"The file is cut short. {AGAIN}",
        )
    return header


def _onsets(header: Header, place: int) -> list[float]:
    found = []
    begin = sum(header.samples[:place]) * header.width
    with header.file.open("rb") as stream:
        for index in range(header.records):
            stream.seek(header.offset + index * header.record_bytes + begin)
            match = ONSET.match(stream.read(header.samples[place] * header.width))
            if match is None:
                break
            found.append(float(match[1]))
    return found
