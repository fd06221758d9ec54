"""Code deps of dvc.yaml: nothing missing (a stale result), nothing too much (a needless run)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from stages.commands import deps
from stages.commands.deps import code_deps, command_closure, stage_bodies
from stages.entries import entry_module, split_name
from tests.conftest import ROOT

GRAPH = yaml.safe_load((ROOT / "dvc.yaml").read_text())
STAGES = dict(stage_bodies(GRAPH))


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", STAGES)
def test_the_deps_equal_the_import_closure(name: str) -> None:
    listed = [dep for dep in STAGES[name]["deps"] if dep.startswith("stages/")]
    assert listed == code_deps(STAGES[name]["cmd"])


@pytest.mark.parametrize("name", STAGES)
def test_a_running_stage_loads_nothing_outside_its_deps(name: str) -> None:
    """The other way round: what Python really loads when every module of the closure is imported."""
    cmd = STAGES[name]["cmd"]
    closure = [file for file in command_closure(cmd) if file.endswith(".py")]
    modules = [file.removesuffix(".py").replace("/", ".") for file in closure]
    script = (
        f"import importlib, sys\nfor m in {modules!r}: importlib.import_module(m.removesuffix('.__init__'))\n"
        "print('\\n'.join(m.__file__ for n, m in sys.modules.items() if n.split('.')[0] == 'stages'))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded = {Path(line).relative_to(ROOT).as_posix() for line in run.stdout.split()}
    assert loaded == set(closure)


@pytest.mark.parametrize("name", STAGES)
def test_a_folder_stands_only_for_files_that_are_all_imported(name: str) -> None:
    listed = {Path(dep) for dep in STAGES[name]["deps"] if dep.startswith("stages/")}
    files = {file for dep in listed for file in ([dep] if dep.is_file() else dep.rglob("*")) if file.is_file()}
    seen = {file.as_posix() for file in files if "__pycache__" not in file.parts}
    assert seen == set(command_closure(STAGES[name]["cmd"]))


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_lists_the_params_that_it_reads(name: str) -> None:
    import importlib

    verb, _, rest = STAGES[name]["cmd"].removeprefix("python -m stages ").partition(" ")
    head, key = split_name(verb, rest)
    params = importlib.import_module(entry_module(verb, head)).Params
    assert sorted(STAGES[name]["params"]) == sorted(params.keys(name=head, key=key).values())


def write(files: dict[str, str]) -> None:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)


SMALL = {
    "stages/__init__.py": "",
    "stages/__main__.py": "import importlib",
    "stages/systems/__init__.py": "",
    "stages/systems/toy/__init__.py": "",
    "stages/systems/toy/train.py": "from typing import TYPE_CHECKING\nfrom stages import shared\n"
    "if TYPE_CHECKING:\n    from stages import types_only\n\ndef run():\n    from .model import fit",
    "stages/systems/toy/model.py": "import stages.deep.inner",
    "stages/systems/toy/page.html": "",
    "stages/shared.py": "",
    "stages/types_only.py": "",
    "stages/unused.py": "",
    "stages/deep/__init__.py": "",
    "stages/deep/inner.py": "from ..shared import name",
    "dvc.yaml": "# kept\nstages:\n  train-toy:\n    foreach: [0]\n    do:\n"
    "      cmd: python -m stages train toy@${item}\n"
    "      deps: [data/x, stages/unused.py]  # here\n      outs: [y]\n",
}


@pytest.fixture
def small(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(SMALL)
    monkeypatch.setattr("stages.entries.PACKAGE", workspace / "stages")
    return workspace


CLOSURE = [
    "stages/__init__.py",
    "stages/__main__.py",
    "stages/deep/__init__.py",
    "stages/deep/inner.py",
    "stages/shared.py",
    "stages/systems/__init__.py",
    "stages/systems/toy/__init__.py",
    "stages/systems/toy/model.py",
    "stages/systems/toy/page.html",
    "stages/systems/toy/train.py",
]


def test_imports_inside_functions_relative_ones_and_resources_count(small: Path) -> None:
    assert command_closure("python -m stages train toy@0") == CLOSURE
    folded = [file for file in CLOSURE if not file.startswith("stages/systems/")]
    assert code_deps("python -m stages train toy@0") == [*folded, "stages/systems"]


def test_write_brings_the_file_up_to_date_and_keeps_comments(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deps.run([], write=True)
    text = Path("dvc.yaml").read_text()
    assert text.startswith("# kept\n")
    assert yaml.safe_load(text)["stages"]["train-toy"]["do"]["deps"] == [
        "data/x",
        *code_deps("python -m stages train toy@0"),
    ]
    deps.run([], write=False)
    assert "equal the imports" in capsys.readouterr().out


def test_a_difference_names_stage_and_files(
    small: Path, stages: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    with pytest.raises(deps.StageError, match=r"train-toy lacks .*stages/shared\.py.* need not list stages/unused\.py"):
        deps.run([], write=False)


def test_a_simulator_is_a_dep_of_its_own_stage_and_of_no_download() -> None:
    simulated = command_closure("python -m stages simulate eeg@${key}")
    program = {path.relative_to(ROOT).as_posix() for path in (ROOT / "stages/simulate/eeg").rglob("*.py")}
    assert program <= set(simulated)
    assert not program & set(command_closure("python -m stages fetch ${key}"))
