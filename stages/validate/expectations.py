"""Great Expectations on a summary frame: one row per record, one suite per table.

A rule becomes one expectation of a suite, and a suite is plain JSON here: :func:`judge` takes nothing else, so a suite
that was saved and read back gives the verdict it gave before. Instants would break that promise (JSON turns them into
text, and text is never equal to an instant): they cross the door as seconds since 1970, in the frame and in the suite.
"""

from __future__ import annotations

import functools
import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from stages.errors import StageError

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["quarantine", "warning"]

SEVERITY_IN_GX: dict[Severity, str] = {"quarantine": "critical", "warning": "warning"}
ABOUT_NULL = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")  # a null is judged, too
ROW = "row"  # position in the frame: a key where record ids are not unique
RECORD = "record_id"


class Shown(float):
    """A number as reasons show it: six digits, no trailing zeros, no exponent; ``clock`` turns 18.5 into 18:30."""

    def __format__(self, spec: str) -> str:
        if spec == "clock":
            minutes = round(float(self) * 60) if math.isfinite(self) else 0
            return f"{minutes // 60:02d}:{minutes % 60:02d}"
        if spec:
            return float.__format__(self, spec)
        if not math.isfinite(self):
            return str(float(self))
        value = float(self) or 0.0  # no minus before zero
        digits = 0 if abs(value) >= 100_000 or value == 0 else 5 - math.floor(math.log10(abs(value)))
        text = f"{value:.{min(digits, 12)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Rule:
    """What is expected of every record (or of the table), how grave a failure is, and how it is told.

    Parameters
    ----------
    name
        Unique in its suite; stands in the verdict and is counted in the summary.
    expectation, kwargs
        Type and arguments of the expectation, as Great Expectations names them.
    severity
        ``quarantine`` refuses the record, ``warning`` only tells.
    reason, observed
        Templates for :meth:`str.format`, filled with ``value`` and the columns of the record. Numbers are
        :class:`Shown`.
    """

    name: str
    expectation: str
    kwargs: Mapping[str, Any]
    severity: Severity
    reason: str
    observed: str = "{value}"

    @property
    def column(self) -> str | None:
        """The column the rule reads; none where it is about the whole table."""
        column = self.kwargs.get("column")
        return None if column is None else str(column)


@dataclass(frozen=True)
class Failure:
    """One record that fails a rule."""

    row: int
    reason: str
    observed: str


@dataclass(frozen=True)
class Result:
    """How one rule went on one table.

    ``judged`` and ``not_judged`` count records; a record whose value is null is not judged. ``table_reason`` is set
    where a rule about the whole table fails.
    """

    rule: Rule
    success: bool
    judged: int
    not_judged: int
    failures: tuple[Failure, ...] = field(default=())
    table_reason: str | None = None
    table_observed: str | None = None


def between(
    name: str, column: str, low: float | None, high: float | None, *, severity: Severity, reason: str, observed: str
) -> Rule:
    """Rule: the values of a column lie in a closed interval (None: open on that side)."""
    bounds = {key: value for key, value in (("min_value", low), ("max_value", high)) if value is not None}
    kwargs = {"column": column, **bounds}
    return Rule(name, "expect_column_values_to_be_between", kwargs, severity, reason, observed)


def row_count(table: str, least: int = 1) -> Rule:
    """Rule: the table has rows. It stands beside every suite, for an empty table meets all other expectations."""
    reason = f"{table} has {{value}} records; the gate asks for at least {least}"
    return Rule("row count", "expect_table_row_count_to_be_between", {"min_value": least}, "quarantine", reason)


def identity(noun: str = "record") -> list[Rule]:
    """Rules: record_id, group and sha256 are there, and record_id is unique."""
    return [
        Rule(
            "record_id present",
            "expect_column_values_to_not_be_null",
            {"column": RECORD},
            "quarantine",
            f"a {noun} has no record_id",
            "null",
        ),
        Rule(
            "record_id unique",
            "expect_column_values_to_be_unique",
            {"column": RECORD},
            "quarantine",
            f"record_id {{record_id}} stands on more than one {noun}",
        ),
        Rule(
            "group present",
            "expect_column_values_to_not_be_null",
            {"column": "group"},
            "quarantine",
            "{record_id} has no group, so no split can keep it from leaking",
            "null",
        ),
        Rule(
            "sha256 present",
            "expect_column_values_to_not_be_null",
            {"column": "sha256"},
            "quarantine",
            "{record_id} has no sha256 of its content, so no audit can find its copies",
            "null",
        ),
    ]


def columns_table(frame: pl.DataFrame, declared: Mapping[str, str]) -> pl.DataFrame:
    """The columns of a frame as a table to judge: record_id = column, ``declared`` and ``found`` kind of type."""
    rows = [(name, kind, kind_of(frame.schema.get(name), kind)) for name, kind in declared.items()]
    return pl.DataFrame(rows, schema={RECORD: pl.String, "declared": pl.String, "found": pl.String}, orient="row")


def kind_of(dtype: pl.DataType | None, declared: str) -> str:
    """Kind of a polars type: text, integer, number, flag or instant; an all-null column has the declared kind.

    An integer column counts as a number where a number is declared.
    """
    if dtype is None:
        return "missing"
    if dtype == pl.Null:
        return declared
    if dtype.is_integer():
        return "number" if declared == "number" else "integer"
    if dtype.is_float():
        return "number"
    if dtype.is_temporal():
        return "instant"
    return {pl.String: "text", pl.Boolean: "flag"}.get(type(dtype), str(dtype))


def columns_rule(table: str) -> Rule:
    """Rule for :func:`columns_table`: every declared column is there with its kind of type."""
    return Rule(
        "columns",
        "expect_column_pair_values_to_be_equal",
        {"column_A": "found", "column_B": "declared"},
        "quarantine",
        f"column {{record_id}} of {table} is {{found}}; the gate expects {{declared}}",
        "{found}",
    )


def suite_of(name: str, rules: Iterable[Rule], frame: pl.DataFrame) -> dict[str, Any]:
    """The rules as a suite of Great Expectations in plain JSON, ready to be saved.

    ``frame`` tells which columns are instants: their bounds may be given as datetimes, dates or ISO text.
    """
    configurations = [_configuration(rule, frame) for rule in rules]
    names = [item["meta"]["rule"] for item in configurations]
    if len(set(names)) != len(names):
        raise ValueError(f"suite {name}: rule names are not unique: {names}")
    return {"name": name, "expectations": configurations}


def _configuration(rule: Rule, frame: pl.DataFrame) -> dict[str, Any]:
    dtype = None if rule.column is None else frame.schema.get(rule.column)
    instant = dtype is not None and dtype.is_temporal()
    return {
        "type": rule.expectation,
        "kwargs": {key: value if key == "column" else _plain(value, instant) for key, value in rule.kwargs.items()},
        "severity": SEVERITY_IN_GX[rule.severity],
        "meta": {"rule": rule.name, "severity": rule.severity, "reason": rule.reason, "observed": rule.observed},
    }


def _plain(value: Any, instant: bool) -> Any:
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, instant) for item in value]
    if isinstance(value, str) and instant:
        return _seconds(datetime.fromisoformat(value))
    if isinstance(value, datetime | date):
        return _seconds(value)
    return value


def _seconds(value: datetime | date) -> float:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()


def rules_of(suite: Mapping[str, Any]) -> list[Rule]:
    """The rules a suite was made of."""
    return [
        Rule(
            expectation["meta"]["rule"],
            expectation["type"],
            expectation["kwargs"],
            expectation["meta"]["severity"],
            expectation["meta"]["reason"],
            expectation["meta"]["observed"],
        )
        for expectation in suite["expectations"]
    ]


def to_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """A summary frame at the door of Great Expectations: null numbers become NaN, instants seconds since 1970."""
    import pandas as pd

    columns: dict[str, Any] = {ROW: range(frame.height)}
    for series in frame:
        if series.dtype == pl.Null:
            columns[series.name] = pd.Series([math.nan] * frame.height, dtype="float64")
        elif series.dtype in (pl.Date, pl.Datetime):
            seconds = series.cast(pl.Datetime("us")).dt.epoch("us").cast(pl.Float64) / 1e6
            columns[series.name] = pd.Series(seconds.to_numpy(), dtype="float64")
        elif series.dtype.is_numeric():
            columns[series.name] = pd.Series(series.to_numpy())
        else:
            columns[series.name] = pd.Series(series.to_list(), dtype="object")
    return pd.DataFrame(columns)


def judge(frame: pl.DataFrame, suite: Mapping[str, Any]) -> list[Result]:
    """Run a suite on a summary frame.

    Parameters
    ----------
    frame
        One row per record, with the column record_id.
    suite
        What :func:`suite_of` returned, as it is or read back from a file.

    Returns
    -------
    list of Result
        In the order of the suite, with failures in the order of the rows.

    Raises
    ------
    StageError
        An expectation could not be evaluated. It never counts as met.
    """
    rules = rules_of(suite)
    outcomes = _validate(to_pandas(frame), suite)
    return [_result(rule, outcomes[rule.name], frame) for rule in rules]


def _result(rule: Rule, outcome: Mapping[str, Any], frame: pl.DataFrame) -> Result:
    faults = outcome["exception_info"]
    if not outcome["result"] and (faults.get("raised_exception") is not False):
        messages = sorted({str(fault["exception_message"]) for fault in faults.values() if isinstance(fault, Mapping)})
        raise StageError(f"The expectation {rule.name!r} could not be evaluated: {' '.join(messages)}")
    details = outcome["result"]
    if "unexpected_index_list" not in details:
        value = details.get("observed_value")
        shown = {"value": _shown(value)}
        return Result(
            rule,
            outcome["success"],
            judged=frame.height,
            not_judged=0,
            table_reason=None if outcome["success"] else rule.reason.format_map(shown),
            table_observed=rule.observed.format_map(shown),
        )
    missing = 0 if rule.expectation in ABOUT_NULL else int(details["missing_count"])
    rows = sorted({int(index[ROW]) for index in details["unexpected_index_list"] or []})
    failures = tuple(_failure(rule, row, frame) for row in rows)
    return Result(rule, not failures, frame.height - missing, missing, failures)


def _failure(rule: Rule, row: int, frame: pl.DataFrame) -> Failure:
    record = {name: _shown(value) for name, value in frame.row(row, named=True).items()}
    if rule.column is not None:
        record["value"] = record[rule.column]
    return Failure(row, rule.reason.format_map(record), rule.observed.format_map(record))


def _shown(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    return Shown(value)


def _validate(table: pd.DataFrame, suite: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Results by rule name, as Great Expectations gives them."""
    gx = great_expectations()
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("summary").add_dataframe_asset("records")
    batch = asset.add_batch_definition_whole_dataframe("all").get_batch({"dataframe": table})
    validation = batch.validate(
        gx.ExpectationSuite(name=suite["name"], expectations=[dict(item) for item in suite["expectations"]]),
        result_format={
            "result_format": "COMPLETE",
            "unexpected_index_column_names": [ROW, RECORD],
            "include_unexpected_rows": False,
        },
    )
    # Great Expectations may return results in another order than it was asked.
    return {
        item.expectation_config.meta["rule"]: {
            "success": bool(item.success),
            "result": item.result,
            "exception_info": item.exception_info,
        }
        for item in validation.results
    }


@functools.cache
def great_expectations() -> Any:
    """The module, imported on first use (seconds), with its analytics off."""
    os.environ["GX_ANALYTICS_ENABLED"] = "false"
    with warnings.catch_warnings():
        # Version 1.24 imports sre_constants and sre_parse, deprecated since Python 3.11.
        warnings.filterwarnings("ignore", message="module 'sre_.*' is deprecated", category=DeprecationWarning)
        import great_expectations as gx
    return gx


def failed(results: Sequence[Result], severity: Severity | None = None) -> list[Result]:
    """The results that are no success, of one severity or of any."""
    return [r for r in results if not r.success and severity in (None, r.rule.severity)]
