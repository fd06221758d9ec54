"""The block of one tower in params.yaml as typed objects."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from stages.ingest.land_atmosphere.schema import UNITS, Variable
from stages.ingest.land_atmosphere.units import canonical
from stages.params import Config

Resolution = Literal["HH", "HR", "DD", "WW", "MM", "YY"]

NULL_TOKENS = ("", "NA", "N/A", "#N/A", "NaN", "nan", "NAN", "NULL", "null", "None", "-", "--", ".")


class Aggregation(Config):
    """When a day or a three-day period of measured steps is complete enough to have a value."""

    min_coverage: float = Field(0.75, gt=0, le=1, description="measured share of the steps of the period")
    min_quarter_coverage: float = Field(
        0.5, ge=0, le=1, description="measured share required in each quarter of the day (0-6, 6-12, 12-18, 18-24 h)"
    )


class SourceColumn(Config):
    """One variable of a file; a bare column name is short for ``{column: NAME}``."""

    column: str = Field(description="column of the measured values")
    unit: str | None = Field(None, description="unit in the file; default: the unit the format prescribes")
    qc: str | None = Field(None, description="column of the quality flag")
    good: tuple[int, ...] = Field((0, 1), description="flags of values that count as measured")
    filled: str | None = Field(None, description="column of the gap-filled values")


class TableColumn(SourceColumn):
    """One variable of a table without a naming standard: the unit must be said."""

    unit: str = Field(description="unit in the file, such as percent, W m-2, kPa, mm")


class TimeColumn(Config):
    """Where a table holds its time, and what its stamps mean."""

    column: str | tuple[str, str] = Field(description="column of the stamps, or the columns of date and time of day")
    label: Literal["start", "middle", "end"] = Field(description="which moment of the averaging interval is stamped")
    format: str | None = Field(None, description="strptime format; default: ISO 8601, YYYYMMDDHHMM or typed datetimes")
    utc_offset: float | None = Field(None, ge=-12, le=14, description="hours of local standard time ahead of UTC")
    clock: Literal["standard", "utc"] | None = Field(
        None,
        description="standard: the stamps are local standard time, do not look for clock changes; "
        "utc: the stamps are UTC, shift them by utc_offset; default: standard, and clock changes are refused",
    )


class _Delimited(Config):
    sentinels: tuple[float, ...] = Field((-9999.0,), description="numbers that mean missing")
    null_tokens: tuple[str, ...] = Field(NULL_TOKENS, description="texts that mean missing")
    delimiter: str = Field(",", min_length=1, max_length=1, description="separator of the columns")


def _units_are_known(columns: Mapping[str, SourceColumn]) -> Mapping[str, SourceColumn]:
    """Refuse an unknown unit at its own place: ``columns.VPD.unit``."""
    faults: list[InitErrorDetails] = []
    for variable, column in columns.items():
        try:
            canonical(variable, column.unit or UNITS[variable])
        except ValueError as error:
            # The braces of a unit's name must not be read as a template.
            told = PydanticCustomError("unit", "{told}", {"told": str(error)})
            faults.append({"type": told, "loc": (variable, "unit"), "input": column.unit})
    if faults:
        raise ValidationError.from_exception_data("columns", faults)
    return columns


def _bare(value: Any) -> Any:
    return {"column": value} if isinstance(value, str) else value


class _Standard(_Delimited):
    utc_offset: float | None = Field(None, ge=-12, le=14, description="hours of local standard time ahead of UTC")
    clock: Literal["standard", "utc"] | None = Field(None, description="as in the time block of the table reader")
    columns: Annotated[
        dict[Variable, Annotated[SourceColumn, BeforeValidator(_bare)]], AfterValidator(_units_are_known)
    ] = Field({}, description="columns to use in place of the ones chosen by rule")


class Fluxnet(_Standard):
    """FLUXNET2015 and files in its naming: FULLSET or SUBSET, HH, HR, DD, WW, MM or YY."""

    reader: Literal["fluxnet"]
    resolution: Resolution | None = Field(None, description="default: the finest there is")
    min_good_share: float = Field(
        0.75, gt=0, le=1, description="DD and coarser: QC share from which a value counts as measured"
    )


class Base(_Standard):
    """AmeriFlux BASE, ICOS, EddyPro and European fluxdata files with standard variable names."""

    reader: Literal["base"]


class TableFile(_Delimited):
    """Delimited text, parquet, netCDF or xlsx whose columns and units are named here."""

    reader: Literal["table"]
    time: TimeColumn
    columns: Annotated[dict[Variable, TableColumn], AfterValidator(_units_are_known)] = Field(min_length=1)
    comment: str = Field("#", description="lines that start so are skipped before the header")
    header_line: int | None = Field(None, ge=1, description="line that holds the column names; default: the first")
    skip_lines: int = Field(0, ge=0, description="lines between the names and the data, such as a line of units")
    decimal: Literal[".", ","] = Field(".", description="decimal separator")


READERS = ("fluxnet", "base", "table")


def _shorthand(value: Any) -> Any:
    """A bare name is short for ``{reader: NAME}``; an unknown reader is refused at its own place."""
    block = {"reader": value} if isinstance(value, str) else value
    if isinstance(block, Mapping) and block.get("reader") not in READERS:
        reader = block.get("reader")
        close = difflib.get_close_matches(str(reader), READERS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        told = f"no reader has this name; {hint}the readers are {', '.join(READERS)}"
        fault: InitErrorDetails = {
            "type": PydanticCustomError("reader", "{told}", {"told": told}),
            "loc": ("reader",),
            "input": reader,
        }
        raise ValidationError.from_exception_data("format", [fault])
    return block


Format = Annotated[Fluxnet | Base | TableFile, Field(discriminator="reader"), BeforeValidator(_shorthand)]
