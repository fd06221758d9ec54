"""AmeriFlux BASE and its relatives: positions, flags, providers' versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.errors import DataError
from tests.ingest.towers import fluxnet_name, half_hours, ingest, table, values, write

AMERIFLUX = "# Site: US-Tw3\n# Version: 5-5\n\n"
NAME = "AMF_US-Tw3_BASE_HH_5-5.csv"


def test_ameriflux_base_with_comments(tmp_path: Path) -> None:
    columns = {"CO2": [400, 400], "H": [12.5, -9999], "LE_PI_F": [1, 2], "SWC_1_1_1": [30, 31], "SWC_1_2_1": [40, 41]}
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns), above=AMERIFLUX))
    native = ingest(tmp_path, {"reader": "base", "utc_offset": -8})
    assert values(native, "H") == [12.5, None]
    assert values(native, "SWC") == [0.3, 0.31]
    assert values(native, "LE") == [None, None], "a filled series alone is no measurement"
    assert values(native, "LE_FILLED") == [1, 2]
    assert native.tower.site == "US-Tw3"
    assert native.dataset["time"].attrs["utc_offset"] == -8
    assert native.dataset["SWC"].attrs["other_columns"] == ["SWC_1_2_1"]


def test_quoted_comment_lines_with_trailing_delimiters(tmp_path: Path) -> None:
    columns = {"H_1_1_1": [1, 2]}
    above = "# Site: US-ARM,,\n# Version: 8-5,,\n"
    write(tmp_path / "data.csv", table(half_hours("2003-01-01T00:00", columns), above=above))
    assert values(ingest(tmp_path, "base"), "H") == [1, 2]


def test_end_stamps_alone_are_moved_to_the_start(tmp_path: Path) -> None:
    columns = half_hours("2016-01-01T00:00", {"TA_1_1_1": [5.0, 6.0]})
    del columns["TIMESTAMP_START"]
    write(tmp_path / "FR-Hes_europe-fluxdata_2016.txt", table(columns))
    native = ingest(tmp_path, "base")
    assert [str(t)[:16] for t in native.dataset["time"].values] == ["2016-01-01T00:00", "2016-01-01T00:30"]
    assert native.tower.site == "FR-Hes"


def test_flag_two_of_the_steady_state_test_is_missing_and_counted(tmp_path: Path) -> None:
    columns = {"LE_1_1_1": [10, 20, 30, 40], "LE_SSITC_TEST_1_1_1": [0, 1, 2, -9999]}
    write(tmp_path / "eddypro_x_fluxnet_2016.csv", table(half_hours("2016-06-01T00:00", columns)))
    native = ingest(tmp_path, "base")
    assert values(native, "LE") == [10, 20, None, 40]
    assert native.dataset["LE_QC"].values.tolist() == [0, 1, 2, -1]
    assert any(note.startswith("LE: 1 values with a LE_SSITC_TEST_1_1_1 other than 0, 1") for note in native.notes)
    assert any(note.startswith("LE: 1 values without a LE_SSITC_TEST_1_1_1 are kept") for note in native.notes)


def test_flags_on_another_scale_are_refused_until_it_is_stated(tmp_path: Path) -> None:
    columns = {"LE": [10, 20, 30], "LE_SSITC_TEST": [1, 7, 3]}
    write(tmp_path / "x.csv", table(half_hours("2016-06-01T00:00", columns)))
    with pytest.raises(DataError, match=r"line 3: found LE_SSITC_TEST 7; expected the flags 0 \(best\), 1 and 2"):
        ingest(tmp_path, "base")
    stated = {"LE": {"column": "LE", "qc": "LE_SSITC_TEST", "good": [1, 2, 3]}}
    assert values(ingest(tmp_path, {"reader": "base", "columns": stated}), "LE") == [10, None, 30]


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        ({"G_1_1_1": [1, -9999], "G_2_1_1": [1, 2]}, "G_2_1_1"),
        ({"G_2_1_1": [1, 2], "G_1_1_1": [1, 2]}, "G_1_1_1"),
        ({"G_1_2_1": [1, 2], "G_3_1_1": [1, -9999]}, "G_3_1_1"),
        ({"G_1_1_1": [-9999, -9999], "G_1_2_1": [1, 2]}, "G_1_2_1"),
        ({"G_PI": [1, 2], "G_1_1_1": [1, -9999]}, "G_1_1_1"),
        ({"G_PI_1_1_1": [1, 2]}, "G_PI_1_1_1"),
        ({"G": [1, 2], "G_1_1_1": [1, 2]}, "G"),
        ({"G_1_1_2": [1, 2], "G_1_1_A": [1, 2], "G_1_1_A_SD": [1, 2]}, "G_1_1_A"),
        ({"G_2": [1, 2], "G_1": [1, -9999]}, "G_1"),
    ],
    ids=["coverage", "tie", "shallow-first", "empty", "provider-last", "provider-only", "plain", "average", "layer"],
)
def test_one_position_is_chosen_by_rule(tmp_path: Path, columns: dict[str, list[float]], chosen: str) -> None:
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns), above=AMERIFLUX))
    ground = ingest(tmp_path, "base").dataset["G"]
    assert ground.attrs["source_column"] == chosen
    assert set(ground.attrs["other_columns"]) == {name for name in columns if not name.endswith("_SD")} - {chosen}


def test_filled_values_stand_beside_the_measured_ones(tmp_path: Path) -> None:
    columns = {"LE": [10, -9999, -9999], "LE_PI_F": [11, 12, -9999]}
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns), above=AMERIFLUX))
    native = ingest(tmp_path, "base")
    assert values(native, "LE") == [10, None, None]
    assert values(native, "LE_FILLED") == [None, 12, None]


def test_a_column_named_in_params_wins_and_may_bring_its_unit(tmp_path: Path) -> None:
    columns = {"SWC_1_1_1": [30, 31], "SWC_2_1_1": [0.4, 0.41]}
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns), above=AMERIFLUX))
    wanted = {"reader": "base", "columns": {"SWC": {"column": "SWC_2_1_1", "unit": "m3 m-3"}}}
    assert values(ingest(tmp_path, wanted), "SWC") == [0.4, 0.41]


def test_a_column_that_is_not_there_is_named_with_its_nearest(tmp_path: Path) -> None:
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", {"SWC_1_1_1": [30, 31]}), above=AMERIFLUX))
    with pytest.raises(DataError, match=r"column 'SWC_1_1_9': found no such column .*; expected one of 'SWC_1_1_1'"):
        ingest(tmp_path, {"reader": "base", "columns": {"SWC": "SWC_1_1_9"}})


def test_a_file_of_fluxes_and_one_of_weather_are_joined_on_time(tmp_path: Path) -> None:
    write(tmp_path / "ICOSETC_DE-Tha_FLUXES_L2.csv", table(half_hours("2020-01-01T00:00", {"LE": [1, 2], "H": [3, 4]})))
    write(tmp_path / "ICOSETC_DE-Tha_METEO_L2.csv", table(half_hours("2020-01-01T00:30", {"TA": [5, 6]})))
    native = ingest(tmp_path, "base")
    assert values(native, "LE") == [1, 2, None]
    assert values(native, "TA") == [None, 5, 6]


def test_overlapping_files_that_agree_are_joined_and_counted(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", table(half_hours("2020-01-01T00:00", {"LE": [1, 2, 3]})))
    write(tmp_path / "b.csv", table(half_hours("2020-01-01T01:00", {"LE": [3, 4]})))
    native = ingest(tmp_path, "base")
    assert values(native, "LE") == [1, 2, 3, 4]
    assert native.axis.duplicates.tolist() == [2]


def test_files_of_two_resolutions_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", table(half_hours("2020-01-01T00:00", {"LE": [1, 2, 3]})))
    write(tmp_path / "b.csv", table(half_hours("2021-01-01T00:00", {"LE": [3, 4, 5]}, step=60)))
    with pytest.raises(DataError, match=r"b.csv.*60 min"):
        ingest(tmp_path, "base")


def test_a_variable_without_any_value_is_kept_and_noted(tmp_path: Path) -> None:
    columns = {"H": [1, 2], "TA": [-9999, -9999]}
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns), above=AMERIFLUX))
    native = ingest(tmp_path, "base")
    assert values(native, "TA") == [None, None]
    assert "TA: no measured value in TA." in native.notes


def test_a_damaged_table_in_a_folder_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "2013.csv", table(half_hours("2013-01-01T00:00", {"H": [1, 2]})))
    write(tmp_path / "2014.csv", "")
    with pytest.raises(DataError, match=r"2014.csv: found an empty file"):
        ingest(tmp_path, "base")


def test_other_files_of_a_folder_are_listed_with_the_reason(tmp_path: Path) -> None:
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", {"H": [1, 2]}), above=AMERIFLUX))
    write(tmp_path / "AMF_US-Tw3_BIF.csv", "SITE_ID,GROUP_ID\nUS-Tw3,1\n")
    native = ingest(tmp_path, "base")
    assert native.tower.ignored == {"AMF_US-Tw3_BIF.csv": "no column TIMESTAMP_START or TIMESTAMP_END"}


@pytest.mark.parametrize("beside", [{}, {NAME: {"H": [1, 2]}}], ids=["alone", "beside BASE"])
def test_files_of_fluxnet_are_refused_for_most_of_their_variables_would_be_lost(
    tmp_path: Path, beside: dict[str, dict[str, list[float]]]
) -> None:
    fluxnet = fluxnet_name("HH", site="US-Tw3")
    for name, columns in {fluxnet: {"TA_F": [1.0, 2.0], "SW_IN": [1, 2]}, **beside}.items():
        write(tmp_path / name, table(half_hours("2013-01-01T00:00", columns)))
    with pytest.raises(DataError) as caught:
        ingest(tmp_path, "base")
    assert fluxnet in str(caught.value)
    assert "Set `format: fluxnet` in params.yaml" in str(caught.value)
    assert ("move these files out of the folder" in str(caught.value)) == bool(beside)


def test_columns_of_nearly_a_known_name_are_noted(tmp_path: Path) -> None:
    columns = {"TA": [1, 2], "LE_F_MDS": [1, 2], "LE_CORR": [1, 2], "LE_SSITC_TEST": [0, 0], "H_1_1_1_SD": [1, 2]}
    write(tmp_path / NAME, table(half_hours("2013-01-01T00:00", columns)))
    assert ingest(tmp_path, "base").notes == [
        "LE: not read, for no column has a name the format knows; there are LE_F_MDS, LE_CORR. "
        "If one is right, name it: `columns: {LE: LE_F_MDS}`."
    ]
