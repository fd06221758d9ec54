"""Whatever is killed in the middle of a run: the next run completes, and what had finished does not run again."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from flows.repro import heard
from tests.flows.conftest import ROOT, RUN_SECONDS, Api, Project, start_server

#: Says that it has begun, with the pid of its shell, and goes on when told.
WAITS = "echo $$ > started; read word < go"


class Blocked:
    """A project with one finished stage, one that waits in the middle of its work, and one below it."""

    def __init__(self, project: Project, waits: str = WAITS) -> None:
        self.project = project
        gpu = {"device": "gpu"}
        project.graph(
            done={"cmd": "echo >> runs_of_done; cp x done.txt", "deps": ["x"], "outs": ["done.txt"]},
            slow={"cmd": f"{waits}; cp done.txt slow.txt", "deps": ["done.txt"], "outs": ["slow.txt"], "meta": gpu},
            last={"cmd": "cp slow.txt last.txt", "deps": ["slow.txt"], "outs": ["last.txt"], "meta": gpu},
        )
        project.file("x", "1")
        project.environment["CUDA_VISIBLE_DEVICES"] = ""
        self.started, self.go = project.fifo("started"), project.fifo("go")

    def stage(self) -> int:
        """A pidfd of the waiting stage, once it waits."""
        return os.pidfd_open(int(self.started.read_text()))

    def release(self) -> None:
        self.go.write_text("go\n")

    def assert_next_run_completes(self, **expected: str) -> None:
        """Nothing is left of the killed run: no lease, no lock, no half-written book."""
        if (self.project.root / "dvc.lock").exists():
            assert "done" in yaml.safe_load(self.project.read("dvc.lock"))["stages"]
        graph = self.project.read("dvc.yaml")
        assert WAITS in graph
        # The command must stay what it was; the FIFOs are fed instead.
        run = self.project.start("--devices", "cpu:1", "--no-wait")
        self.stage()
        self.release()
        finished = run.wait()
        assert finished.code == 0, finished.err
        assert finished.outcomes == {"done": "up to date", "slow": "ran", "last": "ran", **expected}
        assert self.project.read("runs_of_done") == "\n"
        self.project.assert_clean()


def ended(pidfd: int) -> bool:
    ready, _, _ = select.select([pidfd], [], [], RUN_SECONDS)
    os.close(pidfd)
    return bool(ready)


def test_coordinator(project: Project) -> None:
    blocked = Blocked(project)
    run = project.start("--devices", "cpu:1")
    stage = blocked.stage()
    run.signal(signal.SIGKILL)
    assert run.wait_code() == -signal.SIGKILL
    assert ended(stage)  # it dies with its coordinator
    blocked.assert_next_run_completes()


def test_coordinator_whose_stage_survives(project: Project) -> None:
    """A grandchild does not hear of it; as long as it may write, the workspace stays locked and the device leased."""
    blocked = Blocked(project, f"sh -c '{WAITS}'")
    run = project.start("--devices", "cpu:1")
    grandchild = blocked.stage()
    run.signal(signal.SIGKILL)
    run.wait_code()
    refused = project.repro("--no-wait")
    assert refused.code == 1
    assert f"another run works in this repository (pid {run.pid} on" in refused.err
    second = project.start("--devices", "cpu:1")
    second.await_error("waits: another run works")
    blocked.release()
    assert ended(grandchild)
    blocked.stage()
    blocked.release()
    finished = second.wait()
    assert finished.outcomes == {"done": "up to date", "slow": "ran", "last": "ran"}
    project.assert_clean()


def test_stage(project: Project) -> None:
    """Killed once it is tried again; killed twice it has failed, and the next run does it."""
    blocked = Blocked(project)
    run = project.start("--devices", "cpu:1")
    for _ in range(2):
        pidfd = blocked.stage()
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        assert ended(pidfd)
    finished = run.wait()
    assert finished.outcomes == {"done": "ran", "slow": "failed", "last": "not reached"}
    assert finished.stages["slow"]["detail"] == "stage slow was ended by SIGKILL"
    blocked.assert_next_run_completes()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(project: Project, api: Api, number: int) -> None:
    """Ctrl-C goes to the whole group of the terminal; SIGTERM, as from a batch system, to the process."""
    blocked = Blocked(project)
    run = project.start("--devices", "cpu:1")
    stage = blocked.stage()
    run.signal_group(number)
    finished = run.wait()
    if number == signal.SIGINT:
        assert finished.code == 130, finished.err
        assert "the next run goes on from here" in finished.err
        assert "Traceback" not in finished.err
    else:
        assert finished.code == -number
    assert ended(stage)
    table = api.artifacts(api.last_run())["stages"]
    assert "| slow | failed | - | cpu:0 | interrupted |" in table
    assert "| last | not reached | - | - | interrupted |" in table
    blocked.assert_next_run_completes()


def test_a_signal_whose_exception_is_swallowed_is_raised_again() -> None:
    """As in a log call, whose handler catches whatever is raised in it."""
    run: Any = SimpleNamespace(end_again=None)

    def told(number: int, frame: object) -> None:
        raise InterruptedError(number)

    before = signal.signal(signal.SIGTERM, told)
    try:
        with heard(run):
            with suppress(InterruptedError):
                signal.raise_signal(signal.SIGTERM)
            with pytest.raises(InterruptedError):
                run.end_again()
        assert signal.getsignal(signal.SIGTERM) is told
    finally:
        signal.signal(signal.SIGTERM, before)


def test_two_runs_at_once(project: Project) -> None:
    blocked = Blocked(project)
    first = project.start("--devices", "cpu:1")
    blocked.stage()
    refused = project.repro("--no-wait")
    assert refused.code == 1
    assert f"(pid {first.pid} on" in refused.err
    second = project.start()
    second.await_error(f"waits: another run works in this repository (pid {first.pid}")
    blocked.release()
    assert set(first.wait().outcomes.values()) == {"ran"}
    assert set(second.wait().outcomes.values()) == {"up to date"}


def test_dvc_beside_a_run(project: Project) -> None:
    """A plain `dvc repro` finds the running stage busy and says by whom; reading commands work."""
    blocked = Blocked(project)
    run = project.start("--devices", "cpu:1")
    blocked.stage()
    plain = project.dvc("repro", check=False)
    assert plain.returncode
    assert f"(PID {run.pid}): " in plain.stderr
    assert "done" in project.dvc("dag").stdout
    blocked.release()
    assert set(run.wait().outcomes.values()) == {"ran"}
    project.assert_clean()


def test_a_run_beside_dvc(project: Project) -> None:
    """A run waits for a plain `dvc repro` that is at the same stage, and takes its result."""
    blocked = Blocked(project)
    command = [sys.executable, "-m", "dvc", "repro", "slow"]
    plain = subprocess.Popen(command, cwd=project.root, stdout=subprocess.DEVNULL)
    blocked.stage()
    run = project.start("--devices", "cpu:1")
    run.await_error("waits for another DVC process")
    blocked.release()
    assert plain.wait() == 0
    finished = run.wait()
    assert finished.code == 0, finished.err
    assert finished.outcomes == {"done": "up to date", "slow": "restored from cache", "last": "ran"}
    assert project.read("runs_of_done") == "\n"
    project.assert_clean()


def test_prefect_server(project: Project, tmp_path: Path) -> None:
    """The stages finish and their results are kept; the terminal has the table, and says what the server lacks."""
    blocked = Blocked(project)
    (tmp_path / "home").mkdir()
    server = start_server(tmp_path / "home")
    environment = {**os.environ, **server.environment, **project.environment, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "flows", "repro", "--devices", "cpu:1"]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=project.root, env=environment, stdout=pipe, stderr=pipe, text=True)

    run = start()
    blocked.stage()
    server.stop()
    blocked.release()
    out, err = run.communicate()
    assert run.returncode == 0, err
    assert out.splitlines()[-1] == "3 ran"
    assert "warning: Prefect's server was lost" in err
    project.assert_clean()

    project.file("x", "2")
    refused = start()
    out, err = refused.communicate()
    assert refused.returncode == 1
    assert f"error: Prefect's server at {server.url} does not answer" in " ".join(err.split())
    assert "Traceback" not in err
