"""Settings: what makes no sense is refused by its key; the runs of a study are each arm of each encoder once."""

from __future__ import annotations

from typing import Any

import pytest

from stages.errors import UsageError
from stages.systems.rna_transfer.settings import ALIGNMENT, METRICS, TASKS, Run, applies, runs_of
from stages.systems.rna_transfer.train import Params
from tests.systems.rna_transfer.small import BLOCK, settings


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"arms": ["fine_tuned", "random"]}, "random_frozen should be among the arms: without them a head that learns"),
        ({"tasks": ["paired", "paired"]}, "one of the tasks stands twice"),
        ({"sizes": {"small": {"width": 18, "layers": 1, "heads": 2, "tokens": [1]}}}, "an even multiple of heads, 2"),
        ({"sizes": {"small": {"width": 16, "layers": 1, "heads": 2, "tokens": [5, 5]}}}, "one of the tokens stands"),
        ({"pair_head": {"kernel": 4}}, "kernel is 4, and should be odd"),
        ({"geometry": {"arms": ["frozen"]}}, "frozen should not be among the arms: their encoder is not trained"),
        ({"finetuning": {"epochs": {"paired": 1}}}, "finetuning.epochs should name base_pairs"),
        ({"molecules": {"length": {"paired": 40}}}, "molecules.length should name base_pairs"),
        ({"local_models": [{"name": "small", "path": "somewhere"}]}, "one of the names of models stands twice"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], told: str) -> None:
    block = BLOCK | {name: BLOCK[name] | value if isinstance(value, dict) else value for name, value in change.items()}
    if "sizes" in change:
        block["sizes"] = change["sizes"]
    with pytest.raises(UsageError, match=f"params.yaml: systems.rna_transfer.train.*{told}"):
        Params.parse({"systems": {"rna_transfer": {"train": block}}})


def test_random_arms_run_once_a_size_and_pre_trained_ones_once_a_length() -> None:
    train = settings(
        sizes={
            "small": {"width": 16, "layers": 2, "heads": 2, "tokens": [600, 900]},
            "large": {"width": 32, "layers": 2, "heads": 2, "tokens": [600]},
        },
        local_models=[{"name": "rnafm", "path": "somewhere"}],
        arms=["random", "random_frozen", "fine_tuned", "lower", "one_hot", "mfe"],
    )
    assert runs_of(train) == [
        Run("small", 0, "random"), Run("small", 0, "random_frozen"),
        Run("small", 600, "fine_tuned"), Run("small", 600, "lower"),
        Run("small", 900, "fine_tuned"), Run("small", 900, "lower"),
        Run("large", 0, "random"), Run("large", 0, "random_frozen"),
        Run("large", 600, "fine_tuned"), Run("large", 600, "lower"),
        Run("rnafm", 0, "random"), Run("rnafm", 0, "random_frozen"), Run("rnafm", -1, "fine_tuned"),
        Run("", 0, "one_hot"), Run("", 0, "mfe"),
    ]  # fmt: skip


def test_folding_answers_what_is_about_structure() -> None:
    assert [task for task in TASKS if applies("mfe", task)] == ["base_pairs", "paired"]
    assert all(applies("one_hot", task) for task in TASKS)
    assert TASKS.keys() == ALIGNMENT.keys() == METRICS.keys()
