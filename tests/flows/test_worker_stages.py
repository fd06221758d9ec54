"""Stages run by real workers in clones of their own, with caches of their own and a folder as DVC remote."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.flows.conftest import Api, ForkServer, Project
from tests.flows.workers import HEARTBEAT, Workers, deploy, make_pools, start_workers, until

HOSTS = {"red": "cpu", "blue": "gpu"}


@dataclass
class Cluster:
    """A coordinator's project, and machines that work for it: each a clone, a cache and a worker."""

    project: Project
    api: Api
    prefect_server: dict[str, str]
    workers: dict[str, Workers] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.project.root.parent

    @property
    def notes(self) -> Path:
        return Path(self.project.environment["NOTES"])

    def start(self, host: str, pool: str) -> None:
        """A machine with a clone and a cache of its own."""
        clone = self.folder / host
        if not clone.exists():
            git(self.folder, "clone", "-q", str(self.project.root), str(clone))
        words = ("--devices", "cpu:1") if pool == "gpu" else ("--limit", "1")
        told = {**self.prefect_server, **self.project.environment}
        self.workers[host] = start_workers(clone, pool, host, told, *words)

    def ensure(self) -> None:
        """Start the workers that a test has killed, and forget what was noted."""
        self.notes.write_text("")
        missing = [host for host in HOSTS if host not in self.workers or self.workers[host].ended]
        for host in missing:
            self.start(host, HOSTS[host])
        for host in missing:
            self.workers[host].wait_online(self.api)

    def commit(self, **stages: dict[str, object]) -> None:
        self.project.graph(**stages)  # type: ignore[arg-type]
        git(self.project.root, "add", "--all")
        git(self.project.root, "commit", "-q", "--allow-empty", "-m", "graph")

    def ran(self) -> dict[str, list[str]]:
        """Stage -> on which machines its command began."""
        found: dict[str, list[str]] = {}
        for line in self.notes.read_text().splitlines():
            stage, folder, _ = line.split()
            found.setdefault(stage, []).append(Path(folder).relative_to(self.folder).parts[0])
        return found

    def pids(self) -> list[int]:
        return [int(line.split()[2]) for line in self.notes.read_text().splitlines()]


@pytest.fixture(scope="module")
def machines(
    prefect_server: dict[str, str],
    empty_repository: Path,
    fork_server: ForkServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("machines")
    make_pools(prefect_server)
    deploy(prefect_server)
    git(folder, "clone", "-q", str(empty_repository), "project")
    environment = {"BRAID_LEASES": str(folder / "leases"), "NOTES": str(folder / "notes"), **HEARTBEAT}
    project = Project(folder / "project", fork_server, environment)
    subprocess.run(["cp", "-r", str(empty_repository / ".dvc"), str(project.root)], check=True)
    project.dvc("remote", "add", "--default", "store", str(folder / "remote"))
    cluster = Cluster(project, Api(prefect_server["PREFECT_API_URL"]), prefect_server)
    project.file(".gitignore", "/*.txt\n")
    project.file("numbers.csv", "1\n2\n")
    cluster.commit()
    yield cluster
    for workers in cluster.workers.values():
        workers.kill_all()


@pytest.fixture
def cluster(machines: Cluster) -> Cluster:
    machines.ensure()
    return machines


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def noted(name: str, work: str) -> str:
    """A command that first notes its stage, folder and pid."""
    return f"echo {name} $PWD $$ >> $NOTES; {work}"


#: The first to run it waits until it is killed; the next does the work.
BLOCK_ONCE = "mkdir $NOTES-first 2> /dev/null && exec sleep 100; echo done > slow.txt"


def test_stages_run_on_other_machines_and_come_back_by_the_remote(cluster: Cluster) -> None:
    project = cluster.project
    project.file("own.txt", "only here\n")
    cluster.commit(
        make={"cmd": noted("make", "cp numbers.csv made.txt"), "deps": ["numbers.csv"], "outs": ["made.txt"]},
        train={
            "cmd": noted("train", "cat made.txt made.txt > model.txt; echo $BRAID_DEVICE > device.txt"),
            "deps": ["made.txt"],
            "outs": ["model.txt", "device.txt"],
            "meta": {"device": "gpu"},
        },
        mine={"cmd": noted("mine", "cp own.txt mine.txt"), "deps": ["own.txt"], "outs": ["mine.txt"]},
    )
    run = project.repro("--remote")
    assert run.code == 0, run.err
    assert run.outcomes == dict.fromkeys(("make", "train", "mine"), "ran")
    assert project.read("model.txt") == "1\n2\n1\n2\n"
    assert project.read("device.txt") == "cpu\n"
    where = cluster.ran()
    assert where == {"make": ["red"], "train": ["blue"], "mine": ["project"]}
    assert "cpu:0" in (run.stages["train"]["device"] or "")
    project.assert_clean()
    # One writer: the clones of the workers are as they were, and nothing of their worktrees is left.
    for host in HOSTS:
        assert git(cluster.folder / host, "status", "--porcelain") == ""
        assert len(git(cluster.folder / host, "worktree", "list").splitlines()) == 1
    # Caches are apart, and dvc.lock is what `dvc repro` would have written: it runs nothing.
    assert "Running stage" not in project.dvc("repro").stdout
    # Once more with other data: the outs that lie here are those of the old.
    project.file("numbers.csv", "3\n")
    git(project.root, "commit", "-qam", "other numbers")
    again = project.repro("--remote")
    assert again.outcomes == dict.fromkeys(("make", "train"), "ran") | {"mine": "up to date"}
    assert project.read("model.txt") == "3\n3\n"
    project.assert_clean()


def test_a_gate_that_stops_is_not_tried_again(cluster: Cluster) -> None:
    cluster.commit(
        gate={
            "cmd": noted("gate", "echo 'too many refused'; exit 3"),
            "outs": ["gate.txt"],
            "deps": ["numbers.csv"],
        },
        after={"cmd": noted("after", "touch after.txt"), "deps": ["gate.txt"], "outs": ["after.txt"]},
    )
    run = cluster.project.repro("--remote")
    assert run.code == 3
    assert run.outcomes == {"gate": "gate stopped", "after": "not reached"}
    assert "too many refused" in run.stages["gate"]["detail"]
    assert list(cluster.ran()) == ["gate"]
    assert len(cluster.ran()["gate"]) == 1


@pytest.mark.parametrize("lost", ["worker", "machine"])
def test_a_stage_whose_worker_is_lost_is_sent_once_more(cluster: Cluster, lost: str) -> None:
    cluster.commit(slow={"cmd": noted("slow", f"{BLOCK_ONCE} # {lost}"), "deps": ["numbers.csv"], "outs": ["slow.txt"]})
    started = cluster.project.start("--remote")
    until(lambda: cluster.ran().get("slow"), "the stage began")
    assert cluster.ran() == {"slow": ["red"]}
    red = cluster.workers["red"]
    if lost == "machine":
        red.kill_all()
        cluster.start("green", "cpu")
    else:
        (pid,) = red.pids()
        os.kill(pid, signal.SIGKILL)
    run = started.wait()
    Path(f"{cluster.notes}-first").rmdir()
    assert run.code == 0, run.err + run.out
    assert run.outcomes == {"slow": "ran"}
    assert cluster.project.read("slow.txt") == "done\n"
    assert cluster.ran()["slow"] == ["red", "green" if lost == "machine" else "red"]
    # Nothing of the first attempt goes on.
    first = cluster.pids()[0]
    until(lambda: not Path(f"/proc/{first}").exists(), "the first attempt ended")
    if lost == "worker":
        assert "was ended by SIGKILL" in red.text
        assert "1 of its runs marked as crashed" in red.text
    else:
        cluster.workers.pop("green").kill_all()
    cluster.project.assert_clean()


def test_uncommitted_changes_of_the_graph_are_refused(cluster: Cluster) -> None:
    cluster.commit(one={"cmd": noted("one", "touch one.txt"), "outs": ["one.txt"], "deps": ["numbers.csv"]})
    cluster.project.graph(one={"cmd": "touch one.txt", "outs": ["one.txt"], "deps": ["numbers.csv"]})
    run = cluster.project.repro("--remote")
    assert run.code == 1
    assert "dvc.yaml: changed since the last commit" in " ".join(run.err.split())
    assert cluster.ran() == {}
