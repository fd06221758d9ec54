"""``train rna_transfer@SEED``: pre-train encoders, fit every arm of every task, and measure where they end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.params import StageParams, bound
from stages.runtime import progress
from stages.systems.rna_transfer.settings import Train

if TYPE_CHECKING:
    from torch import Tensor

    from stages.systems.rna_transfer.corpus import Corpus


class Params(StageParams):
    """Params of ``train-rna_transfer``."""

    train: Train = bound("systems.rna_transfer.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Train and write weights, histories, predictions and geometry.

    Raises
    ------
    UsageError
        A set or a split does not exist, or a local model's library is not installed.
    DataError
        A task has no molecule to learn from, or a local model cannot be read.
    """
    from stages.systems.rna_transfer import checkpoints, tables
    from stages.systems.rna_transfer.corpus import open_corpus
    from stages.systems.rna_transfer.encoder import one_thread
    from stages.systems.rna_transfer.study import Study

    seed, train = int(key), params.train
    corpus = open_corpus(train, seed)
    scratch = checkpoints.folder(name, seed)
    with one_thread(), artifacts.atomic(artifacts.model(name, seed)) as draft:
        (draft / "weights").mkdir(parents=True)
        pretrained, pretraining = pretrain_all(corpus, draft / "weights", scratch)
        study = Study(corpus, pretrained)
        for task in progress(train.tasks, f"{name}@{seed}", unit="tasks"):
            study.task(task)
        artifacts.write_json(draft / "config.json", train.model_dump() | {"learnt": study.described()})
        artifacts.write_table(draft / "pretraining.parquet", tables.pretraining_table(pretraining))
        artifacts.write_table(draft / "history.parquet", tables.history_table(study.history))
        artifacts.write_table(draft / "predictions.parquet", tables.predictions_table(study.predictions))
        artifacts.write_table(draft / "geometry.parquet", tables.geometry_table(study.geometry))
    checkpoints.forget(name, seed)


def pretrain_all(
    corpus: Corpus, folder: Path, scratch: Path
) -> tuple[dict[tuple[str, int], dict[str, Tensor]], list[dict[str, Any]]]:
    """Pre-train every size for every length and write the weights.

    Returns
    -------
    weights, history
        State dict by size and length; rows of pretraining.parquet.
    """
    from safetensors.torch import save

    from stages.systems.rna_transfer.pretraining import pretrain
    from stages.systems.rna_transfer.settings import weights_name

    train = corpus.train
    molecules, validation = corpus.pretraining(), corpus.validation()
    found: dict[tuple[str, int], dict[str, Tensor]] = {}
    history: list[dict[str, Any]] = []
    wanted = [(name, size, tokens) for name, size in train.sizes.items() for tokens in size.tokens]
    for name, size, tokens in progress(wanted, "pre-training", unit="runs"):
        learnt = pretrain(
            molecules,
            validation,
            size=size,
            tokens=tokens,
            settings=train.pretraining,
            seed=corpus.seed,
            folder=scratch,
        )
        found[name, tokens] = learnt.weights
        history += [{"model": name, "tokens": tokens} | row for row in learnt.history]
        kept = {place: value.contiguous() for place, value in learnt.weights.items()}
        (folder / f"{weights_name(name, tokens)}.safetensors").write_bytes(save(kept))
    return found, history
