"""Sets of referring segmentation opened through their verdict: images, objects and sentences as flat arrays.

Masks stay run lengths and images stay encoded until someone asks for them.

Shape suffixes: I image, O referred object, S sentence, F runs of all masks one after the other; O1 is O + 1 offsets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.errors import UsageError
from stages.refcoco import masks

DOMAIN = "refcoco"
NONE = -1  # no category


@dataclass(frozen=True)
class Accepted:
    """The accepted refs of one set.

    A referred object stands once, however many refs name it; a ref of two test parts has its sentences in both.

    Attributes
    ----------
    key
        Name of the set in params.yaml.
    image_id_I, image_I, size_I2
        Images that have an accepted ref, by id: encoded JPEG or PNG, RGB, and the height and width in pixels that
        masks are in. An image may be stored smaller.
    object_id_O, image_O, category_O
        Referred objects, by id: the index of each one's image and category; -1 where its category has no name.
    run_F, start_O1
        Run lengths of the objects' masks (stages/refcoco/masks.py); those of object o are
        ``run_F[start_O1[o] : start_O1[o + 1]]``.
    categories
        Names of the categories.
    sentence_id_S, sentence_S, tokens_S, object_S, record_S
        Sentences, in the order of the refs: text, words, the index of the object each names, its ref's record_id.
    part_S
        Part of each sentence: train, validation, test, testA, testB.
    about
        set.json.
    """

    key: str
    image_id_I: NDArray[np.int64]
    image_I: tuple[bytes, ...]
    size_I2: NDArray[np.int64]
    object_id_O: NDArray[np.int64]
    image_O: NDArray[np.int64]
    category_O: NDArray[np.int64]
    run_F: NDArray[np.uint32]
    start_O1: NDArray[np.int64]
    categories: tuple[str, ...]
    sentence_id_S: NDArray[np.int64]
    sentence_S: tuple[str, ...]
    tokens_S: tuple[tuple[str, ...], ...]
    object_S: NDArray[np.int64]
    record_S: tuple[str, ...]
    part_S: NDArray[np.str_]
    about: Mapping[str, Any]
    _labelled: pl.DataFrame

    @property
    def simulated(self) -> bool:
        """Whether the set is simulated, which every table has to say."""
        return bool(self.about.get("simulated", False))

    def part(self, name: str) -> NDArray[np.int64]:
        """Indices of the sentences of one part, ascending.

        Raises
        ------
        UsageError
            The set has no such part.
        """
        found = np.flatnonzero(self.part_S == name)
        if not len(found):
            there = ", ".join(sorted(set(self.part_S.tolist())))
            raise UsageError(f"The set {self.key} has no part {name}; it has {there}.")
        return found

    def labelled(self, share: float, draw: int) -> NDArray[np.bool_]:
        """Whether the masks of each image (I,) count as known, of a share of the training images and a draw.

        Raises
        ------
        UsageError
            The gate made no such share or draw, or the set has no training images.
        """
        if self._labelled.is_empty():
            raise UsageError(f"The set {self.key} has no training part, so none of its images are drawn as labelled.")
        mine = self._labelled.filter((pl.col("share") == share) & (pl.col("draw") == draw))
        if mine.is_empty():
            shares = sorted(self._labelled["share"].unique().to_list())
            draws = self._labelled["draw"].n_unique()
            raise UsageError(
                f"The gate drew no labelled images of {self.key} for a share of {share:g} and draw {draw}; there are "
                f"the shares {shares} and draws 0 to {draws - 1} (refcoco.labelled in params.yaml)."
            )
        return np.isin(self.image_id_I, mine.filter("labelled")["image_id"].to_numpy())


def open_set(key: str, *, gate: Path | None = None) -> Accepted:
    """Open one set.

    Parameters
    ----------
    key
        Name of the set in params.yaml.
    gate
        Folder of verdict, splits and labelled.parquet; by default that of the domain.

    Raises
    ------
    UsageError
        The set was not ingested, or the gate has no verdict on it.
    """
    folder, gate = artifacts.ingested(DOMAIN, key), gate or artifacts.validated(DOMAIN)
    if not folder.is_dir():
        raise UsageError(f"The set {key} was not ingested: {folder} is missing.")
    refs = _accepted(folder, gate, key)
    objects = (
        artifacts.read_table(folder / "objects.parquet")
        .select("object_id", "image_id", "category", "counts", "height", "width")
        .filter(pl.col("object_id").is_in(refs["object_id"].unique().to_list()))
        .sort("object_id")
        .collect()
    )
    images = (
        pl.scan_parquet(folder / "images" / "*.parquet")
        .select("image_id", "image", "height", "width")
        .filter(pl.col("image_id").is_in(objects["image_id"].unique().to_list()))
        .sort("image_id")
        .collect()
    )
    categories = sorted(objects["category"].drop_nulls().unique().to_list())
    place = {name: index for index, name in enumerate(categories)}
    sentences = (
        artifacts.read_table(folder / "sentences.parquet")
        .collect()
        .join(refs.select("record_id", "object_id", "part"), on="record_id", how="inner", maintain_order="left")
    )
    object_id_O, image_id_I = (frame[name].to_numpy() for frame, name in ((objects, "object_id"), (images, "image_id")))
    run_F, start_O1 = masks.flat(
        [masks.from_packed(*row) for row in objects.select("counts", "height", "width").iter_rows()]
    )
    return Accepted(
        key=key,
        image_id_I=image_id_I,
        image_I=tuple(images["image"].to_list()),
        size_I2=images.select("height", "width").to_numpy().astype(np.int64),
        object_id_O=object_id_O,
        image_O=np.searchsorted(image_id_I, objects["image_id"].to_numpy()),
        category_O=np.array([NONE if name is None else place[name] for name in objects["category"]], np.int64),
        run_F=run_F,
        start_O1=start_O1,
        categories=tuple(categories),
        sentence_id_S=sentences["sentence_id"].to_numpy(),
        sentence_S=tuple(sentences["sentence"].to_list()),
        tokens_S=tuple(tuple(words) for words in sentences["tokens"].to_list()),
        object_S=np.searchsorted(object_id_O, sentences["object_id"].to_numpy()),
        record_S=tuple(sentences["record_id"].to_list()),
        part_S=np.array(sentences["part"].to_list(), np.str_),
        about=artifacts.read_json(folder / "set.json"),
        _labelled=artifacts.read_table(gate / "labelled.parquet").filter(pl.col("set") == key).collect(),
    )


def _accepted(folder: Path, gate: Path, key: str) -> pl.DataFrame:
    """record_id, object_id and part of the accepted refs of one set; every ref must have been judged."""
    outcome = artifacts.read_table(gate / "verdict.parquet").select("record_id", "outcome").unique()
    refs = artifacts.read_table(folder / "refs.parquet").select("record_id", "object_id")
    judged = refs.join(outcome, on="record_id", how="left", maintain_order="left").collect()
    unjudged = judged["outcome"].null_count()
    accepted = judged.filter(pl.col("outcome") == "accepted")
    if unjudged or accepted.is_empty():
        raise UsageError(
            f"The gate has no verdict on {unjudged} of {judged.height} refs of {key}, and accepts {accepted.height}. "
            f"Run `python -m stages validate {DOMAIN}` again."
        )
    parts = artifacts.read_table(gate / "splits.parquet").select("record_id", "part").collect()
    return accepted.join(parts, on="record_id", how="inner", maintain_order="left_right")
