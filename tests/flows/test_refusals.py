"""A graph or a command that is wrong is refused with its name before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flows.conftest import Project

A = "a: {cmd: touch started; cp x y, deps: [x], outs: [y]}"
WRONG = {
    "a cycle": (f"stages:\n  {A}\n  b: {{cmd: cp y x, deps: [y], outs: [x]}}", [], ["cycl"]),
    "a missing dep": (f"stages:\n  {A}\n  b: {{cmd: cp gone z, deps: [gone], outs: [z]}}", [], ["'b'|b", "gone"]),
    "a missing param": (
        f"stages:\n  {A}\n  b: {{cmd: cp x z, params: [no.such], outs: [z]}}",
        [],
        ["stage b", "no.such"],
    ),
    "an out of two stages": (f"stages:\n  {A}\n  b: {{cmd: cp x y, deps: [x], outs: [y]}}", [], ["y", "specified in"]),
    "bad YAML": (f"stages:\n  {A}\n  b: [", [], ["dvc.yaml"]),
    "a wrong key": (f"stages:\n  {A}\n  b: {{command: x}}", [], ["dvc.yaml"]),
    "an unset variable": (f"stages:\n  {A}\n  b: {{cmd: 'echo ${{unset}}'}}", [], ["b", "unset"]),
    "an unknown target": (f"stages:\n  {A}", ["nosuch"], ["nosuch"]),
    "an unknown device": (f"stages:\n  {A[:-1]}, meta: {{device: tpu}}}}", [], ["a", "tpu", "gpu"]),
    "a share above one": (f"stages:\n  {A[:-1]}, meta: {{device: gpu, share: 2}}}}", [], ["a", "share", "2"]),
    "devices not understood": (f"stages:\n  {A}", ["--devices", "gpu0"], ["gpu0", "cuda:0,1"]),
    "a GPU that is not there": (f"stages:\n  {A}", ["--devices", "cuda:5"], ["cuda:5", "0 visible"]),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_refused(project: Project, wrong: str) -> None:
    graph, words, said = WRONG[wrong]
    project.file("dvc.yaml", graph)
    project.file("x", "1")
    project.file("params.yaml", "a: 1\n")
    if wrong == "a cycle":
        project.file("y", "1")
    run = project.repro(*words, CUDA_VISIBLE_DEVICES="")
    assert run.code == 2, run.err
    assert not (project.root / "started").exists()
    assert not (project.root / "dvc.lock").exists()
    message = run.err[run.err.index("error: ") :]
    assert "Traceback" not in run.err
    assert all(any(word in message for word in words.split("|")) for words in said), message


def test_no_repository(project: Project, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    project.root = tmp_path / "plain"
    run = project.repro()
    assert run.code == 2
    assert str(project.root) in run.err
