"""Tables of any origin: text, parquet and netCDF with named columns and units."""

from __future__ import annotations

import datetime
import gzip
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.errors import DataError
from stages.ingest.land_atmosphere import tables
from stages.ingest.land_atmosphere.members import Member
from stages.ingest.land_atmosphere.tables import Layout
from tests.ingest.towers import ingest, stamps, table, values, write


def block(**changes: Any) -> dict[str, Any]:
    return {
        "reader": "table",
        "time": {"column": "when", "label": "start", **changes.pop("time", {})},
        "columns": {
            "TA": {"column": "temperature", "unit": "K"},
            "SWC": {"column": "moisture", "unit": "percent"},
        },
        **changes,
    }


WHEN = ["2015-01-01 00:00", "2015-01-01 00:30", "2015-01-01 01:00"]


def test_text_with_another_delimiter_decimal_comma_and_a_line_of_units(tmp_path: Path) -> None:
    text = "logger 7\nwhen;temperature;moisture\n-;K;%\n"
    text += "".join(
        f"{stamp};{t};{m}\n" for stamp, t, m in zip(WHEN, ["273,15", "274,15", ""], [20, 21, 22], strict=True)
    )
    write(tmp_path / "x.csv", text)
    native = ingest(tmp_path, block(delimiter=";", decimal=",", header_line=2, skip_lines=1))
    assert values(native, "TA") == [0, 1, None]
    assert values(native, "SWC") == [0.2, 0.21, 0.22]


@pytest.mark.parametrize(
    ("label", "first"),
    [("start", "2015-01-01T00:15"), ("middle", "2015-01-01T00:00"), ("end", "2014-12-31T23:45")],
)
def test_the_label_says_which_moment_is_stamped(tmp_path: Path, label: str, first: str) -> None:
    when = ["2015-01-01T00:15", "2015-01-01T00:45", "2015-01-01T01:15"]
    write(tmp_path / "x.csv", table({"when": when, "temperature": [280] * 3, "moisture": [20] * 3}))
    native = ingest(tmp_path, block(time={"label": label}))
    assert native.dataset["time"].values[0] == np.datetime64(first)
    assert native.dataset["time"].attrs["label"] == "start"


@pytest.mark.parametrize(
    ("form", "when"),
    [
        (None, ["201501010000", "201501010030", "201501010100"]),
        (None, ["2015-01-01T00:00:00", "2015-01-01T00:30:00", "2015-01-01T01:00:00"]),
        ("%d.%m.%Y %H:%M", ["01.01.2015 00:00", "01.01.2015 00:30", "01.01.2015 01:00"]),
        ("%m/%d/%y %H:%M", ["01/01/15 00:00", "01/01/15 00:30", "01/01/15 01:00"]),
    ],
)
def test_stamps_in_iso_digits_or_a_stated_format(tmp_path: Path, form: str | None, when: list[str]) -> None:
    write(tmp_path / "x.csv", table({"when": when, "temperature": [280] * 3, "moisture": [20] * 3}))
    native = ingest(tmp_path, block(time={"format": form}))
    assert [str(t)[:16] for t in native.dataset["time"].values] == [stamp.replace(" ", "T") for stamp in WHEN]


def test_date_and_time_of_day_in_two_columns(tmp_path: Path) -> None:
    columns = {"day": ["2015-01-01"] * 3, "clock": ["00:00", "00:30", "01:00"], "temperature": [280] * 3}
    write(tmp_path / "x.csv", table({**columns, "moisture": [20] * 3}))
    native = ingest(tmp_path, block(time={"column": ["day", "clock"]}))
    assert native.dataset["time"].values[-1] == np.datetime64("2015-01-01T01:00")


def test_a_clock_in_utc_is_moved_by_an_offset_of_five_and_a_half_hours(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", table({"when": WHEN, "temperature": [280] * 3, "moisture": [20] * 3}))
    native = ingest(tmp_path, block(time={"clock": "utc", "utc_offset": 5.5}))
    assert native.dataset["time"].values[0] == np.datetime64("2015-01-01T05:30")
    zoned = [f"{stamp}:00+00:00" for stamp in WHEN]
    write(tmp_path / "x.csv", table({"when": zoned, "temperature": [280] * 3, "moisture": [20] * 3}))
    native = ingest(tmp_path, block(time={"utc_offset": 5.5}))
    assert native.dataset["time"].values[0] == np.datetime64("2015-01-01T05:30")
    with pytest.raises(DataError, match="Set `utc_offset`"):
        ingest(tmp_path, block())


def test_flags_and_filled_columns(tmp_path: Path) -> None:
    columns = {"when": WHEN, "LE": [10, 20, 30], "flag": [0, 2, 1], "LE_f": [11, 21, 31]}
    write(tmp_path / "x.csv", table(columns))
    wanted = {"LE": {"column": "LE", "unit": "W m-2", "qc": "flag", "good": [0], "filled": "LE_f"}}
    native = ingest(tmp_path, block(columns=wanted))
    assert values(native, "LE") == [10, None, None]
    assert values(native, "LE_FILLED") == [None, 21, 31]
    assert native.dataset["LE_QC"].values.tolist() == [0, 2, 1]


def test_one_column_may_serve_two_variables(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", table({"when": WHEN, "one": [10, -9999, 30]}))
    columns = {"TA": {"column": "one", "unit": "degC"}, "SWC": {"column": "one", "unit": "percent"}}
    native = ingest(tmp_path, block(columns=columns))
    assert values(native, "TA") == [10, None, 30]
    assert values(native, "SWC") == [0.1, None, 0.3]


def test_types_come_from_the_schema_not_from_the_first_rows(tmp_path: Path) -> None:
    """Case 42: 100 whole numbers, then 1, 2, 2.1; then null tokens."""
    numbers = ["1"] * 100 + ["1", "2", "2.1", "NA", "", "null", "-9999", "3e-1"]
    columns = {
        "when": [str(s) for s in stamps("2015-01-01", len(numbers))],
        "temperature": numbers,
        "moisture": numbers,
    }
    write(tmp_path / "x.csv", table(columns))
    swc = values(ingest(tmp_path, block()), "SWC")
    assert swc[:100] == [0.01] * 100
    assert swc[100:] == [0.01, 0.02, 0.021, None, None, None, None, 0.003]


def test_parquet_keeps_types_and_reads_a_pandas_index(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "temperature": pl.Series([280, 281, None], dtype=pl.Int32),
            "moisture": ["20", "NA", "22.5"],
            "unasked": [b"x", b"y", b"z"],
            "when": [datetime.datetime(2015, 1, 1, 0, minute) for minute in (0, 15, 30)],
        }
    )
    frame.write_parquet(tmp_path / "x.parquet")
    native = ingest(tmp_path, block())
    assert values(native, "TA") == [6.85, 7.85, None]
    assert values(native, "SWC") == [0.2, None, 0.225]
    assert native.axis.step.minutes == 15


def test_netcdf_with_a_time_coordinate(tmp_path: Path) -> None:
    time = np.array(stamps("2015-01-01", 3), dtype="datetime64[ns]")
    dataset = xr.Dataset(
        {
            "temperature": (("when", "x"), np.array([[280.0], [281.0], [np.nan]])),
            "moisture": ("when", np.array([20, 21, -9999], dtype="int16")),
            "profile": (("when", "depth"), np.zeros((3, 2))),
        },
        coords={"when": time},
    )
    dataset.to_netcdf(tmp_path / "x.nc", engine="h5netcdf")
    native = ingest(tmp_path, block())
    assert values(native, "TA") == [6.85, 7.85, None]
    assert values(native, "SWC") == [0.2, 0.21, None]
    deep = block(columns={"SWC": {"column": "profile", "unit": "percent"}})
    with pytest.raises(DataError, match=r"variable 'profile': found float64 with dimensions \('when', 'depth'\)"):
        ingest(tmp_path, deep)


def test_a_gzip_of_a_text_reads_as_the_text(tmp_path: Path) -> None:
    text = table({"when": WHEN, "temperature": [280] * 3, "moisture": [20] * 3})
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    assert values(ingest(tmp_path, block()), "SWC") == [0.2] * 3


def test_windows_lines_a_byte_order_mark_and_latin_names(tmp_path: Path) -> None:
    text = table(
        {"when": WHEN, "temperature": [280] * 3, "moisture": [20] * 3, "Bemerkung": ["Schnee"] * 3}, end="\r\n"
    )
    write(tmp_path / "bom" / "x.csv", "\ufeff" + text)
    assert values(ingest(tmp_path / "bom", block()), "SWC") == [0.2] * 3
    write(tmp_path / "latin" / "x.csv", text.replace("Schnee", "Tauwasser über 5 °C"), "latin-1")
    assert values(ingest(tmp_path / "latin", block()), "SWC") == [0.2] * 3


def test_blank_lines_and_spaces_around_numbers(tmp_path: Path) -> None:
    text = "when,temperature,moisture\n2015-01-01 00:00, 280 ,20\n\n2015-01-01 00:30,281, 21\n\n\n"
    write(tmp_path / "x.csv", text)
    native = ingest(tmp_path, block())
    assert values(native, "SWC") == [0.2, 0.21]


def test_a_file_of_many_blocks_equals_the_file_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 1000
    rng = np.random.default_rng(3)
    columns = {
        "when": [str(s) for s in stamps("2015-01-01", count)],
        "temperature": rng.normal(280, 5, count).round(4).tolist(),
        "moisture": ["" if missing else "20.5" for missing in rng.random(count) < 0.2],
    }
    write(tmp_path / "x.csv", table(columns).rstrip("\n"))
    whole = ingest(tmp_path, block()).dataset
    for size in (100, 7):
        monkeypatch.setattr("stages.ingest.land_atmosphere.text.BLOCK_BYTES", size)
        assert ingest(tmp_path, block()).dataset.identical(whole)
    assert whole["TA"].values == pytest.approx(np.array(columns["temperature"]) - 273.15, rel=1e-12)


def test_the_place_of_a_row_keeps_no_column_in_memory(tmp_path: Path) -> None:
    write(tmp_path / "x.csv", "when,a,b\n2015-01-01 00:00,1,2\n2015-01-01 00:30,3,4\n")
    read = tables.read(Member("x.csv", tmp_path / "x.csv"), Layout(), ["a", "b"], ["when"])
    columns = [weakref.ref(column.base) for column in read.numbers.values() if column.base is not None]
    read.numbers.clear()
    assert len(columns) == 2
    assert [column() for column in columns] == [None, None]
    assert read.place(1) == "line 3"


CELL = st.one_of(
    st.none(),
    st.just(-9999.0),
    st.floats(min_value=-1e6, max_value=1e6, allow_nan=False).filter(lambda x: x != -9999.0),
)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(CELL, CELL), min_size=2, max_size=30),
    order=st.permutations(["when", "temperature", "moisture", "unasked"]),
    token=st.sampled_from(["", "NA", "NaN", "-9999", "-9999.0000", "null", " NA "]),
    delimiter=st.sampled_from([",", ";", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_written_as_csv_reads_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[float | None, float | None]],
    order: list[str],
    token: str,
    delimiter: str,
    end: str,
) -> None:
    def text(cell: float | None) -> str:
        return token if cell is None else repr(cell)

    columns = {
        "when": [str(stamp) for stamp in stamps("2015-01-01", len(rows))],
        "temperature": [text(row[0]) for row in rows],
        "moisture": [text(row[1]) for row in rows],
        "unasked": ["ü"] * len(rows),
    }
    folder = tmp_path_factory.mktemp("round_trip")
    write(folder / "x.csv", table({name: columns[name] for name in order}, delimiter=delimiter, end=end))
    units = {"TA": {"column": "temperature", "unit": "degC"}, "SWC": {"column": "moisture", "unit": "m3 m-3"}}
    native = ingest(folder, block(columns=units, delimiter=delimiter))
    for name, place in (("TA", 0), ("SWC", 1)):
        expected = np.array([np.nan if row[place] in (None, -9999.0) else row[place] for row in rows], dtype=float)
        assert np.array_equal(native.dataset[name].values, expected, equal_nan=True)
