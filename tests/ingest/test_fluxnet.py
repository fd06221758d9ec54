"""FLUXNET2015: every resolution, its flags, and a folder as it is downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openpyxl
import pytest

from stages.errors import DataError
from stages.ingest.land_atmosphere.records import monthly
from tests.ingest.towers import days, digits, fluxnet_name, half_hours, ingest, stamps, table, values, write, write_zip


def flagged(count: int = 4) -> dict[str, list[object]]:
    """One measured, one well filled, one poorly filled and one missing half-hour."""
    assert count == 4
    return {
        "TA_F": [1.5, 2.5, 3.5, -9999],
        "TA_F_QC": [0, 1, 2, -9999],
        "LE_F_MDS": [100, 110, 120, -9999],
        "LE_F_MDS_QC": [0, 1, 3, -9999],
        "SWC_F_MDS_1": [20, 21, 22, 23],
        "SWC_F_MDS_1_QC": [0, 0, 0, 0],
        "SWC_F_MDS_2": [30, 31, 32, 33],
        "SWC_F_MDS_2_QC": [0, 0, 0, 0],
        "NETRAD": [50, -9999, 70, 80],
    }


def test_half_hours_keep_measured_and_filled_values_apart(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HH"), table(half_hours("2014-07-01T00:00", flagged())))
    native = ingest(tmp_path, "fluxnet")
    assert values(native, "TA") == [1.5, None, None, None]
    assert values(native, "TA_FILLED") == [None, 2.5, 3.5, None]
    assert native.dataset["TA_QC"].values.tolist() == [0, 1, 2, -1]
    assert native.dataset["TA_QC"].dtype == np.int8
    assert native.dataset["TA_QC"].attrs["flag_meanings"] == "none measured good_fill medium_fill poor_fill"
    assert values(native, "NETRAD") == [50, None, 70, 80]
    assert "NETRAD_FILLED" not in native.dataset
    assert native.dataset["time"].values.astype("datetime64[m]").tolist()[0] == np.datetime64("2014-07-01T00:00").item()


def test_the_shallowest_layer_is_chosen_and_the_others_named(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HH"), table(half_hours("2014-07-01T00:00", flagged())))
    swc = ingest(tmp_path, "fluxnet").dataset["SWC"]
    assert swc.values.tolist() == pytest.approx([0.20, 0.21, 0.22, 0.23])
    assert swc.attrs["source_column"] == "SWC_F_MDS_1"
    assert swc.attrs["other_columns"] == ["SWC_F_MDS_2"]
    deeper = ingest(tmp_path, {"reader": "fluxnet", "columns": {"SWC": "SWC_F_MDS_2"}}).dataset["SWC"]
    assert deeper.values.tolist() == pytest.approx([0.30, 0.31, 0.32, 0.33])
    assert deeper.attrs["other_columns"] == ["SWC_F_MDS_1"]


def test_hours(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HR"), table(half_hours("2014-07-01T00:00", flagged(), step=60)))
    native = ingest(tmp_path, "fluxnet")
    assert native.axis.step.minutes == 60
    assert values(native, "LE") == [100, None, None, None]


def daily(first: str = "2014-01-30", count: int = 4) -> dict[str, list[object]]:
    return {
        "TIMESTAMP": [digits(stamp, 8) for stamp in stamps(first, count, 1440)],
        "P_F": [5.0, 0.0, 2.0, 1.0],
        "P_F_QC": [1, 1, 0.5, 1],
        "LE_F_MDS": [80, 81, 82, 83],
        "LE_F_MDS_QC": [0.979167, 0.75, 0.7, 0],
    }


def test_days_count_as_measured_from_a_share_of_good_half_hours(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("DD", "SUBSET"), table(daily()))
    native = ingest(tmp_path, "fluxnet")
    assert values(native, "LE") == [80, 81, None, None]
    assert values(native, "LE_FILLED") == [None, None, 82, 83]
    assert native.dataset["LE_QC"].values.tolist() == [98, 75, 70, 0]
    assert native.dataset["LE_QC"].attrs["units"] == "percent"
    assert "min_good_share 0.75" in native.dataset["LE"].attrs["quality"]
    assert values(native, "P") == [5.0, 0.0, None, 1.0]
    strict = ingest(tmp_path, {"reader": "fluxnet", "min_good_share": 0.9})
    assert values(strict, "LE") == [80, None, None, None]


def test_a_daily_file_gives_one_record_for_each_month(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("DD"), table(daily()))
    records = monthly(ingest(tmp_path, "fluxnet"), "de-tha")
    assert records["record_id"].to_list() == ["de-tha/2014-01", "de-tha/2014-02"]
    assert records["expected_steps"].to_list() == [31, 28]
    assert records["present_steps"].to_list() == [2, 2]
    assert records["coverage_LE"].to_list() == [2 / 31, 0.0]
    assert records["filled_LE"].to_list() == [0.0, 2 / 28]


def test_weeks_run_from_new_year_and_the_last_takes_the_rest(tmp_path: Path) -> None:
    starts = [np.datetime64("2014-01-01") + 7 * week for week in range(52)]
    columns = {
        "TIMESTAMP_START": [digits(day, 8) for day in starts],
        "TIMESTAMP_END": [digits(day + 6, 8) for day in starts[:-1]] + ["20141231"],
        "P_F": [1.0] * 52,
        "P_F_QC": [1] * 52,
    }
    write(tmp_path / fluxnet_name("WW"), table(columns))
    native = ingest(tmp_path, "fluxnet")
    assert values(native, "P")[:2] == [7.0, 7.0], "mm d-1 becomes the sum of the week"
    assert values(native, "P")[-1] == 8.0, "the 52nd week of 2014 has 8 days"
    assert native.dataset["P"].sum() == 365
    assert monthly(native, "x")["expected_steps"].sum() == 52


def test_months_and_years_become_sums_of_the_calendar(tmp_path: Path) -> None:
    columns = {"TIMESTAMP": ["201401", "201402", "201404"], "P_F": [2.0, 2.0, 1.0], "P_F_QC": [1, 1, 1]}
    write(tmp_path / "m" / fluxnet_name("MM"), table(columns))
    months = ingest(tmp_path / "m", "fluxnet")
    assert values(months, "P") == [62.0, 56.0, None, 30.0], "the missing March is a gap"
    columns = {
        "TIMESTAMP": ["2013", "2014"],
        "P_F": [800.0, 900.0],
        "P_F_QC": [1, 1],
        "TA_F": [8, 9],
        "TA_F_QC": [1, 1],
    }
    write(tmp_path / "y" / fluxnet_name("YY"), table(columns))
    years = ingest(tmp_path / "y", "fluxnet")
    assert values(years, "P") == [800.0, 900.0]
    assert monthly(years, "x")["record_id"].to_list() == ["x/2013", "x/2014"]
    assert monthly(years, "x")["month"].to_list() == [None, None]


def test_a_downloaded_folder_uses_the_finest_fullset_and_lists_the_rest(tmp_path: Path) -> None:
    text = table(half_hours("2014-07-01T00:00", flagged()))
    write(tmp_path / fluxnet_name("HH"), text)
    write(tmp_path / fluxnet_name("HH", "SUBSET"), text)
    write(tmp_path / fluxnet_name("DD"), table(daily()))
    write(tmp_path / "FLX_DE-Tha_FLUXNET2015_ERAI_HH_1989-2014_1-4.csv", "whatever\n")
    write(tmp_path / "FLX_DE-Tha_FLUXNET2015_AUXMETEO_1996-2014_1-4.csv", "whatever\n")
    native = ingest(tmp_path, "fluxnet")
    assert native.tower.files == [fluxnet_name("HH")]
    assert sorted(native.tower.ignored) == sorted(
        [
            fluxnet_name("HH", "SUBSET"),
            fluxnet_name("DD"),
            "FLX_DE-Tha_FLUXNET2015_ERAI_HH_1989-2014_1-4.csv",
            "FLX_DE-Tha_FLUXNET2015_AUXMETEO_1996-2014_1-4.csv",
        ]
    )
    assert any("SUBSET and FULLSET are both there" in note for note in native.notes)
    assert ingest(tmp_path, {"reader": "fluxnet", "resolution": "DD"}).tower.files == [fluxnet_name("DD")]
    with pytest.raises(DataError, match="found resolutions HH, DD; expected WW"):
        ingest(tmp_path, {"reader": "fluxnet", "resolution": "WW"})


def test_an_archive_is_read_without_unpacking_and_once_beside_its_unpacked_file(tmp_path: Path) -> None:
    text = table(half_hours("2014-07-01T00:00", flagged()))
    archive = "FLX_DE-Tha_FLUXNET2015_FULLSET_2014-2014_1-4.zip"
    write_zip(tmp_path / archive, {fluxnet_name("HH"): text, fluxnet_name("DD"): table(daily())})
    native = ingest(tmp_path, "fluxnet")
    assert native.tower.files == [f"{archive}!{fluxnet_name('HH')}"]
    assert values(native, "TA") == [1.5, None, None, None]
    write(tmp_path / fluxnet_name("HH"), text)
    assert ingest(tmp_path, "fluxnet").tower.files == [fluxnet_name("HH")]


def test_a_workbook_reads_as_its_csv_does(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    columns = daily()
    sheet.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        sheet.append([int(row[0]) if isinstance(row[0], str) else row[0], *row[1:]])
    book.save(tmp_path / fluxnet_name("DD").replace(".csv", ".xlsx"))
    write(tmp_path / "csv" / fluxnet_name("DD"), table(columns))
    from_sheet = ingest(tmp_path / fluxnet_name("DD").replace(".csv", ".xlsx"), "fluxnet").dataset
    from_text = ingest(tmp_path / "csv", "fluxnet").dataset
    assert from_sheet.identical(from_text)


def test_consecutive_files_are_joined(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HH", years="2014-2014"), table(half_hours("2014-12-31T22:00", flagged())))
    write(tmp_path / fluxnet_name("HH", years="2015-2015"), table(half_hours("2015-01-01T00:00", flagged())))
    native = ingest(tmp_path, "fluxnet")
    assert values(native, "TA") == [1.5, None, None, None, 1.5, None, None, None]
    assert monthly(native, "x")["source_file"].to_list() == [
        fluxnet_name("HH", years="2014-2014"),
        fluxnet_name("HH", years="2015-2015"),
    ]


def test_two_versions_of_one_period_are_refused_by_name(tmp_path: Path) -> None:
    one, other = fluxnet_name("HH"), fluxnet_name("HH").replace("1-4", "1-3")
    write(tmp_path / one, table(half_hours("2014-07-01T00:00", flagged())))
    write(tmp_path / other, table(half_hours("2014-07-01T00:00", {**flagged(), "TA_F": [9.9, 2.5, 3.5, 1]})))
    with pytest.raises(DataError) as caught:
        ingest(tmp_path, "fluxnet")
    assert one in str(caught.value)
    assert other in str(caught.value)
    assert "2014-07-01 00:00" in str(caught.value)


def test_two_sites_in_one_folder_are_refused(tmp_path: Path) -> None:
    for site in ("DE-Tha", "DE-Hai"):
        write(tmp_path / fluxnet_name("HH", site=site), table(half_hours("2014-07-01T00:00", flagged())))
    with pytest.raises(DataError, match=r"files of several towers: .*DE-Hai.*DE-Tha"):
        ingest(tmp_path, "fluxnet")


def test_a_filled_series_without_its_flag_is_never_called_measured(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HH"), table(half_hours("2014-07-01T00:00", {"TA_F": [1, 2, 3, 4]})))
    native = ingest(tmp_path, "fluxnet")
    assert values(native, "TA") == [None] * 4
    assert values(native, "TA_FILLED") == [1, 2, 3, 4]
    assert any("TA_F has no TA_F_QC" in note for note in native.notes)


@pytest.mark.parametrize(
    "name",
    [
        "ICOSETC_DE-Tha_FLUXNET_HH_L2.csv",
        "AMF_US-Ne1_FLUXNET_FULLSET_HH_2001-2020_3-5.csv",
        "AMF_US-Ne1_FLUXNET_FLUXMET_HH_2001-2020_v1.3_r1.csv",
        "FLX_AU-How_FLUXNET2015_SUBSET_HH_2001-2014_1-4.csv",
    ],
)
def test_the_names_of_other_networks_are_known(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, table(half_hours("2014-07-01T00:00", flagged())))
    assert ingest(tmp_path, "fluxnet").tower.files == [name]


def test_a_folder_without_a_known_file_lists_what_is_there(tmp_path: Path) -> None:
    write(tmp_path / "readme.txt", "hello\n")
    write(tmp_path / "values.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match=r"no FLUXNET file; there is: readme.txt, values.csv; expected FLX_<site>"):
        ingest(tmp_path, "fluxnet")


def test_the_name_and_the_stamps_must_agree_on_the_resolution(tmp_path: Path) -> None:
    write(tmp_path / fluxnet_name("HH"), table(half_hours("2014-07-01T00:00", flagged(), step=60)))
    with pytest.raises(DataError, match="found steps of 60 min; expected 30 min, as the HH in the name says"):
        ingest(tmp_path, "fluxnet")


def test_days_in_a_file_of_months_are_refused(tmp_path: Path) -> None:
    columns = {"TIMESTAMP": ["20140102", "20140103"], "TA_F": [1, 2], "TA_F_QC": [1, 1]}
    write(tmp_path / fluxnet_name("MM"), table(columns))
    with pytest.raises(DataError, match="line 2: found the stamp 2014-01-02 00:00; expected the first day of a month"):
        ingest(tmp_path, "fluxnet")


def test_all_variables_of_a_fullset(tmp_path: Path) -> None:
    suffix = {"P": "P_F", "VPD": "VPD_F", "TA": "TA_F", "SW_IN": "SW_IN_F", "NETRAD": "NETRAD", "SWC": "SWC_F_MDS_1"}
    columns: dict[str, list[float]] = {}
    for name, series in days(2).items():
        column = suffix.get(name, f"{name}_F_MDS")
        columns[column] = series
        if column != "NETRAD":
            columns[f"{column}_QC"] = [0] * len(series)
    write(tmp_path / fluxnet_name("HH"), table(half_hours("2014-07-01T00:00", columns)))
    native = ingest(tmp_path, "fluxnet")
    for name, series in days(2).items():
        factor = 0.01 if name == "SWC" else 1
        assert native.dataset[name].values == pytest.approx(np.array(series) * factor, rel=1e-12)
