"""Pre-training: masked language modelling over molecules without padding, from a plan that any update can be found in.

Shape suffixes: B base, K known base.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.rna_transfer import checkpoints
from stages.systems.rna_transfer.encoder import Encoder, Packed, device, initialise, one_thread, pack
from stages.systems.rna_transfer.masking import Hidden, hide, is_known, masked_loss
from stages.systems.rna_transfer.settings import Pretraining, Size

Tokens = NDArray[np.uint8]

#: Molecules of equal length that are drawn together: attention is one product for each length in a batch.
TOGETHER = 8
#: Bases of validation molecules that the loss is measured on.
VALIDATED = 8_000
#: Seed of what is hidden of the validation molecules: the same for every run.
VALIDATION_SEED = 0


@dataclass(frozen=True)
class Pretrained:
    """Pre-trained weights, annealed.

    Attributes
    ----------
    weights
        State dict on the CPU.
    history
        step, seen, loss, validation_loss, learning_rate: a row a check.
    """

    weights: dict[str, Tensor]
    history: list[dict[str, Any]]


def pieces(molecules: Sequence[Tokens], longest: int) -> list[Tokens]:
    """Molecules, longer ones in pieces that follow each other; every base is in one of them."""
    return [
        molecule[start : start + longest] for molecule in molecules for start in range(0, len(molecule), longest)
    ]  # fmt: skip


def reading_order(lengths: NDArray[np.int64], bases: int, rng: np.random.Generator) -> list[NDArray[np.int64]]:
    """One pass over all molecules as batches of about so many bases.

    Molecules of equal length are drawn in groups of up to ``TOGETHER``; the groups are shuffled.
    """
    order_M = rng.permutation(len(lengths))
    by_length_M = order_M[np.argsort(lengths[order_M], kind="stable")]
    borders = np.flatnonzero(np.diff(lengths[by_length_M])) + 1
    groups = [
        equal[start : start + TOGETHER]
        for equal in np.split(by_length_M, borders)
        for start in range(0, len(equal), TOGETHER)
    ]
    batches: list[NDArray[np.int64]] = []
    held: list[NDArray[np.int64]] = []
    size = 0
    for place in rng.permutation(len(groups)).tolist():
        held.append(groups[place])
        size += int(lengths[groups[place]].sum())
        if size >= bases:
            batches.append(np.concatenate(held))
            held, size = [], 0
    return [*batches, np.concatenate(held)] if held else batches


def batches_from(
    lengths: NDArray[np.int64], bases: int, seed: int, epoch: int, place: int
) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Batches of all passes to come, from a place in one of them: pass, place, molecules."""
    while True:
        order = reading_order(lengths, bases, random_numbers(seed, "reading order", str(epoch)))
        for at in range(place, len(order)):
            yield epoch, at, order[at]
        epoch, place = epoch + 1, 0


def annealed(share: float, warmup: float) -> float:
    """Share of the largest learning rate after a share of a run: a linear rise, then half a cosine that ends at 0."""
    if share < warmup:
        return share / warmup
    return 0.5 * (1 + math.cos(math.pi * min((share - warmup) / (1 - warmup), 1.0)))


@one_thread()
def pretrain(
    molecules: Sequence[Tokens],
    validation: Sequence[Tokens],
    *,
    size: Size,
    tokens: int,
    settings: Pretraining,
    seed: int,
    folder: Path | None = None,
) -> Pretrained:
    """Pre-train one encoder.

    Parameters
    ----------
    molecules
        Tokens of the pre-training molecules.
    validation
        Molecules of families that are not among them; only measured on.
    size, tokens, settings
        The encoder, how many bases it sees, and how.
    seed
        Of the weights, the order and what is hidden.
    folder
        Where checkpoints are kept; None for none. A run that was killed goes on from its last one, to the same bytes.

    Raises
    ------
    ValueError
        There is nothing to learn from.
    """
    read = [each for each in pieces(molecules, settings.piece) if is_known(each).any()]
    if not read:
        raise ValueError("no molecule with a known base to pre-train on")
    described = {"size": size.model_dump(exclude={"tokens"}), "tokens": tokens, "seed": seed}
    key = checkpoints.run_key(described | {"settings": settings.model_dump()}, [*read, *validation])
    file = None if folder is None else folder / f"{key}.safetensors"
    network = new_encoder(size, seed)
    run = _Run(network, settings, tokens, validation_batch(validation, settings))
    found = None if file is None else checkpoints.load(file)
    if found is not None:
        run.resume(found)
    lengths = np.array([len(each) for each in read])
    for epoch, place, chosen in batches_from(lengths, settings.batch, seed, run.epoch, run.place):
        if run.seen >= tokens:
            break
        run.update([read[m] for m in chosen], random_numbers(seed, "hidden", str(run.step)))
        run.epoch, run.place = epoch, place + 1
        if file is not None and (run.step % settings.checkpoint == 0 or run.seen >= tokens):
            checkpoints.save(file, network, run.optimiser, run.progress())
    return Pretrained({name: value.cpu() for name, value in network.state_dict().items()}, run.history)


class _Run:
    """A network, its optimiser and how far it is."""

    def __init__(self, network: Encoder, settings: Pretraining, tokens: int, validation: Validation | None) -> None:
        self.network, self.settings, self.tokens, self.validation = network, settings, tokens, validation
        self.optimiser = torch.optim.AdamW(
            network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.step = self.seen = self.epoch = self.place = 0
        self.running: list[float] = []
        self.history: list[dict[str, Any]] = []

    def update(self, molecules: Sequence[Tokens], rng: np.random.Generator) -> None:
        """One update."""
        rate = self.settings.learning_rate * annealed(self.seen / self.tokens, self.settings.warmup)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        packed, hidden = hidden_batch(molecules, self.settings.mask, rng)
        loss = masked_loss(self.network.predict(self.network(packed)), hidden)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        self.step += 1
        self.seen += len(packed.base_B)
        self.running.append(loss.item())
        if self.step % self.settings.check == 0 or self.seen >= self.tokens:
            row = {"step": self.step, "seen": self.seen, "loss": float(np.mean(self.running))}
            measured = None if self.validation is None else measured_loss(self.network, self.validation)
            self.history.append(row | {"validation_loss": measured, "learning_rate": rate})
            self.running = []

    def progress(self) -> dict[str, Any]:
        """What a checkpoint needs beside the tensors."""
        return {name: getattr(self, name) for name in ("step", "seen", "epoch", "place", "running", "history")}

    def resume(self, found: checkpoints.Checkpoint) -> None:
        """Go on from a checkpoint."""
        checkpoints.restore(found, self.network, self.optimiser)
        for name, value in found.progress.items():
            setattr(self, name, value)


def new_encoder(size: Size, seed: int) -> Encoder:
    """A random encoder: the same for every arm of a size and seed."""
    network = Encoder(size)
    initialise(network, random_numbers(seed, "encoder"))
    return network.to(device())


Validation = list[tuple[Packed, Hidden]]


def hidden_batch(molecules: Sequence[Tokens], share: float, rng: np.random.Generator) -> tuple[Packed, Hidden]:
    """Molecules with hidden bases, in one batch."""
    hidden = hide(np.concatenate(molecules), share, rng)
    borders = np.cumsum([len(each) for each in molecules])[:-1]
    return pack(np.split(hidden.token_B, borders)).to(device()), hidden


def validation_batch(molecules: Sequence[Tokens], settings: Pretraining) -> Validation | None:
    """The first molecules, hidden once and for all; None where there is none."""
    held: list[Tokens] = []
    rng = random_numbers(VALIDATION_SEED, "hidden for validation")
    for each in pieces(molecules, settings.piece):
        if is_known(each).any() and sum(map(len, held)) < VALIDATED:
            held.append(each)
    return [hidden_batch(held, settings.mask, rng)] if held else None


@torch.no_grad()
def measured_loss(network: Encoder, batches: Validation) -> float:
    """Masked loss in nats, weighted by the chosen bases."""
    losses = [float(masked_loss(network.predict(network(packed)), hidden)) for packed, hidden in batches]
    return float(np.average(losses, weights=[len(hidden.chosen_C) for _, hidden in batches]))
