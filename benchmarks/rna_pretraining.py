"""Masked language modelling without padding beside a padded BERT of transformers: one JSON object a line.

    python benchmarks/rna_pretraining.py --peers FOLDER    a virtual environment with the peer; without it, none
    python benchmarks/rna_pretraining.py --quick           a smoke test of a few seconds

Both sides see the same molecules, hide 15 % of the bases, and do an update of AdamW for each batch of about 2048 bases,
on one thread. Only bases count: no padding, no ends. Seconds are CPU seconds of each side's own process, taken in
turns; a figure is the median over the turns. `ours_s` and `peer_s` are seconds for a million bases, `padding` the share
of the peer's tokens that are padding. Dropout is off on both sides.

rna_pretraining.random
    The peer's batches are molecules in random order, each batch padded to its longest molecule.
rna_pretraining.by_length
    The peer's batches are molecules of like length (group_by_length of its Trainer), which pads least.

The molecules are those of data/ingested/rna/rfam-seed, where they are; else made up with the lengths of Rfam's seeds.
The peer: `pip install --no-deps transformers huggingface_hub tokenizers safetensors` and what it imports, into an
environment that sees the project's packages.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

#: Median, and the ends of most, of the lengths of Rfam's seed sequences in the ViennaRNA tests.
LENGTHS = (23, 85, 214)
BASES, MASK, RATE, WARM = 2048, 0.15, 3e-3, 3
FIRST_BASE, UNKNOWN, MASKED, PAD, START, END = 4, 8, 1, 0, 2, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, help="virtual environment of the peer")
    parser.add_argument("--molecules", type=Path, default=ROOT / "data/ingested/rna/rfam-seed/molecules.parquet")
    parser.add_argument("--quick", action="store_true", help="one short turn")
    parser.add_argument("--peer-task", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer_task:
        print(json.dumps(peer_turn(json.loads(options.peer_task.read_text(encoding="utf-8")))))
        return
    from benchmarks.pcmci import restart_with_one_thread

    restart_with_one_thread()
    molecules, origin = read_molecules(options.molecules)
    updates, turns = (6, 1) if options.quick else (40, 5)
    sizes = (
        {"small": (64, 3, 2)} if options.quick else {"small": (64, 3, 2), "medium": (96, 4, 3), "large": (128, 6, 4)}
    )
    for name, size in sizes.items():
        compare(name, size, molecules, origin, updates, turns, resolved(options.peers))


def compare(
    name: str,
    size: tuple[int, int, int],
    molecules: list[np.ndarray],
    origin: str,
    updates: int,
    turns: int,
    python: Path | None,
) -> None:
    """Lines of one size."""
    kinds = ("random", "by_length")
    ours: list[dict[str, Any]] = []
    peers: dict[str, list[dict[str, Any]]] = {kind: [] for kind in kinds}
    for turn in range(turns):
        ours.append(our_turn(size, molecules, updates, turn))
        for kind in kinds if python else ():
            peers[kind].append(run_peer(python, size, molecules, updates, turn, kind))
    mine = statistics.median(each["seconds"] / each["bases"] * 1e6 for each in ours)
    for kind in kinds:
        work = f"{name}: width {size[0]}, {size[1]} layers; {updates} updates of {BASES} bases, {origin}"
        row: dict[str, Any] = {"name": f"rna_pretraining.{kind}", "work": work, "ours_s": round(mine, 3)}
        row |= {"bases_a_second": round(1e6 / mine), "parameters": ours[0]["parameters"]}
        if not python:
            print(json.dumps(row | {"skipped": "no --peers FOLDER"}))
            continue
        theirs = statistics.median(each["seconds"] / each["bases"] * 1e6 for each in peers[kind])
        padding = statistics.median(each["padding"] for each in peers[kind])
        row |= {"peer": peers[kind][0]["version"], "peer_s": round(theirs, 3), "ratio": round(theirs / mine, 2)}
        row |= {"peer_bases_a_second": round(1e6 / theirs), "peer_parameters": peers[kind][0]["parameters"]}
        row |= {"padding": round(padding, 3), "loss": ours[-1]["loss"], "peer_loss": peers[kind][-1]["loss"]}
        print(json.dumps(row), flush=True)


def resolved(folder: Path | None) -> Path | None:
    """Python of the peer's environment."""
    if folder is None:
        return None
    python = folder.absolute() / "bin" / "python"
    if not python.exists():
        sys.exit(f"{python}: not found; --peers takes a virtual environment, see --help")
    return python


def read_molecules(path: Path) -> tuple[list[np.ndarray], str]:
    """Tokens of the molecules, and where they come from."""
    from stages.rna import alphabet

    if path.exists():
        import polars as pl

        sequences = pl.read_parquet(path, columns=["sequence"])["sequence"].to_list()
        return [alphabet.encode(each) for each in sequences if each], path.parent.name
    rng = np.random.default_rng(0)
    lengths = rng.triangular(*LENGTHS, 5000).astype(int)
    return [rng.integers(FIRST_BASE, UNKNOWN, length).astype(np.uint8) for length in lengths], "made-up molecules"


def our_turn(size: tuple[int, int, int], molecules: list[np.ndarray], updates: int, seed: int) -> dict[str, Any]:
    """Updates of our pre-training: reading order, hiding, packing, forward, backward, optimiser."""
    import torch

    from stages.systems.rna_transfer.encoder import Encoder, initialise
    from stages.systems.rna_transfer.masking import masked_loss
    from stages.systems.rna_transfer.pretraining import batches_from, hidden_batch
    from stages.systems.rna_transfer.settings import Size

    torch.set_num_threads(1)
    network = Encoder(Size(width=size[0], layers=size[1], heads=size[2], tokens=[1]))
    initialise(network, np.random.default_rng(seed))
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, fused=True)
    rng = np.random.default_rng(seed)
    order = batches_from(np.array([len(each) for each in molecules]), BASES, seed, 0, 0)

    def update() -> tuple[int, int, float]:
        _, _, chosen = next(order)
        packed, hidden = hidden_batch([molecules[m] for m in chosen], MASK, rng)
        loss = masked_loss(network.predict(network(packed)), hidden)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return len(packed.base_B), len(packed.base_B), loss.item()

    return timed(update, updates) | {"parameters": count(network)}


def run_peer(
    python: Path, size: tuple[int, int, int], molecules: list[np.ndarray], updates: int, seed: int, kind: str
) -> dict[str, Any]:
    """The peer's turn in its own process."""
    with tempfile.TemporaryDirectory() as folder:
        np.savez(Path(folder) / "molecules.npz", *molecules)
        task = Path(folder) / "task.json"
        told = {"molecules": str(Path(folder) / "molecules.npz"), "size": size, "kind": kind}
        task.write_text(json.dumps(told | {"updates": updates, "seed": seed}), encoding="utf-8")
        command = [str(python), str(Path(__file__).resolve()), "--peer-task", str(task)]
        ran = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    if ran.returncode:
        sys.exit(f"the peer failed: {ran.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return found


def peer_turn(task: dict[str, Any]) -> dict[str, Any]:
    """Updates of a BERT of transformers on padded batches."""
    import torch
    import transformers

    torch.set_num_threads(1)
    torch.manual_seed(task["seed"])
    with np.load(task["molecules"]) as stored:
        molecules = [torch.from_numpy(stored[name].astype(np.int64)) for name in stored.files]
    width, layers, heads = task["size"]
    config = transformers.BertConfig(
        vocab_size=UNKNOWN + 1,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=max(map(len, molecules)) + 2,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=PAD,
    )
    network = transformers.BertForMaskedLM(config).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, fused=True)
    rng = np.random.default_rng(task["seed"])
    order = padded_order(np.array([len(each) for each in molecules]), task["kind"], rng)

    def update() -> tuple[int, int, float]:
        ids, attention, labels, bases = padded_batch([molecules[m] for m in next(order)])
        loss = network(input_ids=ids, attention_mask=attention, labels=labels).loss
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        return bases, ids.numel(), loss.item()

    return timed(update, task["updates"]) | {
        "parameters": count(network),
        "version": f"transformers {transformers.__version__}, BertForMaskedLM",
    }


def padded_order(lengths: np.ndarray, kind: str, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches with as many bases as ours on average."""
    per_batch = max(1, round(BASES / lengths.mean()))
    while True:
        order = rng.permutation(len(lengths))
        if kind == "by_length":
            order = order[np.argsort(lengths[order], kind="stable")]
            # As many bases in each batch, however short its molecules.
            whole = np.cumsum(lengths[order]) // BASES
            batches = np.split(order, np.flatnonzero(np.diff(whole)) + 1)
        else:
            batches = np.split(order, range(per_batch, len(order), per_batch))
        for place in rng.permutation(len(batches)):
            yield batches[place]


def padded_batch(molecules: list[Any]) -> tuple[Any, Any, Any, int]:
    """Molecules between their ends, padded to the longest, with hidden bases and the labels of those."""
    import torch

    ends = [torch.cat([torch.tensor([START]), each, torch.tensor([END])]) for each in molecules]
    ids = torch.nn.utils.rnn.pad_sequence(ends, batch_first=True, padding_value=PAD)
    known = (ids >= FIRST_BASE) & (ids < UNKNOWN)
    chosen = known & (torch.rand(ids.shape) < MASK)
    labels = torch.where(chosen, ids, -100)
    fate = torch.rand(ids.shape)
    ids = torch.where(chosen & (fate < 0.8), MASKED, ids)
    replaced = torch.randint(FIRST_BASE, UNKNOWN, ids.shape)
    ids = torch.where(chosen & (fate >= 0.8) & (fate < 0.9), replaced, ids)
    return ids, (ids != PAD).long(), labels, sum(map(len, molecules))


def timed(update: Callable[[], tuple[int, int, float]], updates: int) -> dict[str, Any]:
    """CPU seconds of some updates after a few to warm up."""
    for _ in range(WARM):
        update()
    begin, bases, tokens, losses = time.process_time(), 0, 0, []
    for _ in range(updates):
        found = update()
        bases, tokens = bases + found[0], tokens + found[1]
        losses.append(found[2])
    seconds = time.process_time() - begin
    loss = round(float(np.mean(losses[-10:])), 3)
    return {"seconds": seconds, "bases": bases, "padding": 1 - bases / tokens, "loss": loss}


def count(network: Any) -> int:
    return sum(weight.numel() for weight in network.parameters())


if __name__ == "__main__":
    main()
