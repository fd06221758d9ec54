"""`python -m flows rerun`: another version of some data, in a worktree, compared and kept as a branch."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.flows.conftest import Project
from tests.flows.rerun_project import FETCH, SCORE, Reruns, build


@pytest.fixture
def reruns(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Reruns:
    monkeypatch.setenv("RUNS", "")
    return build(project, tmp_path)


def outcomes(result: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {stage["stage"]: stage["outcome"] for stage in result["stages"]}


def test_an_older_source_with_all_else_as_it_is(reruns: Reruns) -> None:
    head, older = reruns.git("rev-parse", "HEAD"), reruns.git("rev-parse", "HEAD~1")
    result = reruns.rerun("--data-rev", "alpha=HEAD~1")
    # alpha at 1 ran before: its fetch comes from the run-cache; the score of 1 and 2 is new.
    assert reruns.executed() == ["score"]
    assert outcomes(result) == {"fetch@alpha": "restored from cache", "fetch@beta": "up to date", "score": "ran"}
    assert result["metrics"] == [{"metric": "metrics.json:score", "old": 22, "new": 12, "difference": -10}]
    assert result["origin"] == head
    assert result["data"][0]["revision"] == older
    assert result["data"][0]["changes"] == [{"key": "sources.alpha.version", "old": 2, "new": 1}]

    branch = result["branch"]
    assert branch == f"rerun/alpha-{older[:7]}-on-{head[:7]}"
    assert reruns.git("rev-parse", f"{branch}~1") == head
    assert reruns.git("diff", "--name-only", "main", branch).split() == ["dvc.lock", "params.yaml"]
    assert reruns.git("diff", "--numstat", "main", branch, "--", "params.yaml").split()[:2] == ["1", "1"]
    assert f"rerun: alpha as at {older[:7]} on {head[:7]}" in reruns.git("log", "-1", "--format=%B", branch)
    assert json.loads(reruns.project.dvc("metrics", "diff", "--json", "main", branch).stdout) == {
        "metrics.json": {"score": {"old": 22, "new": 12, "diff": -10}}
    }
    assert '"score": 12' in reruns.project.dvc("exp", "show", "--rev", branch, "--json").stdout
    assert reruns.project.read("raw/alpha") == "2\n"
    reruns.untouched()


def test_the_branch_is_a_workspace_that_dvc_calls_up_to_date(reruns: Reruns) -> None:
    branch = reruns.rerun("--data-rev", "sources.alpha=HEAD~1", "--name", "older")["branch"]
    assert branch == "older"
    reruns.git("switch", "-q", "older")
    reruns.project.dvc("checkout", "-q")
    reruns.project.assert_clean()
    assert json.loads(reruns.project.read("metrics.json")) == {"score": 12}


def test_the_same_again_is_already_there_without_prefect(reruns: Reruns) -> None:
    first = reruns.rerun("--data-rev", "alpha=HEAD~1")
    reruns.executed()
    again = reruns.call("rerun", "--json", "--data-rev", "alpha=HEAD~1", PREFECT_API_URL="http://127.0.0.1:9/api")
    result = json.loads(again.out)
    assert (again.code, result["outcome"], result["commit"]) == (0, "already there", first["commit"])
    assert result["metrics"] == first["metrics"]
    assert reruns.executed() == []
    reruns.untouched()


def test_what_was_computed_before_is_not_computed_again(reruns: Reruns) -> None:
    result = reruns.rerun("--data-rev", "alpha=HEAD~1", "--data-rev", "beta=HEAD~1")
    assert set(outcomes(result).values()) == {"restored from cache"}
    assert reruns.executed() == []
    assert result["metrics"][0]["new"] == 11


def test_code_of_one_commit_with_data_of_another(reruns: Reruns) -> None:
    result = reruns.rerun("--code-rev", "HEAD~1", "--data-rev", "beta=HEAD")
    assert result["origin"] == reruns.git("rev-parse", "HEAD~1")
    assert (result["metrics"][0]["old"], result["metrics"][0]["new"]) == (11, 12)


def test_nothing_differs(reruns: Reruns) -> None:
    done = reruns.call("rerun", "--data-rev", "alpha=HEAD", PREFECT_API_URL="http://127.0.0.1:9/api")
    assert done.code == 0
    assert "nothing differs" in done.out
    assert reruns.branches() == []


def test_a_domain_means_its_sites_and_their_sources(reruns: Reruns) -> None:
    reruns.edit("scale: 5", "scale: 6")
    reruns.commit("scale")
    result = reruns.rerun("--data-rev", "land=HEAD~2")
    assert {change["key"] for change in result["data"][0]["changes"]} == {
        "land.sites.gamma.scale",
        "sources.alpha.version",
        "sources.beta.version",
    }
    text = reruns.git("show", f"{result['branch']}:params.yaml") + "\n"
    assert text == reruns.git("show", "HEAD~2:params.yaml") + "\n"


def test_settings(reruns: Reruns) -> None:
    result = reruns.rerun("--set", "offset=100", "--set", "+land.gate.most=[1, 2]")
    assert result["metrics"][0]["new"] == 122
    text = reruns.git("show", f"{result['branch']}:params.yaml")
    assert "offset: 100 # added to the score" in text
    assert "gate: {share: 0.2, most: [1, 2]}" in text


ERRORS = {
    "name": (["--data-rev", "alhpa=HEAD"], ["no data set is called 'alhpa'", "nearest: alpha"]),
    "revision": (["--data-rev", "alpha=v9"], ["--data-rev alpha=v9: 'v9' is no revision", "git log --oneline"]),
    "code revision": (["--code-rev=-x", "--set", "offset=1"], ["--code-rev: '-x' is no revision"]),
    "form": (["--data-rev", "alpha"], ["--data-rev alpha: expected NAME=REV"]),
    "absent": (["--data-rev", "delta=HEAD~1"], ["delta is not in HEAD~1", "it has no sources.delta"]),
    "key": (["--set", "ofset=1"], ["params.yaml has no key ofset", "nearest: offset", "+ofset=... adds a key"]),
    "key in a value": (["--set", "offset.x=1"], ["no key offset.x", "offset is no block"]),
    "value": (["--set", "offset=[1"], ["the value is not YAML"]),
    "nothing": ([], ["nothing to rerun with"]),
    "branch name": (["--set", "offset=1", "--name", "a..b"], ["--name a..b: not a name that Git allows"]),
    "branch taken": (["--set", "offset=1", "--name", "main"], ["branch main is there", "give another --name"]),
    "ambiguous": (["--data-rev", "gamma=HEAD"], ["in several domains; say land.sites.gamma or sea.sites.gamma"]),
    "two minds": (["--set", "offset=1", "--dirty", "--code-rev", "HEAD"], ["give one of them"]),
}


def test_errors_are_one_paragraph_and_start_nothing(
    reruns: Reruns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.__main__ import main

    monkeypatch.setenv("COLUMNS", "10000")
    reruns.edit("\nland:", "  delta:\n    version: 1\n\nsea:\n  sites: {gamma: {path: x}}\nland:")
    reruns.commit("delta", run="no")
    monkeypatch.chdir(reruns.root)
    for case, (words, expected) in ERRORS.items():
        assert main(["rerun", *words]) == 2, case
        said = capsys.readouterr().err
        assert said.count("\n") == 1, case
        for text in expected:
            assert text in said, case
    monkeypatch.chdir(reruns.root / "raw")
    assert main(["rerun", "--set", "offset=1"]) == 2
    assert "not the root of a Git repository with DVC in it" in capsys.readouterr().err
    reruns.untouched()


def test_uncommitted_changes_are_refused_or_carried(
    reruns: Reruns, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from flows.__main__ import main

    reruns.edit("offset: 0", "offset: 1000")
    monkeypatch.chdir(reruns.root)
    assert main(["rerun", "--data-rev", "alpha=HEAD~1"]) == 2
    assert "uncommitted changes in params.yaml" in " ".join(capsys.readouterr().err.split())
    result = reruns.rerun("--data-rev", "alpha=HEAD~1", "--dirty")
    assert result["metrics"][0]["new"] == 1012
    assert reruns.git("log", "--format=%s", f"HEAD..{result['branch']}").count("\n") == 1
    assert reruns.git("status", "--porcelain") == "M params.yaml"
    assert reruns.rerun("--data-rev", "alpha=HEAD~1", "--dirty")["outcome"] == "already there"
    assert reruns.rerun("--data-rev", "alpha=HEAD~1", "--code-rev", "HEAD")["metrics"][0]["new"] == 12


def test_hooks_of_the_user_are_not_run(reruns: Reruns) -> None:
    for hook in ("post-checkout", "pre-commit", "commit-msg"):
        path = reruns.root / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\necho hook >> $RUNS\nexit 1\n")
        path.chmod(0o755)
    reruns.rerun("--data-rev", "alpha=HEAD~1")
    assert reruns.executed() == ["score"]


@pytest.fixture
def added(reruns: Reruns) -> Reruns:
    """alpha no longer fetched: a file that `dvc add` keeps, in two versions."""
    graph = {"score": SCORE, "fetch": {**FETCH, "foreach": ["beta"]}}
    graph["fetch"] = {"foreach": {"beta": {"version": 2}}, "do": FETCH["do"]}
    reruns.project.file("dvc.yaml", json.dumps({"stages": graph}))
    reruns.project.file(".gitignore", "/raw/**\n!/raw/**/\n!/raw/**/*.dvc\n/metrics.json\n")
    for value in ("7", "8"):
        reruns.project.file("raw/alpha", f"{value}\n")
        reruns.project.dvc("add", "-q", "raw/alpha")
        reruns.commit(f"alpha is {value}")
    return reruns


@pytest.mark.parametrize("name", ["raw/alpha.dvc", "raw/alpha", "alpha"])
def test_a_dvc_file_from_another_revision(added: Reruns, name: str) -> None:
    result = added.rerun("--data-rev", f"{name}=HEAD~1")
    assert (result["metrics"][0]["old"], result["metrics"][0]["new"]) == (82, 72)
    assert added.git("show", f"{result['branch']}:raw/alpha.dvc") == added.git("show", "HEAD~1:raw/alpha.dvc")
    added.untouched()


def test_a_version_that_the_cache_lacks_is_named_and_fetched_when_asked(added: Reruns, tmp_path: Path) -> None:
    project = added.project
    project.dvc("remote", "add", "--local", "-d", "store", str(tmp_path / "store"))
    project.dvc("push", "-q", "--all-commits")
    project.dvc("gc", "-q", "-w", "-f")
    failed = added.call("rerun", "--data-rev", "alpha=HEAD~1")
    assert failed.code == 1
    assert "not in the cache: raw/alpha (version" in failed.err
    assert "--pull asks the DVC remote" in failed.err.replace("\n", " ")
    added.untouched()
    assert added.rerun("--data-rev", "alpha=HEAD~1", "--pull")["metrics"][0]["new"] == 72


def own_folder(reruns: Reruns, path: str, folder: Path) -> None:
    """alpha is read from a folder of the user's, in two versions of its block."""
    folder.mkdir(parents=True)
    (folder / "value").write_text("3\n")
    stage = {
        "cmd": "echo read >> $RUNS && mkdir -p raw && cat ${land.sites.alpha.path}/value > raw/alpha",
        "deps": ["${land.sites.alpha.path}"],
        "params": ["land.sites.alpha"],
        "outs": ["raw/alpha"],
    }
    fetch = {"foreach": {"beta": {"version": 2}}, "do": FETCH["do"]}
    reruns.project.file("dvc.yaml", json.dumps({"stages": {"read": stage, "fetch": fetch, "score": SCORE}}))
    reruns.edit("path: raw/alpha, scale: 1", f"path: {path}, scale: 1")
    reruns.commit("own folder")
    reruns.edit("scale: 1", "scale: 2")
    reruns.commit("own folder, scale 2")


@pytest.mark.parametrize("path", ["absolute", "../towers/alpha", "own/alpha"])
def test_the_bytes_of_a_users_own_folder_are_todays(reruns: Reruns, tmp_path: Path, path: str) -> None:
    folder = tmp_path / "towers" / "alpha" if path != "own/alpha" else reruns.root / "own" / "alpha"
    with (reruns.root / ".gitignore").open("a") as stream:
        stream.write("/own\n")
    own_folder(reruns, str(folder) if path == "absolute" else path, folder)
    result = reruns.rerun("--data-rev", "land.sites.alpha=HEAD~1")
    assert result["metrics"][0]["new"] == 32
    (note,) = result["notes"]
    assert "kept by neither Git nor DVC" in note
    assert "this run read today's, which are the same as those recorded in dvc.lock" in note
    reruns.untouched()

    # Nobody can know from the revisions that the bytes are others: it is run again, and the branch grows.
    (folder / "value").write_text("4\n")
    again = reruns.rerun("--data-rev", "land.sites.alpha=HEAD~1")
    assert again["outcome"] == "done"
    assert again["metrics"][0]["new"] == 42
    assert "not the same as those recorded" in again["notes"][0]
    assert reruns.git("rev-parse", f"{again['branch']}~1") == result["commit"]
    reruns.executed()
    assert reruns.rerun("--data-rev", "land.sites.alpha=HEAD~1")["outcome"] == "already there"
    assert reruns.executed() == []
    assert (folder / "value").read_text() == "4\n"


def test_a_gate_that_stops_leaves_no_branch_and_no_worktree(reruns: Reruns) -> None:
    reruns.project.file("score.sh", "echo too dry; exit 3\n")
    reruns.commit("gate", run="no")
    done = reruns.call("rerun", "--data-rev", "alpha=HEAD~2")
    assert done.code == 3
    assert "gate stopped" in done.out
    assert "no branch was made" in done.err
    assert reruns.branches() == []
    reruns.untouched()


def test_keep_leaves_the_worktree_and_later_reruns_leave_it_too(reruns: Reruns) -> None:
    done = reruns.call("rerun", "--data-rev", "alpha=HEAD~1", "--keep")
    assert "git worktree remove -f -f" in done.err
    (kept,) = reruns.root.parent.glob(".*rerun*")
    assert (kept / "raw" / "alpha").read_text() == "1\n"
    reruns.rerun("--data-rev", "beta=HEAD~1")
    assert list(reruns.root.parent.glob(".*rerun*")) == [kept]
    reruns.git("worktree", "remove", "-f", "-f", str(kept))
    reruns.untouched()


def test_a_rerun_that_is_killed_is_completed_by_the_next(reruns: Reruns) -> None:
    fifo = reruns.project.fifo("../fifo")
    graph = {"fetch": FETCH, "score": SCORE}
    graph["last"] = {
        "cmd": 'echo last >> $RUNS && if [ -p "$FIFO" ]; then echo > $FIFO; cat $FIFO; fi; cat metrics.json > last.txt',
        "deps": ["metrics.json"],
        "outs": ["last.txt"],
    }
    reruns.project.file("dvc.yaml", json.dumps({"stages": graph}))
    reruns.commit("slow")
    started = reruns.start("rerun", "--data-rev", "alpha=HEAD~2", FIFO=str(fifo))
    fifo.read_text()
    started.signal_group(signal.SIGKILL)
    assert started.wait().code == -signal.SIGKILL
    assert reruns.executed() == ["last", "score"]
    assert reruns.git("worktree", "list").count("\n") == 1
    fifo.unlink()

    # Another rerun clears away what the killed one left.
    reruns.rerun("--data-rev", "beta=HEAD~2")
    reruns.untouched()
    reruns.executed()
    result = reruns.rerun("--data-rev", "alpha=HEAD~2")
    assert reruns.executed() == ["last"]
    assert outcomes(result)["score"] == "restored from cache"
    assert list((reruns.root / ".dvc" / "tmp" / "flows" / "reruns").iterdir()) == []
    reruns.untouched()


def test_two_at_once_with_equal_inputs_run_once(reruns: Reruns) -> None:
    both = [reruns.start("rerun", "--json", "--data-rev", "alpha=HEAD~1") for _ in range(2)]
    ends = [started.wait() for started in both]
    assert [end.code for end in ends] == [0, 0], ends
    assert sorted(json.loads(end.out)["outcome"] for end in ends) == ["already there", "done"]
    assert reruns.executed() == ["score"]
    reruns.untouched()


def test_the_local_settings_of_dvc_are_carried(reruns: Reruns, tmp_path: Path) -> None:
    """A cache that lies elsewhere, as .dvc/config.local says, is the one a rerun uses."""
    project = reruns.project
    shutil.move(reruns.root / ".dvc" / "cache", tmp_path / "elsewhere")
    project.dvc("config", "--local", "cache.dir", "../elsewhere")
    assert outcomes(reruns.rerun("--data-rev", "alpha=HEAD~1"))["fetch@alpha"] == "restored from cache"
    assert not (reruns.root / ".dvc" / "cache").exists()


def test_a_machine_without_an_identity_can_keep_results(reruns: Reruns, monkeypatch: pytest.MonkeyPatch) -> None:
    from flows.git import Git

    for name in [name for name in os.environ if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER", "EMAIL"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    reruns.git("config", "user.useConfigOnly", "true")
    git = Git(reruns.root)
    commit = git.commit_tree(git.tree("HEAD"), "HEAD", "kept\n")
    assert reruns.git("log", "-1", "--format=%an", commit) == "flows"


def test_the_artifact_in_prefect(reruns: Reruns, api: object) -> None:
    from tests.flows.conftest import Api

    assert isinstance(api, Api)
    branch = reruns.rerun("--data-rev", "alpha=HEAD~1")["branch"]
    (run,) = api.post("flow_runs/filter", {"limit": 1, "flow_runs": {"name": {"any_": [branch]}}})
    text = api.artifacts(run)["rerun"]
    assert "sources.alpha.version: 2 → 1" in text
    assert "| score | 22 | 12 | -10 |" in text
    assert f"Branch `{branch}`" in text
