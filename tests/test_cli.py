"""The command line as a user meets it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stages.commands import params as params_command
from stages.errors import DataError, GateStopped, StageError, UsageError
from tests.conftest import ROOT

Stages = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def settings(workspace: Path) -> Path:
    """A folder with this project's params.yaml and profiles."""
    shutil.copy(ROOT / "params.yaml", workspace)
    shutil.copytree(ROOT / "profiles", workspace / "profiles")
    return workspace


def test_help_teaches(stages: Stages, workspace: Path) -> None:
    run = stages("--help")
    assert run.returncode == 0
    for word in (
        "fetch SOURCE",
        "simulate DOMAIN@NAME",
        "ingest DOMAIN@NAME",
        "params apply",
        "exit codes",
        "examples:",
    ):
        assert word in run.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["fetsch", "us-arm"], "invalid choice: 'fetsch'"),
        (["fetch"], "`fetch` takes one name"),
        (["report", "pcmci"], "`report` takes no name"),
        (["train", "pcmi@0"], "`train pcmi`: no such name; did you mean 'pcmci'?"),
        (["train", "pcmci@abc"], "expected `train SYSTEM@SEED`, SEED a whole number"),
        (["train", "pcmci"], "expected `train SYSTEM@SEED`"),
        (["simulate", "eeg"], "expected `simulate DOMAIN@NAME`"),
        (["simulate", "eeg@sim-sed"], "no key 'sim-sed' in eeg.simulated; did you mean 'sim-seed'?"),
        (["ingest", "land_atmosphere"], "expected `ingest DOMAIN@NAME`"),
        (["evaluate", "pcmci@0"], "expected `evaluate NAME`"),
        (["validate", "land_atmosfere"], "did you mean 'land_atmosphere'?"),
        (["fetch", "us-amr"], "no key 'us-amr' in sources; did you mean 'us-ar"),
        (["params", "chek"], "`params` takes one of: check;"),
        (["params", "apply", "tinny"], "did you mean 'tiny'?"),
        (["params", "describe", "seds"], "did you mean 'seeds'?"),
    ],
)
def test_a_wrong_command_exits_2_in_one_paragraph(
    stages: Stages, settings: Path, words: list[str], message: str
) -> None:
    run = stages(*words)
    assert run.returncode == 2
    assert message in run.stderr
    assert "Traceback" not in run.stderr


def test_outside_the_repository(stages: Stages, workspace: Path) -> None:
    run = stages("train", "pcmci@0")
    assert run.returncode == 2
    assert "params.yaml: not found" in run.stderr


def test_debug_shows_the_traceback(stages: Stages, workspace: Path) -> None:
    run = stages("train", "pcmci@0", "--debug")
    assert "Traceback" in run.stderr
    assert run.stderr.rstrip().splitlines()[-1].startswith("error: params.yaml: not found")


def test_each_kind_of_error_has_its_exit_code() -> None:
    codes = {kind.__name__: kind.exit_code for kind in (StageError, UsageError, GateStopped, DataError)}
    assert codes == {"StageError": 1, "UsageError": 2, "GateStopped": 3, "DataError": 1}


def test_a_data_error_says_where_what_and_what_to_do() -> None:
    error = DataError("a.csv", record="line 3", found="12:60", expected="a time", remedy="Correct it.")
    assert str(error) == "a.csv, line 3: found 12:60; expected a time. Correct it."


def test_the_committed_params_pass(stages: Stages, settings: Path) -> None:
    run = stages("params", "check")
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p["systems"].update(pcmi={}), "systems.pcmi is not a known key; did you mean 'pcmci'?"),
        (lambda p: p.update(sedes=[0]), "sedes is not a known key; did you mean 'seeds'?"),
        (lambda p: p.update(seeds=[0, "1"]), "seeds: found [0, '1']; expected whole numbers"),
        (lambda p: p.update(seeds=[]), "seeds: found []"),
        (lambda p: p.update(seeds=[0, 0]), "whole numbers that differ"),
        (lambda p: p["sources"].update({"de tha": {}}), "sources: the name 'de tha' is no name of a stage or folder"),
        (lambda p: p["land_atmosphere"]["sites"].update({"de/tha": {}}), "the name 'de/tha' is no name"),
        (lambda p: p["land_atmosphere"]["sites"].update({2013: {}}), "quote a name that is all digits"),
        (lambda p: p["land_atmosphere"]["sites"]["us-arm"].update(path="~/x"), "DVC does not know ~, write /"),
        (lambda p: p["land_atmosphere"]["sites"]["us-arm"].update(path="/no/such"), "'/no/such' does not exist"),
        (lambda p: p["eeg"]["corpora"].update({"my seed": {}}), "eeg.corpora: the name 'my seed' is no name"),
        (
            lambda p: p["eeg"]["corpora"]["blink"].update(path="~/x"),
            "eeg.corpora.blink.path: found '~/x'; DVC does not",
        ),
        (
            lambda p: p["eeg"]["simulated"].update(blink={"seed": 0}),
            "the name 'blink' stands in sources too, and both would write data/raw/blink",
        ),
        (
            lambda p: p["eeg"]["simulated"]["sim-seed"].update(null=True),
            "eeg.simulated.sim-seed.null is not a known key; known keys: design, emotion, noise, null_control",
        ),
        (lambda p: p["systems"]["pcmci"]["train"].update(variables=["P", "SCW"]), "train.variables.1: found 'SCW'"),
        (lambda p: p["systems"]["pcmci"]["train"].update(variables=["P", "P"]), "the same entry stands twice"),
        (lambda p: p["systems"]["pcmci"]["train"].update(months=[13]), "train.months.0: found 13"),
        (lambda p: p["report"].update(titel="x"), "report.titel is not a known key; did you mean 'title'?"),
        (
            lambda p: p["land_atmosphere"]["sites"]["us-arm"].update(fromat="base"),
            "land_atmosphere.sites.us-arm.fromat is not a known key; did you mean 'format'?",
        ),
        (
            lambda p: p["land_atmosphere"]["sites"]["us-arm"].update(format="fluxnett"),
            "land_atmosphere.sites.us-arm.format",
        ),
        (
            lambda p: p["sources"]["us-arm"].update(membres=[]),
            "sources.us-arm.membres is not a known key; did you mean 'members'?",
        ),
        (lambda p: p["systems"]["pcmci"]["train"].update(tau_max=0), "systems.pcmci.train.tau_max: found 0"),
    ],
)
def test_check_names_the_key(stages: Stages, settings: Path, change: Callable[[dict], None], message: str) -> None:
    tree = yaml.safe_load(Path("params.yaml").read_text())
    change(tree)
    Path("params.yaml").write_text(yaml.safe_dump(tree))
    run = stages("params", "check")
    assert run.returncode == 2
    assert message in run.stderr


def test_a_key_that_stands_twice_is_refused(stages: Stages, settings: Path) -> None:
    with Path("params.yaml").open("a") as stream:
        stream.write("\nseeds: [5]\n")
    run = stages("params", "check")
    assert run.returncode == 2
    assert "the key 'seeds' stands twice in one block" in run.stderr


@pytest.mark.parametrize(
    "stranger", ["data/ingested/land_atmosphere/de-old", "data/ingested/eeg/old", "data/models/pcmci/7"]
)
def test_what_params_no_longer_names_must_go(stages: Stages, settings: Path, stranger: str) -> None:
    Path(stranger).mkdir(parents=True)
    run = stages("params", "check")
    assert run.returncode == 2
    assert f"Remove with `rm -r {stranger}`" in run.stderr
    Path(stranger).rmdir()
    assert stages("params", "check").returncode == 0


@pytest.mark.parametrize("profile", ["default", "tiny", "study", "paper"])
def test_every_profile_applies_and_default_brings_everything_back(settings: Path, profile: str) -> None:
    before = Path("params.yaml").read_text()
    params_command.apply(profile, [])
    assert yaml.safe_load(Path("params.yaml").read_text())["profile"] == profile
    params_command.apply("default", [])
    assert Path("params.yaml").read_text() == before


def test_apply_keeps_comments_and_sets_single_values(settings: Path) -> None:
    params_command.apply("tiny", ["systems.pcmci.train.tau_max=3", "seeds=[4]"])
    text = Path("params.yaml").read_text()
    assert text.startswith((ROOT / "params.yaml").read_text().splitlines()[0])
    assert yaml.safe_load(text)["systems"]["pcmci"]["train"]["tau_max"] == 3
    assert yaml.safe_load(text)["seeds"] == [4]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("systems.pcmci.train.tau_mx=3", "systems.pcmci.train.tau_mx is not a known key; did you mean 'tau_max'?"),
        ("systems.pcmci.train.tau_max=many", "tau_max: found 'many'"),
        ("systems.pcmi.train.tau_max=3", "did you mean 'pcmci'?"),
        ("seeds", "expected KEY=VALUE"),
        ("systems.pcmci=3", "systems.pcmci is a block of keys"),
    ],
)
def test_apply_refuses_and_changes_nothing(settings: Path, assignment: str, message: str) -> None:
    before = Path("params.yaml").read_text()
    with pytest.raises(UsageError) as error:
        params_command.apply("tiny", [assignment])
    assert message in str(error.value)
    assert Path("params.yaml").read_text() == before


def test_every_key_is_described(settings: Path) -> None:
    described = {line.split(" ")[0].rstrip(":") for line in params_command.describe("")}
    tree = yaml.safe_load(Path("params.yaml").read_text())
    for container in params_command.containers():  # theirs are described under NAME
        params_command.block_at(tree, container).clear()
    for dotted, _ in params_command.leaves(tree):
        assert any(dotted == key or dotted.startswith(key + ".") for key in described), dotted
