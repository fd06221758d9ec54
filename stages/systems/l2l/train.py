"""``train l2l@SEED``: burn in on few labels, then train every arm under the same budget, for every set and share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.params import StageParams, bound
from stages.runtime import progress
from stages.systems.l2l.settings import Train

if TYPE_CHECKING:
    from stages.systems.l2l.study import Study


class Params(StageParams):
    """Params of ``train-l2l``."""

    train: Train = bound("systems.l2l.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Train and write weights, histories and predictions.

    Raises
    ------
    UsageError
        A set, a share of labels or a draw does not exist.
    DataError
        The file of proposals is missing or damaged.
    StageError
        The endpoint of the prior does not answer.
    """
    from stages.accepted.refcoco import open_set
    from stages.systems.l2l import checkpoints
    from stages.systems.l2l.fitting import one_thread
    from stages.systems.l2l.pictures import load
    from stages.systems.l2l.priors import priors_of
    from stages.systems.l2l.study import Study

    seed, train = int(key), params.train
    studies: list[Study] = []
    with one_thread(), artifacts.atomic(artifacts.model(name, seed)) as draft:
        draft.mkdir()
        for set_key in train.sets:
            accepted = open_set(set_key)
            pictures = load(accepted, train.network.side, train.network.tokens)
            priors = priors_of(accepted, train.prior, train.network.side, checkpoints.shared_folder(name))
            for share in train.shares:
                study = Study(accepted, pictures, priors, train, share, seed, checkpoints.folder(name, seed))
                for arm in progress(train.arms, f"{name}@{seed}, {set_key}, {share:g}", unit="arms"):
                    study.arm(arm)
                write_weights(draft / "weights" / set_key / f"{share:g}", study)
                studies.append(study)
        write_tables(draft, studies)
        learnt: dict[str, Any] = {}
        for study in studies:
            learnt.setdefault(study.accepted.key, {})[f"{study.share:g}"] = described(study)
        artifacts.write_json(draft / "config.json", train.model_dump(mode="json") | {"learnt": learnt})
    checkpoints.forget(name, seed)


def write_weights(folder: Path, study: Study) -> None:
    """Write the chosen weights of each arm."""
    from safetensors.torch import save

    folder.mkdir(parents=True)
    for arm, weights in study.weights.items():
        kept = {place: value.cpu().contiguous() for place, value in weights.items()}
        (folder / f"{arm}.safetensors").write_bytes(save(kept))


def write_tables(folder: Path, studies: list[Study]) -> None:
    """Write history, rounds, policy and predictions."""
    from stages.systems.l2l import predictions as tables

    for table, schema in (
        ("history", tables.HISTORY),
        ("rounds", tables.ROUNDS),
        ("policy", tables.POLICY),
        ("predictions", tables.PREDICTIONS),
    ):
        rows = [row for study in studies for row in getattr(study, table)]
        artifacts.write_table(folder / f"{table}.parquet", tables.table(rows, schema))


def described(study: Study) -> dict[str, Any]:
    """What config.json says of a set and share."""
    import numpy as np

    accepted, parts = study.accepted, study.parts
    image_S = accepted.image_O[accepted.object_S]
    counted = {"labelled": parts.labelled, "unlabelled": parts.unlabelled, "looks": parts.validation, **parts.predicted}
    return study.learnt | {
        "simulated": accepted.simulated,
        "words": len(study.pictures.vocabulary.words),
        "cut_words": study.pictures.cut,
        "sentences": {name: len(sentences) for name, sentences in counted.items()},
        "images": {name: len(np.unique(image_S[sentences])) for name, sentences in counted.items()},
    }
