"""RNA sets opened through their verdict: the accepted molecules as flat arrays, and their parts in every split.

Nothing is padded: the bases of all molecules stand one after the other, and so do their pairs; ``start`` arrays tell
where each molecule begins.

Shape suffixes: M molecule, B base of all molecules, N pair of all molecules; M1 is M + 1 offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages import artifacts
from stages.errors import DataError, UsageError
from stages.ingest.rna.schema import MFE
from stages.rna import alphabet

__all__ = ["MFE", "NONE", "Accepted", "Labels", "open_set"]

DOMAIN = "rna"
NONE = -1  # no family, no RNA type, no evidence
COLUMNS = (
    "record_id",
    "set",
    "sequence",
    "pairs_left",
    "pairs_right",
    "pair_order",
    "evidence",
    "family",
    "rna_type",
)
IDENTITIES = {"train": "identity", "pretrain": "identity_pretrain"}


@dataclass(frozen=True)
class Labels:
    """Structures that a program predicts from the sequences alone, for the molecules of an :class:`Accepted`.

    Attributes
    ----------
    source
        Name of the label source.
    has_label_M
        Whether the source says anything of the molecule: it may be too long for it.
    pair_N2, pair_start_M1
        Pairs (N, 2), 0-based within their molecule; those of molecule m are ``pair_start_M1[m] : pair_start_M1[m+1]``.
    energy_M
        Minimum free energy in kcal/mol; NaN without a label.
    paired_B
        Probability that each base is paired, in the order of ``token_B``; NaN without a label.
    """

    source: str
    has_label_M: NDArray[np.bool_]
    pair_N2: NDArray[np.int32]
    pair_start_M1: NDArray[np.int64]
    energy_M: NDArray[np.float64]
    paired_B: NDArray[np.float32]

    def pairs(self, molecule: int) -> NDArray[np.int32]:
        """Pairs (N, 2) of one molecule."""
        return self.pair_N2[self.pair_start_M1[molecule] : self.pair_start_M1[molecule + 1]]


@dataclass(frozen=True)
class Accepted:
    """The accepted molecules of some sets.

    Attributes
    ----------
    keys
        Names of the sets in params.yaml, in the order in which they were asked for.
    record_ids
        The molecules, set by set, in the order of ingest.
    set_M
        Set of each molecule, an index into ``keys``.
    token_B, start_M1
        Tokens of stages/rna/alphabet.py (uint8), without start and end; those of molecule m are
        ``start_M1[m] : start_M1[m + 1]``.
    has_structure_M
        Whether the file says which bases pair. Without, a molecule has no pairs here either.
    pair_N2, order_N, pair_start_M1
        Pairs (N, 2), 0-based within their molecule, left < right, sorted by left; pseudoknot order of each; those of
        molecule m are ``pair_start_M1[m] : pair_start_M1[m + 1]``.
    families, family_M
        Names, and the index of each molecule's; -1 where it has none.
    groups, group_M
        The same for the groups of records.parquet: set and family, or set and name where there is no family.
    evidences, evidence_M
        Where the structures come from (Published, Predicted), and the index of each molecule's; -1 where not said.
    rna_types, rna_type_M
        Kinds of RNA, and the index of each molecule's; -1 where not said.
    about
        set.json by set.
    """

    keys: tuple[str, ...]
    record_ids: tuple[str, ...]
    set_M: NDArray[np.int64]
    token_B: NDArray[np.uint8]
    start_M1: NDArray[np.int64]
    has_structure_M: NDArray[np.bool_]
    pair_N2: NDArray[np.int32]
    order_N: NDArray[np.int8]
    pair_start_M1: NDArray[np.int64]
    families: tuple[str, ...]
    family_M: NDArray[np.int64]
    groups: tuple[str, ...]
    group_M: NDArray[np.int64]
    evidences: tuple[str, ...]
    evidence_M: NDArray[np.int64]
    rna_types: tuple[str, ...]
    rna_type_M: NDArray[np.int64]
    about: Mapping[str, Mapping[str, Any]]
    _splits: pl.DataFrame

    def __len__(self) -> int:
        return len(self.record_ids)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of bases of each molecule."""
        return np.diff(self.start_M1)

    @property
    def simulated(self) -> bool:
        """Whether a set is simulated, which every table has to say."""
        return any(bool(about.get("simulated", False)) for about in self.about.values())

    @property
    def splits(self) -> tuple[str, ...]:
        """Names of the splits that these sets are in, such as transfer-0, identity, as_published."""
        return tuple(sorted(self._splits["split"].unique().to_list()))

    def tokens(self, molecule: int) -> NDArray[np.uint8]:
        """Tokens (L,) of one molecule."""
        return self.token_B[self.start_M1[molecule] : self.start_M1[molecule + 1]]

    def sequence(self, molecule: int) -> str:
        """Bases of one molecule as text; any IUPAC code of several bases is N."""
        return alphabet.decode(self.tokens(molecule))

    def pairs(self, molecule: int) -> NDArray[np.int32]:
        """Pairs (N, 2) of one molecule."""
        return self.pair_N2[self.pair_start_M1[molecule] : self.pair_start_M1[molecule + 1]]

    def part(
        self, split: str, part: str, *, per_family: int | None = None, sampled: bool | None = None
    ) -> NDArray[np.int64]:
        """Indices of the molecules of one part of a split, ascending.

        Parameters
        ----------
        per_family
            Take at most so many of a family: the first in the order that the gate drew with the seed of the split.
        sampled
            Whether to leave out what is beyond the cap of molecules a family in params.yaml; by default in what is
            learnt from (pretrain, train) and nowhere else.

        Raises
        ------
        UsageError
            There is no such split, or it has no such part.
        """
        mine = self._split(split)
        chosen = mine.filter(pl.col("part") == part)
        if chosen.is_empty():
            parts = ", ".join(sorted(mine["part"].drop_nulls().unique().to_list()))
            raise UsageError(f"The split {split} of {', '.join(self.keys)} has no part {part}; it has {parts}.")
        if sampled if sampled is not None else part in ("pretrain", "train"):
            chosen = chosen.filter("sampled")
        if per_family is not None:
            chosen = chosen.filter(pl.col("place") < per_family)
        return chosen["molecule"].sort().to_numpy().astype(np.int64)

    def identities(self, split: str, to: str = "train") -> NDArray[np.float64]:
        """Sequence identity of each test molecule with its nearest molecule of the training part; NaN elsewhere.

        Parameters
        ----------
        to
            ``train``, or ``pretrain`` for the nearest molecule of the pre-training part.
        """
        mine = self._split(split).drop_nulls(IDENTITIES[to])
        identity_M = np.full(len(self), np.nan)
        identity_M[mine["molecule"].to_numpy()] = mine[IDENTITIES[to]].to_numpy()
        return identity_M

    def clusters(self, split: str = "identity") -> NDArray[np.int64]:
        """Cluster of each molecule in a split by identity; -1 where it is in none."""
        mine = self._split(split).drop_nulls("cluster")
        cluster_M = np.full(len(self), NONE)
        cluster_M[mine["molecule"].to_numpy()] = mine["cluster"].to_numpy()
        return cluster_M

    def labels(self, source: str = MFE) -> Labels:
        """Structures of a label source, beside those of the files.

        Raises
        ------
        UsageError
            No molecule has such a label.
        """
        read = [artifacts.read_table(artifacts.ingested(DOMAIN, key) / "labels.parquet") for key in self.keys]
        table = pl.concat(read).filter(pl.col("source") == source).collect()
        order = pl.DataFrame({"record_id": self.record_ids}, schema={"record_id": pl.String})
        found = order.join(table, on="record_id", how="left", maintain_order="left")
        has_label = found["source"].is_not_null()
        if not has_label.any():
            raise UsageError(
                f"No molecule of {', '.join(self.keys)} has labels of {source}. Set `rna.labels` in params.yaml and "
                "run ingest again."
            )
        pair_N2, pair_start_M1 = _pairs(found)
        has_label_M = has_label.to_numpy()
        paired_B = np.full(len(self.token_B), np.nan, np.float32)
        known_B = np.repeat(has_label_M, self.lengths)
        paired_B[known_B] = found["paired_probability"].drop_nulls().explode().to_numpy()
        energy_M = found["mfe_kcal"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        return Labels(source, has_label_M, pair_N2, pair_start_M1, energy_M, paired_B)

    def _split(self, split: str) -> pl.DataFrame:
        mine = self._splits.filter(pl.col("split") == split)
        if mine.is_empty():
            raise UsageError(f"{', '.join(self.keys)} have no split {split}; they have {', '.join(self.splits)}.")
        return mine


def open_set(keys: str | Sequence[str], *, verdict: Path | None = None, splits: Path | None = None) -> Accepted:
    """Open one or several sets.

    Parameters
    ----------
    keys
        Names of the sets in params.yaml.
    verdict, splits
        verdict.parquet and splits.parquet of the domain; by default those of the gate.

    Raises
    ------
    UsageError
        The gate knows no such set.
    DataError
        molecules.parquet does not belong to records.parquet.
    """
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    gate = artifacts.validated(DOMAIN)
    outcome = artifacts.read_table(verdict or gate / "verdict.parquet").select("record_id", "group", "outcome")
    frame = pl.concat([_accepted(key, outcome) for key in names])
    sequences = frame["sequence"].to_list()
    pair_N2, pair_start_M1 = _pairs(frame)
    families, family_M = _coded(frame["family"])
    groups, group_M = _coded(frame["group"])
    evidences, evidence_M = _coded(frame["evidence"])
    rna_types, rna_type_M = _coded(frame["rna_type"])
    places = frame.select("record_id").with_row_index("molecule")
    table = artifacts.read_table(splits or gate / "splits.parquet").collect()
    return Accepted(
        keys=names,
        record_ids=tuple(frame["record_id"].to_list()),
        set_M=np.array([names.index(name) for name in frame["set"]], np.int64),
        token_B=alphabet.encode("".join(sequences)),
        start_M1=_offsets(frame["sequence"].str.len_bytes()),
        has_structure_M=frame["pairs_left"].is_not_null().to_numpy(),
        pair_N2=pair_N2,
        order_N=frame["pair_order"].drop_nulls().explode().drop_nulls().to_numpy().astype(np.int8),
        pair_start_M1=pair_start_M1,
        families=families,
        family_M=family_M,
        groups=groups,
        group_M=group_M,
        evidences=evidences,
        evidence_M=evidence_M,
        rna_types=rna_types,
        rna_type_M=rna_type_M,
        about={key: artifacts.read_json(artifacts.ingested(DOMAIN, key) / "set.json") for key in names},
        _splits=table.join(places, on="record_id", how="inner", maintain_order="left"),
    )


def _accepted(key: str, outcome: pl.LazyFrame) -> pl.DataFrame:
    """The accepted molecules of one set with their groups; every molecule must have been judged."""
    folder = artifacts.ingested(DOMAIN, key)
    if not folder.is_dir():
        raise UsageError(f"The RNA set {key} was not ingested: {folder} is missing.")
    molecules = artifacts.read_table(folder / "molecules.parquet").select(COLUMNS)
    frame = molecules.join(outcome.unique(), on="record_id", how="left", maintain_order="left").collect()
    unjudged = frame["outcome"].null_count()
    if unjudged or frame.is_empty():
        raise UsageError(
            f"The gate has no verdict on {unjudged} of {frame.height} molecules of {key}. "
            f"Run `python -m stages validate {DOMAIN}` again."
        )
    accepted = frame.filter(pl.col("outcome") == "accepted")
    torn = accepted.filter(
        (pl.col("pairs_left").list.len() != pl.col("pairs_right").list.len())
        | (pl.col("pairs_left").list.len() != pl.col("pair_order").list.len())
    )
    if torn.height:
        raise DataError(
            folder / "molecules.parquet",
            record=str(torn["record_id"][0]),
            found="lists of pairs of unequal lengths",
            expected="as many left as right positions and orders",
            remedy=f"Run `python -m stages ingest {DOMAIN}@{key}` again.",
        )
    return accepted


def _coded(values: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Distinct texts, sorted, and the place of each value among them; -1 for null."""
    names = sorted(values.drop_nulls().unique().to_list())
    place = {name: index for index, name in enumerate(names)}
    return tuple(names), np.array([NONE if value is None else place[value] for value in values], np.int64)


def _pairs(frame: pl.DataFrame) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Pairs (N, 2) of all rows one after the other, and where each row begins (M + 1)."""
    sides = [frame[side].drop_nulls().explode().drop_nulls().to_numpy() for side in ("pairs_left", "pairs_right")]
    return np.stack(sides, axis=1).astype(np.int32), _offsets(frame["pairs_left"].list.len())


def _offsets(sizes: pl.Series) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(sizes.fill_null(0).to_numpy(), dtype=np.int64)])
