"""Downstream training: a frozen encoder stays as it is, the schedule is the same, validation chooses."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from stages.runtime import random_numbers
from stages.systems.rna_transfer.corpus import Corpus
from stages.systems.rna_transfer.encoder import Encoder, initialise
from stages.systems.rna_transfer.finetuning import Downstream, Parts, copied, finetune, new_model
from stages.systems.rna_transfer.tasks import Judged, Paired, Task
from tests.systems.rna_transfer.small import SETTINGS, SIZE, TASKS, accepted

CORPUS = Corpus(accepted(), "transfer-0", SETTINGS, 0)


def made(name: str, encoder_seed: int = 0) -> tuple[Downstream, Task, Parts]:
    task, parts, _ = CORPUS.examples(name)
    encoder = Encoder(SIZE)
    initialise(encoder, random_numbers(encoder_seed, "encoder"))
    return new_model(encoder, task, SIZE.width, 0), task, parts


@pytest.mark.parametrize("name", TASKS)
def test_a_frozen_encoder_is_bit_identical_after_training(name: str) -> None:
    model, _, parts = made(name)
    before = copied(model)
    tuned = finetune(model, parts, SETTINGS.finetuning, trained=False, seed=0)
    for weights in (tuned.last, tuned.weights, copied(model)):
        assert all(torch.equal(weights[place], before[place]) for place in before if place.startswith("encoder."))
    assert any(not torch.equal(tuned.last[place], before[place]) for place in before if place.startswith("head."))


@pytest.mark.parametrize("name", TASKS)
def test_a_trained_encoder_changes_but_for_its_language_head(name: str) -> None:
    model, _, parts = made(name)
    before = copied(model)
    tuned = finetune(model, parts, SETTINGS.finetuning, trained=True, seed=0)
    same = {place for place in before if torch.equal(tuned.last[place], before[place])}
    assert {"encoder.predict.weight", "encoder.predict.bias"} <= same
    assert not torch.equal(tuned.last["encoder.layers.0.widen.weight"], before["encoder.layers.0.widen.weight"])
    assert len(tuned.answers) == len(parts.test)


def test_embeddings_kept_of_a_frozen_encoder_give_what_it_gives_anew() -> None:
    """The answers to the test molecules out of the stored features and out of the encoder."""
    model, task, parts = made("paired")
    tuned = finetune(model, parts, SETTINGS.finetuning, trained=False, seed=0)
    with torch.no_grad():
        anew = task.answers(model.head, model.embed(parts.test), parts.test)
    for kept, found in zip(tuned.answers, anew, strict=True):
        np.testing.assert_allclose(kept.score, found.score, atol=1e-5)


def test_the_step_with_the_highest_metric_is_chosen_and_answers() -> None:
    model, task, parts = made("paired")
    tuned = finetune(model, parts, SETTINGS.finetuning, trained=True, seed=0, trail=True)
    metrics = [row["validation_metric"] for row in tuned.history]
    chosen = [row["chosen"] for row in tuned.history]
    # The first check is of an untrained head, which no arm is judged by.
    assert chosen.index(True) == 1 + metrics[1:].index(max(metrics[1:]))
    assert sum(chosen) == 1
    assert [row["step"] for row in tuned.history] == [0, 2, 4]
    assert [snapshot.step for snapshot in tuned.trail] == [0, 2, 4]
    place = chosen.index(True)
    assert all(torch.equal(tuned.trail[place].weights[name], tuned.weights[name]) for name in tuned.weights)
    with torch.no_grad():
        probe = float(task.loss(model.head, model.embed(parts.probe), parts.probe))
    assert probe == pytest.approx(tuned.history[place]["probe_loss"], rel=1e-5)


def test_an_untrained_head_answers_nothing_however_right_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, parts = made("paired")
    falling = iter([0.9, 0.8, 0.7])
    monkeypatch.setattr(Paired, "judge", lambda self, answers, examples: Judged(next(falling)))
    tuned = finetune(model, parts, SETTINGS.finetuning, trained=True, seed=0)
    assert [row["chosen"] for row in tuned.history] == [False, True, False]


def test_without_validation_molecules_the_last_step_answers() -> None:
    model, _, parts = made("paired")
    tuned = finetune(model, parts._replace(validation=[]), SETTINGS.finetuning, trained=True, seed=0)
    assert [row["chosen"] for row in tuned.history] == [False, False, True]
    assert all(torch.equal(tuned.last[name], tuned.weights[name]) for name in tuned.last)


def test_arms_see_the_same_molecules_in_the_same_order_and_start_with_the_same_head(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[list[str]] = []
    loss = Downstream.embed
    monkeypatch.setattr(
        Downstream, "embed", lambda self, some: (seen.append([e.record_id for e in some]), loss(self, some))[1]
    )
    heads = []
    for encoder_seed in (0, 1):
        model, _, parts = made("paired", encoder_seed)
        heads.append({name: value.clone() for name, value in model.head.state_dict().items()})
        finetune(model, parts, SETTINGS.finetuning, trained=True, seed=0)
    assert seen[: len(seen) // 2] == seen[len(seen) // 2 :]
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])


def test_another_order_of_the_molecules_ends_elsewhere() -> None:
    ends = []
    for order in ("order", "order", "other order"):
        model, _, parts = made("paired")
        ends.append(finetune(model, parts, SETTINGS.finetuning, trained=True, seed=0, order=order).last)
    assert all(torch.equal(ends[0][name], ends[1][name]) for name in ends[0])
    assert any(not torch.equal(ends[0][name], ends[2][name]) for name in ends[0])
