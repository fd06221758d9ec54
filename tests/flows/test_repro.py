"""What a run does with a graph: in parallel, once each, retried where worth it; and what it says of it."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from tests.flows.conftest import Api, Project


def test_independent_stages_overlap_and_a_shared_one_runs_once(project: Project, api: Api) -> None:
    """``a`` and ``b`` each wait for the other's word: one after the other they would wait for ever."""
    project.graph(
        shared={"cmd": "echo ran >> count; cp x shared.txt; echo from shared", "deps": ["x"], "outs": ["shared.txt"]},
        a={"cmd": "echo >ab; read w <ba; cp shared.txt a.txt", "deps": ["shared.txt"], "outs": ["a.txt"]},
        b={"cmd": "read w <ab; echo >ba; cp shared.txt b.txt", "deps": ["shared.txt"], "outs": ["b.txt"]},
        join={"cmd": "cat a.txt b.txt > j.txt", "deps": ["a.txt", "b.txt"], "outs": ["j.txt"]},
    )
    project.file("x", "1\n")
    project.fifo("ab")
    project.fifo("ba")
    run = project.repro("--jobs", "2")
    assert run.code == 0, run.err
    assert set(run.outcomes.values()) == {"ran"}
    assert project.read("count") == "ran\n"
    project.assert_clean()

    # In Prefect: a task for each stage, in the graph's order, with what the stage printed.
    found = api.last_run()
    tasks = {task["name"]: task for task in api.of_run("task_runs", found)}
    assert set(tasks) == {"shared", "a", "b", "join"}
    above = {tasks[name]["id"] for name in ("a", "b")}
    assert {source["id"] for source in tasks["join"]["task_inputs"]["wait_for"]} == above
    printed = [log for log in api.logs(found) if log["message"] == "from shared"]
    assert [log["task_run_id"] for log in printed] == [tasks["shared"]["id"]]


def test_one_job_is_one_at_a_time(project: Project) -> None:
    """Each stage takes a lock that the other must find free."""
    cmd = "mkdir busy && cp x {0} && rmdir busy"
    project.graph(**{name: {"cmd": cmd.format(name), "deps": ["x"], "outs": [name]} for name in "abcd"})
    project.file("x", "1")
    run = project.repro("--jobs", "1")
    assert set(run.outcomes.values()) == {"ran"}
    assert list(run.stages) == ["a", "b", "c", "d"]


def test_targets(project: Project) -> None:
    project.graph(
        a={"cmd": "cp x a.txt", "deps": ["x"], "outs": ["a.txt"]},
        b={"cmd": "cp a.txt b.txt", "deps": ["a.txt"], "outs": ["b.txt"]},
        c={"cmd": "cp b.txt c.txt", "deps": ["b.txt"], "outs": ["c.txt"]},
        other={"cmd": "cp x o.txt", "deps": ["x"], "outs": ["o.txt"]},
    )
    project.file("x", "1")
    assert project.repro("a").outcomes == {"a": "ran"}
    assert project.repro("b.txt").outcomes == {"a": "up to date", "b": "ran"}


def test_every_outcome_with_its_reason(project: Project, api: Api) -> None:
    graph = {
        "same": {"cmd": "cp x same.txt", "deps": ["x"], "outs": ["same.txt"]},
        "dep": {"cmd": "cp y dep.txt", "deps": ["y"], "outs": ["dep.txt"]},
        "param": {"cmd": "grep -c . params.yaml > p.txt", "params": ["model.depth", "model.lr"], "outs": ["p.txt"]},
        "metric": {"cmd": "cat z > m.json", "deps": ["z"], "metrics": ["m.json"]},
        "cmd": {"cmd": "echo one > cmd.txt", "deps": ["x"], "outs": ["cmd.txt"]},
        "gpu": {"cmd": "echo $BRAID_DEVICE > g.txt", "deps": ["y"], "outs": ["g.txt"], "meta": {"device": "gpu"}},
        "lost": {"cmd": "cp x lost.txt", "deps": ["x"], "outs": ["lost.txt"]},
        "gate": {"cmd": "! grep -q bad y || { echo 9 of 10 refused; exit 3; }", "deps": ["y"]},
        "gated": {"cmd": "cp y gated.txt", "deps": ["y", "gate.ok"], "outs": ["gated.txt"]},
    }
    graph["gate"]["cmd"] += "; touch gate.ok"
    graph["gate"]["outs"] = ["gate.ok"]
    project.graph(**graph)
    project.write(x="1\n", y="good\n", z='{"score": 0.5, "same": 1}')
    project.file("params.yaml", "model: {depth: 1, lr: 0.1}\n")
    first = project.repro()
    assert set(first.outcomes.values()) == {"ran"}, first.err
    assert first.why("dep") == [("stage", "never run here", None, None)]

    graph["cmd"]["cmd"] = "echo two > cmd.txt"
    project.graph(**graph)
    project.write(y="bad\n", z='{"score": 0.75, "same": 1}')
    project.file("params.yaml", "model: {depth: 2, lr: 0.1}\n")
    (project.root / "lost.txt").unlink()
    run = project.repro("--keep-going", "--devices", "cpu:1")
    assert run.code == 3
    assert run.outcomes == {
        "same": "up to date",
        "dep": "ran",
        "param": "ran",
        "metric": "ran",
        "cmd": "ran",
        "gpu": "ran",
        "lost": "restored from cache",
        "gate": "gate stopped",
        "gated": "not reached",
    }
    hashes = [hashlib.md5(text).hexdigest()[:8] for text in (b"good\n", b"bad\n")]
    assert run.why("dep") == [("dep", "y", *hashes)]
    assert run.why("param") == [("param", "model.depth", "1", "2")]
    assert run.why("cmd") == [("command", "cmd", "echo one > cmd.txt", "echo two > cmd.txt")]
    assert run.why("lost")[0][:2] == ("out", "lost.txt")
    assert run.why("lost")[0][3] is None
    assert run.stages["gpu"]["device"] == "cpu:0"
    assert run.stages["dep"]["device"] is None
    assert run.stages["dep"]["seconds"] > 0
    assert run.stages["gate"]["detail"] == "stage gate exited with 3: 9 of 10 refused"
    assert run.stages["gated"]["detail"] == "waits for gate"

    found = api.last_run()
    assert found["state_name"] == "Failed"
    artifacts = api.artifacts(found)
    table = artifacts["stages"]
    seconds = r"\d\.\d\d"
    assert re.search(rf"\| param \| ran \| {seconds} \| - \| param model.depth: 1 → 2 \|", table)
    assert re.search(rf"\| cmd \| ran \| {seconds} \| - \| command: echo one > cmd.txt → echo two > cmd.txt \|", table)
    assert re.search(rf"\| gpu \| ran \| {seconds} \| cpu:0 \| dep y: ", table)
    # Prefect's UI does not wrap the cells of a table: what else there is to say has its own row.
    refused = "stage gate exited with 3: 9 of 10 refused"
    gate = rf"\| gate \| gate stopped \| {seconds} \| - \| {refused} \|\n\|( +\|){{4}} dep y: "
    assert re.search(gate, table)
    assert run.stages["gate"]["seconds"] > 0
    assert "| m.json:score | 0.5 | 0.75 | +0.25 |" in artifacts["metrics"]
    assert "m.json:same" not in artifacts["metrics"]
    kept = Path(project.forks.environment["PREFECT_HOME"], "storage")
    assert all(json.loads(path.read_text()) for path in kept.glob("*"))  # no pickle
    # The gate is not retried: a second try would tell nothing new.
    assert [task["run_count"] for task in api.of_run("task_runs", found) if task["name"] == "gate"] == [1]


def test_a_failure_ends_the_run_unless_told_to_keep_going(project: Project) -> None:
    project.graph(
        bad={"cmd": "echo reason >&2; exit 7", "deps": ["x"], "outs": ["never"]},
        below={"cmd": "cp never n2", "deps": ["never"], "outs": ["n2"]},
        free={"cmd": "cp x free.txt", "deps": ["x"], "outs": ["free.txt"]},
    )
    project.file("x", "1")
    run = project.repro("--jobs", "1")
    assert run.code == 1
    assert run.outcomes == {"bad": "failed", "below": "not reached", "free": "not reached"}
    assert run.stages["bad"]["detail"] == "stage bad exited with 7: reason"
    assert project.repro("--keep-going").outcomes["free"] == "ran"


def test_only_a_stage_killed_from_outside_is_tried_again(project: Project, api: Api) -> None:
    """The first try leaves half an out behind, which the second must not find."""
    once = "test ! -e ok && echo half > ok && echo >> tries && test $(wc -l < tries) = 2 || kill -9 $$"
    project.graph(
        killed={"cmd": once, "deps": ["x"], "outs": ["ok"]},
        says_no={"cmd": "echo >> noes; exit 1", "deps": ["x"], "outs": ["no"]},
        crashes={"cmd": "echo >> crashes; kill -SEGV $$", "deps": ["x"], "outs": ["c"]},
    )
    project.file("x", "1")
    run = project.repro("--keep-going")
    assert run.outcomes == {"killed": "ran", "says_no": "failed", "crashes": "failed"}
    assert project.read("tries") == "\n\n"
    assert project.read("noes") == "\n"
    assert project.read("crashes") == "\n"
    assert "SIGSEGV" in run.stages["crashes"]["detail"]
    assert project.read("ok") == "half\n"


def test_a_dep_that_changes_while_its_stage_runs(project: Project) -> None:
    """Nobody can say which of the two the result belongs to."""
    project.graph(a={"cmd": "cp x a.txt; echo 2 > x", "deps": ["x"], "outs": ["a.txt"]})
    project.file("x", "1\n")
    run = project.repro()
    assert run.outcomes == {"a": "failed"}
    assert "x changed while the stage ran" in run.stages["a"]["detail"]
    assert not (project.root / "dvc.lock").exists()
    assert project.repro().outcomes == {"a": "ran"}  # 2 stays 2


def test_an_out_that_is_not_written(project: Project) -> None:
    project.graph(a={"cmd": "true", "deps": ["x"], "outs": ["a.txt"]})
    project.file("x", "1")
    run = project.repro()
    assert run.outcomes == {"a": "failed"}
    assert re.search("without an error, but .*a.txt.* does not exist", run.stages["a"]["detail"])


def test_progress_bars_and_what_a_stage_leaves_behind(project: Project, api: Api) -> None:
    """A bar is one line of the log; a process left in the background ends with its stage."""
    project.graph(
        a={
            "cmd": "printf '10%%\\r50%%\\r100%%\\n'; cp x a.txt; read w < never & true",
            "deps": ["x"],
            "outs": ["a.txt"],
        }
    )
    project.file("x", "1")
    project.fifo("never")
    assert project.repro().outcomes == {"a": "ran"}
    messages = [log["message"] for log in api.logs(api.last_run())]
    assert "100%" in messages
    assert not any("50%" in message for message in messages)
