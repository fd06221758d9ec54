"""Broken files, each with the words its error must have: what is wrong, where, and what to do."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import xarray as xr

from stages.errors import DataError
from tests.ingest.towers import fluxnet_name, half_hours, ingest, stamps, table, write, write_zip

GOOD = table(half_hours("2015-01-01T00:00", {"TA": [1.5, 2.5, 3.5, 4.5], "H": [10, 20, 30, 40]}))
LINES = GOOD.splitlines(keepends=True)


def replaced(line: int, old: str, new: str) -> str:
    lines = list(LINES)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    return "".join(lines)


BROKEN = {
    "empty": ("", "an empty file"),
    "blank": ("\n \n", "an empty file"),
    "header only": (LINES[0], "a header without data"),
    "comments only": ("# a\n# b\n", "comments and blank lines only"),
    "last line cut": (GOOD.rstrip("\n")[:-6], "line 5: found 3 fields in the last line: the file is cut short"),
    "last line cut in the stamp": (GOOD[: GOOD.rindex("2015010101") + 6], "line 5: found 1 fields in the last line"),
    "line with too few fields": (replaced(3, "2.5,20", "2.5"), "line 3: found 3 fields; expected 4"),
    "line with too many fields": (replaced(3, "2.5,20", "2.5,20,99"), "line 3: found 5 fields; expected 4"),
    "short and long line": (replaced(3, "2.5,20", "2.5").replace(",30\n", ",30,7\n"), "line 3: found 3 fields"),
    "wrong delimiter": (GOOD.replace(",", ";"), "columns separated by ';'; expected ','. Set `delimiter: ';'`"),
    "tabs": (GOOD.replace(",", "\t"), r"columns separated by '\t'"),
    "no time column": (GOOD.replace("TIMESTAMP_", "T_"), "column 'TIMESTAMP_START': found no such column"),
    "no known variable": (GOOD.replace(",TA,H", ",X,Y"), "none of the variables SWC, P, LE"),
    "text in a number": (replaced(4, "3.5", "abc"), "line 4, column 'TA': found 'abc'; expected a number"),
    "latin-1 in a number": (replaced(4, "3.5", "3\xb75"), "line 4, column 'TA': found"),
    "unparseable stamp": (
        replaced(3, "201501010030", "2015-13-01"),
        "line 3, column 'TIMESTAMP_START': found '2015-13-01'",
    ),
    "impossible month": (
        replaced(3, "201501010030,", "201513010030,"),
        "line 3, column 'TIMESTAMP_START': found 201513010030",
    ),
    "impossible day": (replaced(3, "201501010030,", "201502300030,"), "found 201502300030"),
    "impossible minute": (replaced(3, "201501010030,", "201501010075,"), "found 201501010075"),
    "stamps of two lengths": (
        replaced(3, "201501010030,", "20150101,"),
        "line 3, column 'TIMESTAMP_START': found 20150101",
    ),
    "missing stamp": (replaced(3, "201501010030,", ","), "line 3, column 'TIMESTAMP_START': found an empty stamp"),
    "far stamp": (
        replaced(5, "201501010130,201501010200", "209901010130,209901010200"),
        "line 5: found the stamp 2099-01-01",
    ),
    "off the grid": (
        GOOD + "201501010207,201501010237,5.5,50\n201501010230,201501010300,5.5,50\n",
        "line 6: found the stamp 2015-01-01 02:07, off the grid like 1 in all",
    ),
    "duplicate column": (GOOD.replace(",TA,H", ",TA,TA"), "column 'TA': found 2 columns of this name"),
    "a carriage return inside a line": (replaced(3, "2.5,20", "2.5\r20"), "line 3: found 3 fields; expected 4"),
    "old Mac lines": (GOOD.replace("\n", "\r"), "a carriage return alone"),
    "start and end exchanged": (
        GOOD.replace("_START", "_X").replace("_END", "_START").replace("_X", "_END"),
        "line 2: found TIMESTAMP_END not after TIMESTAMP_START",
    ),
    "unequal intervals": (replaced(3, "201501010100", "201501010130"), "line 3: found an interval of 60 min"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_a_broken_text_is_refused_in_words(tmp_path: Path, text: str, words: str) -> None:
    write(tmp_path / "tower.csv", text, "latin-1")
    with pytest.raises(DataError) as caught:
        ingest(tmp_path, "base")
    assert "tower.csv" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("long_line", [2, 5])
def test_a_long_line_does_not_make_up_for_a_short_one(tmp_path: Path, long_line: int) -> None:
    lines = [line.rstrip("\n") + ",x" for line in LINES]
    lines[2] = lines[2].removesuffix(",20,x")
    lines[long_line - 1] += ",y,z"
    write(tmp_path / "tower.csv", "\n".join(lines) + "\n")
    with pytest.raises(DataError, match=r"line [235]: found \d fields; expected 5"):
        ingest(tmp_path, "base")


def test_a_good_text_is_not_refused(tmp_path: Path) -> None:
    write(tmp_path / "tower.csv", GOOD)
    assert ingest(tmp_path, "base").dataset["H"].values.tolist() == [10, 20, 30, 40]


def test_a_stamp_in_the_notation_of_a_spreadsheet_is_read_where_it_is_exact(tmp_path: Path) -> None:
    write(tmp_path / "tower.csv", replaced(3, "201501010030,", "2.0150101003e+11,"))
    assert ingest(tmp_path, "base").dataset["H"].values.tolist() == [10, 20, 30, 40]
    write(tmp_path / "tower.csv", replaced(3, "201501010030,", "2.01501e+11,"))
    with pytest.raises(DataError, match="found 201501000000"):
        ingest(tmp_path, "base")


def table_block(column: str = "when") -> dict[str, Any]:
    return {
        "reader": "table",
        "time": {"column": column, "label": "start"},
        "columns": {"TA": {"column": "temperature", "unit": "degC"}},
    }


def parquet_bytes(tmp_path: Path) -> bytes:
    frame = pl.DataFrame({"when": [s.item() for s in stamps("2015-01-01", 400)], "temperature": np.arange(400.0)})
    frame.write_parquet(tmp_path / "good.parquet")
    content = (tmp_path / "good.parquet").read_bytes()
    (tmp_path / "good.parquet").unlink()
    return content


def netcdf_bytes(tmp_path: Path) -> bytes:
    time = np.array(stamps("2015-01-01", 400), dtype="datetime64[ns]")
    dataset = xr.Dataset({"temperature": ("when", np.arange(400.0))}, coords={"when": time})
    dataset.to_netcdf(tmp_path / "good.nc", engine="h5netcdf")
    content = (tmp_path / "good.nc").read_bytes()
    (tmp_path / "good.nc").unlink()
    return content


def test_truncated_binaries_are_refused(tmp_path: Path) -> None:
    whole = {
        "x.parquet": (parquet_bytes(tmp_path), "a damaged or incomplete parquet file"),
        "x.nc": (netcdf_bytes(tmp_path), "a damaged or incomplete netCDF file"),
        "x.csv.gz": (gzip.compress(GOOD.encode() * 50, mtime=0), "a damaged or incomplete archive"),
    }
    for name, (content, words) in whole.items():
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        (folder / name).write_bytes(content[: len(content) // 2])
        with pytest.raises(DataError) as caught:
            ingest(folder, table_block())
        assert name in str(caught.value)
        assert words in str(caught.value)


def test_damaged_archives_are_refused(tmp_path: Path) -> None:
    archive = tmp_path / "FLX_DE-Tha_FLUXNET2015_FULLSET_2014-2014_1-4.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as target:
        target.writestr(fluxnet_name("HH"), GOOD)
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="a damaged or incomplete zip archive"):
        ingest(tmp_path, "fluxnet")
    archive.write_bytes(content.replace(b"4.5", b"9.5", 1))
    with pytest.raises(DataError, match=r"a damaged or incomplete archive \(Bad CRC-32"):
        ingest(tmp_path, "fluxnet")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.encode("utf-16"), "text in UTF-16; expected text in UTF-8. Convert it: `iconv"),
        (GOOD.encode("utf-16-le"), "text in UTF-16"),
        (b"\x00\x01\x02\x03" * 50, "binary data"),
        (bytes(range(1, 256)) + b"\0\n\0", "binary data"),
        (b"PK\x03\x04" + b"x" * 100, "a zip archive under another name"),
        (gzip.compress(b"a", mtime=0), "a gzip file under another name"),
    ],
    ids=["utf-16", "utf-16 without mark", "zeros", "garbage", "zip", "gzip"],
)
def test_wrong_bytes_are_named(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "tower.csv").write_bytes(content)
    with pytest.raises(DataError) as caught:
        ingest(tmp_path, "base")
    assert words in str(caught.value)


def test_a_workbook_that_is_cut_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tower.xlsx").write_bytes(b"PK\x03\x04 xl/workbook.xml" + b"x" * 100)
    with pytest.raises(DataError, match="a damaged or incomplete workbook"):
        ingest(tmp_path, "base")


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no such file or folder.*Correct `path`"):
        ingest(tmp_path / "nowhere", "base")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="found no file"):
        ingest(tmp_path, "fluxnet")


def test_parquet_with_a_column_of_dates_as_a_variable(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(parquet_bytes(tmp_path))
    block = table_block()
    block["columns"]["TA"]["column"] = "when"
    with pytest.raises(DataError, match=r"column 'when': found type Datetime.*expected numbers"):
        ingest(tmp_path, block)


def test_any_order_of_columns_and_any_others_beside_them(tmp_path: Path) -> None:
    rows = [line.rstrip("\n").split(",") for line in LINES]
    text = "".join(f"x{i},{h},{end},{start},{ta},y\n" for i, (start, end, ta, h) in enumerate(rows))
    write(tmp_path / "tower.csv", text)
    native = ingest(tmp_path, "base")
    assert native.dataset["TA"].values.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert native.dataset["H"].values.tolist() == [10, 20, 30, 40]


def test_an_archive_that_is_cut_is_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = write_zip(write(tmp_path / "own" / "cut.zip", ""), {"tower.csv": GOOD}).read_bytes()
    Path("own/cut.zip").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"^own/cut\.zip: found a damaged or incomplete zip archive"):
        ingest(Path("own"), "base")
