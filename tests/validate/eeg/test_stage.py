from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from stages import artifacts
from stages.__main__ import main
from stages.errors import DataError, GateStopped, UsageError
from stages.report.gate import read_gate
from stages.validate import expectations
from stages.validate.eeg import stage
from stages.validate.eeg.stage import Params
from tests.conftest import ROOT
from tests.validate.eeg.fakes import (
    LABELS,
    PEOPLE,
    WINDOWS,
    features,
    frame,
    ingested,
    params,
    subjects,
    trial,
    two_corpora,
)

pytestmark = pytest.mark.usefixtures("workspace")


def run(params: Params) -> dict[str, Any]:
    stage.run(params, name="eeg", key="")
    return written()


def written() -> dict[str, Any]:
    summary: dict[str, Any] = artifacts.read_json(artifacts.validated("eeg") / "summary.json")
    return summary


def table(name: str) -> pl.DataFrame:
    return artifacts.read_table(artifacts.validated("eeg") / f"{name}.parquet").collect()


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the two corpora went through the gate."""
    folder = tmp_path_factory.mktemp("passed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run(two_corpora())
    return folder


@pytest.fixture
def corpora(passed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Work in that folder; its summary. Only for reading."""
    monkeypatch.chdir(passed)
    return written()


def test_accepted_and_quarantined_are_all_that_was_ingested(corpora: dict[str, Any]) -> None:
    assert (corpora["outcome"], corpora["noun"]) == ("pass with quarantine", "trial")
    assert (corpora["ingested"], corpora["accepted"], corpora["quarantined"]) == (37, 35, 2)
    assert corpora["sites"]["six"]["failed"] == {"copy of a trial": 1, "standard deviation": 1}
    assert corpora["sites"]["lone"]["source"]["licence"] == "CC0"
    verdict = table("verdict")
    assert verdict["record_id"].n_unique() == 37
    assert verdict.filter(pl.col("outcome") == "quarantined").select("record_id", "expectation", "reason").rows() == [
        (
            "six/s01/1/4",
            "standard deviation",
            "the channels of six/s01/1/4 have a standard deviation of 2310 uV; the gate allows 0.5 to 500: "
            "another unit?",
        ),
        ("six/s04/1/3", "copy of a trial", "six/s04/1/3 is a copy of six/s01/1/3, sample by sample"),
    ]


def test_every_trial_has_a_part_in_every_fold_of_its_corpus(corpora: dict[str, Any]) -> None:
    found = table("splits")
    assert found.columns == ["record_id", "group", "fold", "part"]
    assert set(found["record_id"]) == set(table("verdict")["record_id"])
    assert not found.filter(pl.col("group").str.starts_with("six/")).select("record_id", "fold").is_duplicated().any()
    assert set(corpora["leakage"]) == {"leave one subject out, six", "leave one subject out, lone"}
    assert corpora["leakage"]["leave one subject out, six"] == []


def test_the_report_reads_the_summary(corpora: dict[str, Any]) -> None:
    gate = read_gate(artifacts.validated("eeg"))
    assert (gate.domain, gate.noun, gate.seed) == ("eeg", "trial", 0)
    assert gate.sites["six"].about.resolution == "128 Hz"
    assert gate.sites["six"].about.variables["features"].unit == "nat"
    assert "1 single trial is a copy of others" in gate.sites["six"].about.notes
    assert list(gate.splits["leave one subject out, six"].parts) == ["train", "validation", "test"]
    assert sum(tally.records for tallies in gate.tallies.values() for tally in tallies) == 2


def test_json_holds_null_and_the_pages_need_no_network(corpora: dict[str, Any]) -> None:
    folder = artifacts.validated("eeg")
    json.loads((folder / "summary.json").read_text(), parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    pages = sorted(path.name for path in (folder / "docs").glob("*.html"))
    assert pages == ["index.html", "lone.html", "six.html"]
    for page in (folder / "docs").glob("*.html"):
        text = page.read_text()
        assert not re.search(r"https?:|//|<script|@import|url\(", text)
        for target in re.findall(r'href="([^"]+)"', text):
            assert (folder / "docs" / target).is_file()
    assert 'title="s04/1 3: quarantined"' in (folder / "docs" / "six.html").read_text()


def test_the_saved_suite_gives_the_verdict_that_was_written(corpora: dict[str, Any]) -> None:
    judged = stage.judge_corpus("six", params("six"))
    saved = json.loads((artifacts.validated("eeg") / "docs" / "suites" / "six.json").read_text())
    assert expectations.judge(judged.records, saved) == [r for r in judged.results if r.rule.name != "columns"]


def test_too_many_refused_trials_stop_and_the_verdict_is_kept() -> None:
    rows = [row | ({"nan_share": 0.2} if row["trial"] < 3 else {}) for row in subjects("six", PEOPLE)]
    ingested("six", frame(*rows))
    with pytest.raises(GateStopped, match=r"six: 12 of 36 records are quarantined \(33.3%\); the gate allows 20.0%"):
        run(params("six"))
    assert table("verdict").filter(pl.col("outcome") == "quarantined").height == 12
    assert run(params("six", six={"gate": {"max_nan": 0.3}}))["outcome"] == "pass"


def test_a_copied_session_and_a_copied_subject_are_told() -> None:
    rows = subjects("six", [*PEOPLE, "s07", "s08", "s09"])
    rows[-6:] = [row | {"sha256": old["sha256"]} for row, old in zip(rows[-6:], rows[:6], strict=True)]
    ingested("six", frame(*rows))
    summary = run(params("six"))
    assert summary["quarantined"] == 6
    assert "subject s09 is a copy of s01: 6 trials" in summary["sites"]["six"]["about"]["notes"]
    assert summary["splits"]["leave one subject out, six"]["folds"] == 8
    assert summary["leakage"]["leave one subject out, six"] == []


def test_an_input_that_tells_the_label_alone_is_reported_and_stops_nothing() -> None:
    records = frame(*subjects("six", PEOPLE))
    stores = {}
    for place, ((subject,), mine) in enumerate(records.group_by("subject", maintain_order=True)):
        stores[str(subject)] = features(mine, seed=place)
        of_trial = np.repeat([LABELS.index(label) for label in mine["label"]], WINDOWS)
        stores[str(subject)]["de"][:, 1, 4] = of_trial * 2.0
    ingested("six", records, stores)
    summary = run(params("six"))
    assert summary["outcome"] == "pass"
    (told,) = [note for note in summary["sites"]["six"]["about"]["notes"] if "alone tells" in note]
    assert told.startswith("Cz gamma alone tells the classes of six apart (area under the ROC curve 1.000")
    assert summary["sites"]["six"]["failed"] == {"no input tells the label alone": 1}


def test_a_trial_of_which_much_is_masked_is_refused() -> None:
    records = frame(*subjects("six", PEOPLE))
    store = features(records.filter(pl.col("subject") == "s01"))
    store["de"][0:WINDOWS, 0, :] = np.nan
    store["de"][WINDOWS, 0, 0] = -np.inf
    ingested("six", records, {"s01": store})
    assert run(params("six"))["sites"]["six"]["failed"] == {"masked features": 1}


def test_a_window_that_reaches_into_the_next_trial_is_refused() -> None:
    records = frame(*subjects("six", PEOPLE))
    store = features(records.filter(pl.col("subject") == "s01"))
    store["start_seconds"][WINDOWS - 1] = WINDOWS - 0.5
    ingested("six", records, {"s01": store})
    assert run(params("six"))["sites"]["six"]["failed"] == {"windows within the trial": 1}


def test_a_store_that_does_not_belong_to_the_table_is_an_error() -> None:
    records = frame(*subjects("six", ["s01"]))
    folder = ingested("six", records, {"s01": features(records.vstack(records))})
    with pytest.raises(DataError, match=r"s01.zarr: found windows of trials 0 to 11; expected trials 0 to 5"):
        run(params("six"))
    (folder / "subjects" / "s01.zarr").rename(folder / "subjects" / "s02.zarr")
    with pytest.raises(DataError, match=r"s01.zarr: found no group `de`"):
        run(params("six"))


def test_subjects_with_other_channels_are_an_error() -> None:
    records = frame(*subjects("six", ["s01", "s02"]))
    other = features(records.filter(pl.col("subject") == "s02")).assign_attrs(channels=["Fp1", "Cz", "x"])
    ingested("six", records, {"s02": other})
    with pytest.raises(DataError, match=r"s02.zarr: found 15 features with x delta; expected those of the subjects"):
        run(params("six"))


def test_two_corpora_with_the_same_data_are_told_of() -> None:
    rows = subjects("six", PEOPLE)
    ingested("six", frame(*rows))
    ingested("twin", frame(*(row | {"record_id": row["record_id"].replace("six", "twin")} for row in rows)))
    notes = run(params("six", "twin"))["sites"]["six"]["about"]["notes"]
    assert notes[-1] == "36 trials have equal content in twin"


def test_a_corpus_that_ships_features_alone_is_judged_by_what_there_is() -> None:
    names = ("rate", "original_rate", "samples", *stage.STATISTICS, "flat_channels", "artifact_share")
    records = frame(*subjects("six", PEOPLE, 6, **dict.fromkeys(names)))
    stores = {str(s): features(mine).assign_attrs(window_seconds=np.nan) for (s,), mine in records.group_by("subject")}
    folder = ingested("six", records, stores, kind="features", feature="differential entropy", rates=[], unit="uV")
    for store in (folder / "subjects").iterdir():
        (store / "signal").rename(folder / f"{store.name}.unused")
    summary = run(params("six"))
    assert (summary["outcome"], summary["warned"]) == ("pass", 0)
    about = summary["sites"]["six"]["about"]
    assert about["resolution"] is None
    assert about["variables"] == {
        "features": {"unit": "differential entropy", "long_name": "of a window, by channel and band"}
    }


def test_a_column_of_another_type_stops_the_corpus() -> None:
    ingested("six", frame(*subjects("six", PEOPLE)).with_columns(pl.col("std_uv").cast(pl.String)))
    with pytest.raises(GateStopped, match=r"column std_uv of six/records.parquet is text; the gate expects number"):
        run(params("six"))
    assert table("verdict")["outcome"].to_list() == ["quarantined"] * 36


def test_an_empty_corpus_and_no_corpus_stop() -> None:
    ingested("six", frame())
    with pytest.raises(GateStopped, match=r"six/records.parquet has 0 records; the gate asks for at least 1"):
        run(params("six"))
    with pytest.raises(GateStopped, match=r"eeg.corpora in params.yaml names no corpus"):
        run(params())
    assert table("verdict").height == table("splits").height == 0


def test_a_trial_without_keys_is_quarantined() -> None:
    faulty = trial("six", "s01", 2, 1, record_id=None, group=None, sha256=None)
    ingested("six", frame(*subjects("six", PEOPLE), faulty))
    failed = run(params("six"))["sites"]["six"]["failed"]
    assert {"record_id present", "group present", "sha256 present"} <= set(failed)
    assert table("splits").filter(pl.col("record_id").is_null())["part"].to_list() == ["train"]


def test_a_corpus_that_was_not_ingested_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    ingested("six", frame(*subjects("six", PEOPLE)))
    with pytest.raises(UsageError, match=r"eeg.corpora.seed of params.yaml was not ingested: data/ingested/eeg/seed"):
        run(params("seed"))
    assert "data/ingested/eeg/six is not a corpus of params.yaml (eeg.corpora)" in capsys.readouterr().err


PARAMS = """
eeg:
  corpora:
    six: {path: data/external/six, format: seed, gate: {max_quarantined: 0.1}}
  gate: {std_uv: [0.5, 3000]}
  splits: {seed: 0, validation: 0.2}
"""


def test_the_command_ends_with_code_3_when_the_gate_stops_and_2_when_a_limit_is_misspelt(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ingested("six", frame(*subjects("six", PEOPLE), trial("six", "s01", 2, 1, std_uv=2310.0)))
    (workspace / "params.yaml").write_text(PARAMS)
    assert main(["validate", "eeg"]) == 0
    (workspace / "params.yaml").write_text(PARAMS.replace("3000", "300").replace("0.1}", "0.01}"))
    assert main(["validate", "eeg"]) == 3
    assert "six: 1 of 37 records are quarantined (2.7%)" in " ".join(capsys.readouterr().err.split())
    (workspace / "params.yaml").write_text(PARAMS.replace("std_uv", "std_v"))
    assert main(["validate", "eeg"]) == 2
    assert "eeg.gate.std_v is not a known key; did you mean 'std_uv'?" in " ".join(capsys.readouterr().err.split())


PROGRAM = """
import warnings
warnings.simplefilter("error")
from stages.validate.eeg import stage
from tests.validate.eeg.fakes import two_corpora
stage.run(two_corpora(), name="eeg", key="")
"""


def test_equal_data_give_equal_bytes_in_another_process(passed: Path, workspace: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, stdout=subprocess.DEVNULL)
    here, there = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (passed / "data" / "validated", workspace / "data" / "validated")
    )
    assert len(here) == 8
    assert here == there
