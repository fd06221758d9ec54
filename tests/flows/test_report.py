"""How a run is told: the reason of each stage in the terminal, as Markdown and as JSON."""

from __future__ import annotations

import pytest

from flows.changes import Change
from flows.report import Outcome, RunReport, StageReport, shown_seconds, text_table


def report(*outcomes: Outcome) -> RunReport:
    return RunReport([StageReport(f"s{place}", outcome) for place, outcome in enumerate(outcomes)])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (Change("param", "lr", "0.1", "0.2"), "param lr: 0.1 → 0.2"),
        (Change("param", "lr", None, "0.2"), "param lr: new, 0.2"),
        (Change("out", "a.txt", "0123abcd", None), "out a.txt: 0123abcd → missing"),
        (Change("command", "train", "python a", "python b"), "command: python a → python b"),
        (Change("command", "train", "cat\na", "cat\nb"), "command: cat ⏎ a → cat ⏎ b"),
        # Two long commands are shown from where they differ: their beginnings would look alike.
        (
            Change("command", "train", "python " + "x" * 40 + " --lr 1", "python " + "x" * 40 + " --lr 2"),
            "command: …1 → …2",
        ),
        (Change("stage", "never run here", None, None), "never run here"),
    ],
)
def test_a_change_in_words(change: Change, words: str) -> None:
    assert str(change) == words


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        (["ran", "restored from cache", "up to date"], 0),
        (["ran", "gate stopped", "not reached"], 3),
        (["failed", "gate stopped"], 1),
        (["not reached"], 1),
        ([], 0),
    ],
)
def test_exit_codes(outcomes: list[Outcome], code: int) -> None:
    assert report(*outcomes).exit_code == code


def test_json_and_back() -> None:
    stage = StageReport("a", "failed", [Change("dep", "x", "1", "2")], 1.5, "cuda:0", "no")
    found = RunReport([stage, StageReport("b", "not reached")])
    assert RunReport.from_json(found.as_json()) == found


def test_no_reason_is_cut_off_in_a_narrow_terminal() -> None:
    changes = [Change("dep", f"data/file{number}", "01234567", "89abcdef") for number in range(5)]
    lines = text_table(RunReport([StageReport("train", "ran", changes, 61.2)]).rows(), 72).splitlines()
    assert max(map(len, lines)) <= 72
    words = " ".join(" ".join(lines[1:]).replace("61.2     -", "").split())
    assert words == "train ran " + "; ".join(map(str, changes[:3])) + "; and 2 more"


def test_a_pipe_in_a_command_does_not_end_a_cell() -> None:
    table = RunReport([StageReport("a", "ran", [Change("command", "a", "cat x | wc", "cat x")])]).markdown()
    assert table.splitlines()[-1] == r"| a | ran | - | - | command: cat x \| wc → cat x |"


def test_seconds() -> None:
    assert [shown_seconds(value) for value in (0, 0.034, 3.14, 3599.96)] == ["-", "0.03", "3.1", "3600.0"]
