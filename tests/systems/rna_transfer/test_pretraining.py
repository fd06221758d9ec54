"""Pre-training: every base is read, the rate ends at 0, and a killed run goes on to the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from stages.rna import alphabet
from stages.systems.rna_transfer import checkpoints, pretraining
from stages.systems.rna_transfer.pretraining import (
    annealed,
    batches_from,
    pieces,
    pretrain,
    reading_order,
    validation_batch,
)
from tests.systems.rna_transfer.small import SETTINGS, SIZE


def corpus(count: int = 30, seed: int = 0) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(8, 20, count)
    return [alphabet.encode("".join(rng.choice(list("ACGU"), length))) for length in lengths]


def test_long_molecules_are_read_in_pieces_and_no_base_is_lost() -> None:
    molecule = corpus(1)[0]
    cut = pieces([molecule, molecule[:3]], 5)
    assert max(map(len, cut)) == 5
    np.testing.assert_array_equal(np.concatenate(cut), np.concatenate([molecule, molecule[:3]]))


def test_a_pass_reads_every_molecule_once_in_batches_of_about_so_many_bases() -> None:
    lengths = np.random.default_rng(0).integers(10, 30, 500)
    order = reading_order(lengths, 300, np.random.default_rng(1))
    assert sorted(np.concatenate(order).tolist()) == list(range(500))
    sizes = [int(lengths[batch].sum()) for batch in order[:-1]]
    longest_group = pretraining.TOGETHER * 29
    assert all(300 <= size < 300 + longest_group for size in sizes)


def test_the_order_can_be_entered_anywhere() -> None:
    lengths = np.random.default_rng(0).integers(10, 30, 100)
    whole = batches_from(lengths, 300, 0, 0, 0)
    first = [next(whole) for _ in range(12)]
    epoch, place, _ = first[9]
    assert epoch > 0
    again = batches_from(lengths, 300, 0, epoch, place + 1)
    for expected in first[10:]:
        found = next(again)
        assert found[:2] == expected[:2]
        np.testing.assert_array_equal(found[2], expected[2])


def test_the_rate_rises_and_ends_at_nothing() -> None:
    assert annealed(0.05, 0.1) == 0.5
    assert annealed(0.1, 0.1) == 1
    assert annealed(0.55, 0.1) == pytest.approx(0.5)
    assert annealed(1.0, 0.1) == annealed(1.7, 0.1) == 0
    assert annealed(0.0, 0.0) == 1


def test_it_learns_what_a_pattern_has_to_say() -> None:
    """Bases in strict turn: what is hidden follows from its neighbours."""
    turns = [alphabet.encode(("ACGU" * 8)[start : start + 24]) for start in range(4)] * 6
    found = pretrain(turns, turns, size=SIZE, tokens=30_000, settings=SETTINGS.pretraining, seed=0)
    assert found.history[0]["validation_loss"] > 1.2
    assert found.history[-1]["validation_loss"] < 0.8


def test_equal_seeds_give_equal_weights_and_others_do_not() -> None:
    read = corpus()
    first, second, third = (
        pretrain(read, [], size=SIZE, tokens=400, settings=SETTINGS.pretraining, seed=seed).weights
        for seed in (0, 0, 1)
    )
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], third[name]) for name in first)


class Killed(Exception):
    """Stands for a signal."""


@pytest.mark.parametrize("after", [1, 3, 4])
def test_a_killed_run_goes_on_to_the_same_bytes(workspace: Path, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    read, folder = corpus(), checkpoints.folder("rna_transfer", 0)
    wanted = pretrain(read, read[:4], size=SIZE, tokens=900, settings=SETTINGS.pretraining, seed=0)
    assert wanted.history[-1]["step"] > 5
    update = pretraining._Run.update

    def killed(run: pretraining._Run, *arguments: object) -> None:
        if run.step == after:
            raise Killed
        update(run, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(pretraining._Run, "update", killed)
        with pytest.raises(Killed):
            pretrain(read, read[:4], size=SIZE, tokens=900, settings=SETTINGS.pretraining, seed=0, folder=folder)
    steps: list[int] = []

    def counted(run: pretraining._Run, *arguments: object) -> None:
        steps.append(run.step)
        update(run, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(pretraining._Run, "update", counted)
    found = pretrain(read, read[:4], size=SIZE, tokens=900, settings=SETTINGS.pretraining, seed=0, folder=folder)
    assert steps[0] == after // SETTINGS.pretraining.checkpoint * SETTINGS.pretraining.checkpoint
    assert all(torch.equal(wanted.weights[name], found.weights[name]) for name in wanted.weights)
    assert found.history == wanted.history
    steps.clear()
    again = pretrain(read, read[:4], size=SIZE, tokens=900, settings=SETTINGS.pretraining, seed=0, folder=folder)
    assert steps == []
    assert all(torch.equal(wanted.weights[name], again.weights[name]) for name in wanted.weights)
    checkpoints.forget("rna_transfer", 0)
    assert not folder.exists()


def test_a_checkpoint_of_other_molecules_or_settings_is_not_gone_on_from() -> None:
    read = corpus()
    key = checkpoints.run_key({"seed": 0}, read)
    assert key == checkpoints.run_key({"seed": 0}, read)
    assert len({key, checkpoints.run_key({"seed": 1}, read), checkpoints.run_key({"seed": 0}, read[1:])}) == 3
    # Other borders between the same bases are other molecules.
    joined = [np.concatenate(read[:2]), *read[2:]]
    assert checkpoints.run_key({"seed": 0}, joined) != key


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(ValueError, match="no molecule with a known base"):
        pretrain([alphabet.encode("NNN")], [], size=SIZE, tokens=10, settings=SETTINGS.pretraining, seed=0)
    assert validation_batch([alphabet.encode("NNN")], SETTINGS.pretraining) is None
