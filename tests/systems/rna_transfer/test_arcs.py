"""Arc diagrams, and which molecules they show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from stages.report.svg import inline
from stages.rna.structure import no_pairs, parse
from stages.systems.rna_transfer import arcs
from stages.systems.rna_transfer.answers import FAMILIES, Answered
from stages.systems.rna_transfer.arcs import RIGHT, WRONG, Drawn
from stages.systems.rna_transfer.scored import pair_sums
from stages.systems.rna_transfer.settings import Run


def test_an_arc_joins_its_bases_and_is_half_as_high_as_they_lie_apart() -> None:
    above, below = arcs.arc(2, 12, 1), arcs.arc(2, 12, -1)
    box = above.get_extents()
    assert (box.x0, box.x1) == (2, 12)
    assert np.isclose(box.y1, 5)
    assert np.isclose(below.get_extents().y0, -5)


def test_right_pairs_are_blue_on_both_sides_and_wrong_ones_red_below(tmp_path: Path) -> None:
    truth = parse("((...))..")
    half = Drawn("set/m", 9, truth, {"fine-tuned": np.array([[0, 6], [2, 8]], np.int32), "MFE": truth})
    arcs.draw_arcs(tmp_path / "a.svg", [half])
    text = (tmp_path / "a.svg").read_text()
    assert "fine-tuned: F1 0.50" in text
    assert "MFE: F1 1.00" in text
    # Right: once above and once below in the first panel, twice each in the second, and one line of the legend.
    assert text.count(RIGHT) >= 3
    assert text.count(WRONG) >= 2
    assert inline(tmp_path / "a.svg", prefix="p", label="arcs", system="rna_transfer").width > 0


def test_an_arm_that_says_nothing_of_a_molecule_has_no_arcs(tmp_path: Path) -> None:
    """Not every molecule is folded, be it the first or a later one."""
    truth = parse("((...))..")
    folded = Drawn("set/folded", 9, truth, {"random": truth, "MFE": truth})
    not_folded = Drawn("set/other", 9, truth, {"random": truth})
    for molecules in ([folded, not_folded], [not_folded, folded]):
        arcs.draw_arcs(tmp_path / "a.svg", molecules)
        text = (tmp_path / "a.svg").read_text()
        assert text.count("MFE: no answer") == 1
        assert text.count("F1 1.00") == 3


def test_molecules_are_taken_from_the_worst_to_the_best_and_need_pairs() -> None:
    run, hairpin = Run("small", 600, "fine_tuned"), parse("((...))")
    truths = [hairpin, no_pairs(), hairpin, hairpin, hairpin]
    found = [hairpin, no_pairs(), no_pairs(), hairpin[:1], None]
    rows = pl.DataFrame({"seed": [0] * 5, "record_id": list("abcde"), "kind": [FAMILIES] * 5, "group": list("vwxyz")})
    answered = Answered(rows, {run: pair_sums(truths, found)})
    assert arcs.spread(answered, run, 0, 3) == ["c", "d", "a"]
    assert arcs.spread(answered, run, 0, 2) == ["c", "a"]
    assert arcs.spread(answered, run, 0, 9) == ["c", "d", "a"]


def test_the_table_holds_what_is_drawn() -> None:
    truth = parse("(...)")
    table = arcs.shown_table([Drawn("set/m", 5, truth, {"random": no_pairs()})], ["GAAAC"])
    assert table.row(0) == ("set/m", "random", "GAAAC", [0], [4], [], [], 0.0)
