"""Arc diagrams: the true structure above the line of bases, the predicted one below.

Shapes: N pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stages.metrics.canvas import canvas
from stages.rna.scores import count
from stages.rna.structure import Pairs
from stages.systems.rna_transfer.answers import FAMILIES, Answered
from stages.systems.rna_transfer.scored import OWN_SUM, TRUE
from stages.systems.rna_transfer.settings import Run

RIGHT, WRONG, MISSED = "#1b6ca8", "#c1502e", "#9a9a9a"
#: Controls of a cubic curve whose top lies at 1: three quarters of the controls' height.
TOP = 4 / 3


class Drawn(NamedTuple):
    """One molecule and what some arms predict.

    Attributes
    ----------
    name, length
        Record id, number of bases.
    truth
        True pairs.
    predicted
        Name of the arm -> its pairs; without the arms that say nothing of the molecule.
    """

    name: str
    length: int
    truth: Pairs
    predicted: dict[str, Pairs]


def spread(answered: Answered, run: Run, seed: int, number: int) -> list[str]:
    """Test molecules with pairs of one seed, spread evenly over the F1 of an arm: from its worst to its best.

    Parameters
    ----------
    number
        How many at most.
    """
    chosen = answered.where(FAMILIES) & answered.answered(run) & (answered.molecules["seed"] == seed).to_numpy()
    chosen &= ~(answered.sums[run][:, TRUE] == 0)
    records = answered.molecules["record_id"].to_numpy()[chosen]
    f1 = answered.sums[run][chosen, OWN_SUM]
    order = np.lexsort((records, f1))
    places = np.unique(np.linspace(0, len(order) - 1, min(number, len(order))).round().astype(np.int64))
    return [str(records[order[place]]) for place in places]


def draw_arcs(path: Path, molecules: Sequence[Drawn]) -> None:
    """Draw each molecule in a row, each arm in a column."""
    arms = list(dict.fromkeys(arm for molecule in molecules for arm in molecule.predicted))
    with canvas(path, 3.1 * len(arms), 1.9 * len(molecules) + 0.4) as figure:
        grid = figure.subplots(len(molecules), len(arms), squeeze=False)
        for row, molecule in zip(grid, molecules, strict=True):
            for axes, arm in zip(row, arms, strict=True):
                _draw_one(axes, molecule, arm)
        _legend(figure)


def _draw_one(axes, molecule: Drawn, arm: str) -> None:  # type: ignore[no-untyped-def]
    from matplotlib.collections import PathCollection

    if arm not in molecule.predicted:  # ViennaRNA folds some molecules of a family only
        axes.set_axis_off()
        axes.set_title(f"{molecule.name}\n{arm}: no answer", fontsize=7.5, loc="left")
        return
    truth, found = molecule.truth, molecule.predicted[arm]
    is_found_N, is_right_N = _among(truth, found), _among(found, truth)
    for pairs, sign, colour in (
        (truth[~is_found_N], 1, MISSED),
        (truth[is_found_N], 1, RIGHT),
        (found[~is_right_N], -1, WRONG),
        (found[is_right_N], -1, RIGHT),
    ):
        if len(pairs):
            lines = [arc(left, right, sign) for left, right in pairs.tolist()]
            axes.add_collection(PathCollection(lines, facecolors="none", edgecolors=colour, linewidths=0.9))
    axes.plot([0, molecule.length - 1], [0, 0], color="#333333", linewidth=0.8)
    widest = max((int((pairs[:, 1] - pairs[:, 0]).max()) for pairs in (truth, found) if len(pairs)), default=2)
    axes.set(xlim=(-1, molecule.length), ylim=(-0.52 * widest, 0.52 * widest), yticks=[])
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)
    axes.tick_params(axis="x", labelsize=7, length=2)
    f1 = count(truth, found).f1
    axes.set_title(f"{molecule.name}\n{arm}: F1 {f1:.2f}", fontsize=7.5, loc="left")


def arc(left: int, right: int, sign: int):  # type: ignore[no-untyped-def]
    """Half an ellipse between two positions, as high as half their distance: above (1) or below (-1) the line."""
    from matplotlib.path import Path as Curve

    height = sign * TOP * (right - left) / 2
    places = [(left, 0.0), (left, height), (right, height), (right, 0.0)]
    return Curve(places, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])


def _among(pairs: Pairs, others: Pairs) -> NDArray[np.bool_]:
    """Whether each pair stands among others (N,)."""
    known = {(left, right) for left, right in others.tolist()}
    return np.array([(left, right) in known for left, right in pairs.tolist()], dtype=np.bool_)


def _legend(figure) -> None:  # type: ignore[no-untyped-def]
    from matplotlib.lines import Line2D

    named = {"right": RIGHT, "true, not predicted": MISSED, "predicted, not true": WRONG}
    lines = [Line2D([], [], color=colour, label=name) for name, colour in named.items()]
    figure.legend(handles=lines, frameon=False, fontsize=8, loc="outside lower center", ncols=3)


def shown_table(molecules: Sequence[Drawn], sequences: Sequence[str]) -> pl.DataFrame:
    """The drawn molecules with their structures: a row a molecule and arm, for predictions.parquet."""
    rows = []
    for molecule, sequence in zip(molecules, sequences, strict=True):
        for arm, pairs in molecule.predicted.items():
            rows.append(
                {
                    "record_id": molecule.name,
                    "arm": arm,
                    "sequence": sequence,
                    "true_left": molecule.truth[:, 0].tolist(),
                    "true_right": molecule.truth[:, 1].tolist(),
                    "pairs_left": pairs[:, 0].tolist(),
                    "pairs_right": pairs[:, 1].tolist(),
                    "f1": count(molecule.truth, pairs).f1,
                }
            )
    lists = dict.fromkeys(("true_left", "true_right", "pairs_left", "pairs_right"), pl.List(pl.Int32))
    return pl.DataFrame(
        rows, schema={"record_id": pl.String, "arm": pl.String, "sequence": pl.String, **lists, "f1": pl.Float64}
    )
