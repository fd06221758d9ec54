"""What is expected of a month of a flux tower: limits in physical units, and the rules made of them.

The limits ask whether an instrument can have measured this, not whether the weather was unusual; they are the project's
own, rounded outwards. Energy balance ratio: about 0.8 on average over FLUXNET (Wilson et al. 2002, Agricultural and
Forest Meteorology 113).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, Field

from stages.ingest.land_atmosphere.schema import RECORD_COLUMNS, UNITS, Variable
from stages.params import Config
from stages.validate.expectations import Rule, Severity, between

DAY = 1440  # minutes
HALF_HOUR = 30  # minutes
MONTH = 30 * DAY  # the step of monthly series, which ingest leaves null
NO_DOUBTS: Mapping[str, str] = {}
KINDS = {"String": "text", "Int64": "integer", "Float64": "number"}


def _ascending(bounds: tuple[float, float]) -> tuple[float, float]:
    if bounds[0] > bounds[1]:
        raise ValueError(f"the lower bound {bounds[0]:g} is above the upper bound {bounds[1]:g}")
    return bounds


Bounds = Annotated[tuple[float, float], AfterValidator(_ascending)]
Hours = Annotated[float | None, Field(gt=0)]


class Ranges(Config):
    """Lowest and highest value an instrument can have measured."""

    SWC: Bounds = Field((0.0, 1.0), description="m3 m-3")
    P: Bounds = Field((0.0, 150.0), description="mm per half-hour; scaled to the step of the series")
    LE: Bounds = Field((-300.0, 1000.0), description="W m-2")
    H: Bounds = Field((-300.0, 1000.0), description="W m-2")
    G: Bounds = Field((-250.0, 500.0), description="W m-2")
    NETRAD: Bounds = Field((-250.0, 1200.0), description="W m-2")
    SW_IN: Bounds = Field((-20.0, 1400.0), description="W m-2; above the solar constant through clouds that reflect")
    VPD: Bounds = Field((-0.5, 100.0), description="hPa; below 0 by the error of the hygrometer in fog")
    TA: Bounds = Field((-60.0, 55.0), description="degC")


class DailyRanges(Ranges):
    """The same for daily and coarser means, and for daily sums of precipitation."""

    P: Bounds = Field((0.0, 500.0), description="mm per day; scaled to the step of the series")
    LE: Bounds = Field((-100.0, 350.0), description="W m-2")
    H: Bounds = Field((-200.0, 350.0), description="W m-2")
    G: Bounds = Field((-100.0, 150.0), description="W m-2")
    NETRAD: Bounds = Field((-200.0, 400.0), description="W m-2")
    SW_IN: Bounds = Field((-5.0, 500.0), description="W m-2")
    VPD: Bounds = Field((-0.5, 80.0), description="hPa")
    TA: Bounds = Field((-60.0, 45.0), description="degC")


class ConstantHours(Config):
    """Longest believable run of one measured value other than zero within a month, in hours; null: not judged."""

    SWC: Hours = Field(240.0, description="hours; coarse probes in dry or frozen soil hold one value for days")
    P: Hours = Field(None, description="hours; tips of a gauge are all alike")
    LE: Hours = Field(6.0, description="hours")
    H: Hours = Field(6.0, description="hours")
    G: Hours = Field(48.0, description="hours; nearly still under snow")
    NETRAD: Hours = Field(24.0, description="hours; overcast nights are nearly still")
    SW_IN: Hours = Field(24.0, description="hours; a night may hold one offset")
    VPD: Hours = Field(24.0, description="hours")
    TA: Hours = Field(24.0, description="hours; melting snow holds the air near 0")


class DailyConstantHours(ConstantHours):
    """The same for daily values, of which some may be alike by rounding; scaled for coarser steps."""

    LE: Hours = Field(72.0, description="hours")
    H: Hours = Field(72.0, description="hours")
    G: Hours = Field(72.0, description="hours")
    NETRAD: Hours = Field(72.0, description="hours")
    SW_IN: Hours = Field(72.0, description="hours")
    VPD: Hours = Field(72.0, description="hours")
    TA: Hours = Field(72.0, description="hours")


class SubDaily(Config):
    """Limits on series with steps shorter than a day."""

    range: Ranges = Ranges()
    constant_hours: ConstantHours = ConstantHours()


class Daily(Config):
    """Limits on daily series."""

    range: DailyRanges = DailyRanges()
    constant_hours: DailyConstantHours = DailyConstantHours()


class Gate(Config):
    """Limits of the gate. A site's own gate names only those it changes."""

    max_quarantined: float = Field(0.2, ge=0, le=1, description="share of a site's months, and of all")
    min_present: float = Field(0.5, ge=0, le=1, description="share of the month's steps that stand in the file")
    min_coverage: float = Field(0.2, ge=0, le=1, description="share of the month's steps with a value, per variable")
    max_filled: float = Field(0.5, ge=0, le=1, description="share of gap-filled values, per variable; above: warning")
    max_sentinel: float = Field(0.0, ge=0, le=1, description="share of cells with an undeclared missing-value code")
    max_conflicting: int = Field(0, ge=0, description="time stamps that stand twice with different values")
    peak_hours: Bounds = Field((10.0, 14.0), description="local standard time of the peak of mean shortwave radiation")
    peak_min_sw_in: float = Field(20.0, description="W m-2; months with a lower mean (polar night) are not judged")
    peak_min_coverage: float = Field(0.5, ge=0, le=1, description="months with less shortwave are not judged")
    energy_balance: Bounds = Field((0.5, 1.3), description="(LE + H) / (NETRAD - G); outside: warning")
    energy_balance_min: float = Field(20.0, description="W m-2; months with a lower mean of NETRAD - G are not judged")
    driest_soil: float = Field(0.02, ge=0, le=1, description="m3 m-3; SWC below it: warning, a probe that drops out")
    trusted_units: tuple[Variable, ...] = Field(
        (), description="variables whose declared unit is right although their values look like another"
    )
    subdaily: SubDaily = SubDaily()
    daily: Daily = Daily()

    def overridden(self, override: Gate | None) -> Gate:
        """These limits with those that a site's own gate sets."""
        if override is None:
            return self
        return Gate.model_validate(_merge(self.model_dump(), override.model_dump(exclude_unset=True)))


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        merged[key] = _merge(base[key], value) if isinstance(value, Mapping) else value
    return merged


def columns() -> dict[str, str]:
    """Columns the gate needs in records.parquet, each with its kind of type."""
    return {name: KINDS[dtype] for name, dtype in RECORD_COLUMNS.items()}


def summary_frame(records: pl.DataFrame, gate: Gate, doubts: Mapping[str, str] = NO_DOUBTS) -> pl.DataFrame:
    """records.parquet with the figures that stand between columns, in the order of the record ids.

    Adds present_share, best_coverage (of the variable covered best), variables (how many are measured at all),
    unit_doubt_V (what ``doubts`` has against the unit of V; null where nothing, or where the gate trusts it),
    judged_peak_hour (null in months with too little shortwave radiation to tell) and judged_balance (null where too few
    steps have all four fluxes, or there is little energy to balance).
    """
    bright = (pl.col("mean_SW_IN") >= gate.peak_min_sw_in) & (pl.col("coverage_SW_IN") >= gate.peak_min_coverage)
    covered = pl.col("energy_balance_steps") >= gate.min_coverage * pl.col("expected_steps")
    lively = pl.col("mean_NETRAD") - pl.col("mean_G") >= gate.energy_balance_min
    return records.sort("record_id", "sha256").with_columns(
        (pl.col("present_steps") / pl.col("expected_steps")).alias("present_share"),
        pl.max_horizontal(f"coverage_{variable}" for variable in UNITS).fill_null(0.0).alias("best_coverage"),
        pl.sum_horizontal(pl.col(f"coverage_{variable}").fill_null(0.0) > 0 for variable in UNITS)
        .cast(pl.Int64)
        .alias("variables"),
        *(
            pl.lit(None if variable in gate.trusted_units else doubts.get(variable), dtype=pl.String).alias(
                f"unit_doubt_{variable}"
            )
            for variable in UNITS
        ),
        pl.when(bright).then("sw_in_peak_hour").alias("judged_peak_hour"),
        pl.when(covered & lively).then("energy_balance_ratio").alias("judged_balance"),
    )


def measured(records: pl.DataFrame) -> list[str]:
    """Variables the site has: their coverage is known for at least one month."""
    return [variable for variable in UNITS if records[f"coverage_{variable}"].is_not_null().any()]


def rules(records: pl.DataFrame, gate: Gate) -> list[Rule]:
    """The rules for the months of one site, gravest first."""
    steps = sorted(records["resolution_minutes"].drop_nulls().mode().to_list())
    step = int(steps[0]) if steps else MONTH
    limits: SubDaily | Daily = gate.daily if step >= DAY else gate.subdaily
    here = measured(records)
    return [
        *_stamps(gate, step),
        *(_unit(variable) for variable in here),
        *(_sentinel(variable, gate) for variable in here),
        *(rule for variable in here for rule in _range(variable, limits, step)),
        *(rule for variable in here for rule in _constant(variable, limits, step)),
        *_physics(gate),
        *([_dry(gate)] if "SWC" in here else []),
        *(rule for variable in here for rule in _coverage(variable, gate)),
    ]


def _stamps(gate: Gate, step: int) -> list[Rule]:
    return [
        Rule(
            "year present",
            "expect_column_values_to_not_be_null",
            {"column": "year"},
            "quarantine",
            "{record_id} has no year, so it fits no split by year",
            "null",
        ),
        Rule(
            "one resolution",
            "expect_column_values_to_be_in_set",
            {"column": "resolution_minutes", "value_set": [step]},
            "quarantine",
            f"{{record_id}} has steps of {{value}} minutes; most months of the site have {step}",
            "{value} minutes",
        ),
        between(
            "steps present",
            "present_share",
            gate.min_present,
            None,
            severity="quarantine",
            reason="{present_steps} of {expected_steps} steps ({value:.1%}) of {record_id} stand in the file; "
            f"the gate asks for at least {gate.min_present:.1%}",
            observed="{value:.1%}",
        ),
        between(
            "anything measured",
            "best_coverage",
            gate.min_coverage,
            None,
            severity="quarantine",
            reason="no variable is measured often enough in {record_id}: the best reaches {value:.1%} of the steps; "
            f"the gate asks for at least {gate.min_coverage:.1%} of one",
            observed="{value:.1%}",
        ),
        between(
            "conflicting stamps",
            "conflicting_stamps",
            None,
            gate.max_conflicting,
            severity="quarantine",
            reason="{value} time stamps of {record_id} stand more than once with different values; "
            f"the gate allows {gate.max_conflicting}",
            observed="{value} stamps",
        ),
        between(
            "several variables",
            "variables",
            2,
            None,
            severity="warning",
            reason=f"{{value}} of {len(UNITS)} variables is measured in {{record_id}}, too few for most systems: does "
            "the `format` find all columns? site.json notes what it passed over",
            observed="{value} variables",
        ),
        between(
            "duplicate stamps",
            "duplicate_stamps",
            None,
            0,
            severity="warning",
            reason="{value} rows of {record_id} repeat a time stamp with the same values; they are read once",
            observed="{value} rows",
        ),
        between(
            "stamps in order",
            "unsorted_stamps",
            None,
            0,
            severity="warning",
            reason="{value} time stamps of {record_id} stand before an earlier one; they were sorted",
            observed="{value} stamps",
        ),
    ]


def _unit(variable: str) -> Rule:
    return Rule(
        f"unit of {variable}",
        "expect_column_values_to_be_null",
        {"column": f"unit_doubt_{variable}"},
        "quarantine",
        f"{{value}}, or, if the unit is right after all, say so in its `gate`: `trusted_units: [{variable}]`",
        "the values look like another unit",
    )


def _sentinel(variable: str, gate: Gate) -> Rule:
    return between(
        f"missing-value code in {variable}",
        f"sentinel_{variable}",
        None,
        gate.max_sentinel,
        severity="quarantine",
        reason=f"{{value:.2%}} of the {variable} cells of {{record_id}} hold a missing-value code the format does not "
        f"declare (such as -999); the gate allows {gate.max_sentinel:.2%}: declare the code in the site's format",
        observed="{value:.2%}",
    )


def _range(variable: str, limits: SubDaily | Daily, step: int) -> list[Rule]:
    low, high = getattr(limits.range, variable)
    unit = UNITS[variable]
    if variable == "P":
        unit = "mm a day" if step == DAY else f"mm in {step} minutes"
        high *= step / (DAY if step >= DAY else HALF_HOUR)
    allows = f"the gate allows {low:g} to {high:g}"
    told = {"severity": "quarantine", "observed": f"{{value}} {unit}"}
    return [
        between(
            f"highest {variable}",
            f"maximum_{variable}",
            None,
            high,
            reason=f"{variable} reaches {{value}} {unit} in {{record_id}}; {allows}",
            **told,  # type: ignore[arg-type]
        ),
        between(
            f"lowest {variable}",
            f"minimum_{variable}",
            low,
            None,
            reason=f"{variable} falls to {{value}} {unit} in {{record_id}}; {allows}",
            **told,  # type: ignore[arg-type]
        ),
    ]


def _constant(variable: str, limits: SubDaily | Daily, step: int) -> list[Rule]:
    hours = getattr(limits.constant_hours, variable)
    if hours is None:
        return []
    hours *= max(1.0, step / DAY)
    return [
        between(
            f"stuck {variable}",
            f"constant_hours_{variable}",
            None,
            hours,
            severity="quarantine",
            reason=f"{variable} holds one value for {{value}} hours in {{record_id}}; the gate allows {hours:g}: "
            "stuck sensor or filled gap?",
            observed="{value} hours",
        )
    ]


def _physics(gate: Gate) -> list[Rule]:
    first, last = gate.peak_hours
    low, high = gate.energy_balance
    return [
        between(
            "shortwave peaks at noon",
            "judged_peak_hour",
            first,
            last,
            severity="quarantine",
            reason="shortwave radiation peaks at {value:clock} local standard time in {record_id}; the gate allows "
            f"{_clock(first)} to {_clock(last)}: wrong time zone?",
            observed="{value:clock}",
        ),
        between(
            "energy balance",
            "judged_balance",
            low,
            high,
            severity="warning",
            reason="turbulent over available energy is {value:.2f} in {record_id}; "
            f"towers usually lie between {low:g} and {high:g}",
            observed="{value:.2f}",
        ),
    ]


def _dry(gate: Gate) -> Rule:
    return between(
        "driest SWC",
        "minimum_SWC",
        gate.driest_soil,
        None,
        severity="warning",
        reason=f"SWC falls to {{value}} m3 m-3 in {{record_id}}, drier than soil in the field ({gate.driest_soil:g}): "
        "does the probe drop out?",
        observed="{value} m3 m-3",
    )


def _clock(hour: float) -> str:
    return f"{int(hour):02d}:{round(hour % 1 * 60):02d}"


def _coverage(variable: str, gate: Gate) -> list[Rule]:
    severity: Severity = "warning"
    return [
        between(
            f"coverage of {variable}",
            f"coverage_{variable}",
            gate.min_coverage,
            None,
            severity=severity,
            reason=f"{variable} is measured in {{value:.1%}} of {{record_id}}; "
            f"the gate warns below {gate.min_coverage:.1%}",
            observed="{value:.1%}",
        ),
        between(
            f"gap-filling of {variable}",
            f"filled_{variable}",
            None,
            gate.max_filled,
            severity=severity,
            reason=f"{{value:.1%}} of {variable} in {{record_id}} is gap-filled; "
            f"the gate warns above {gate.max_filled:.1%}",
            observed="{value:.1%}",
        ),
    ]
