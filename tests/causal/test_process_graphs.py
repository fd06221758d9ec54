from __future__ import annotations

from pathlib import Path

import polars as pl

from stages.causal.process_graphs import draw_graph, draw_graphs, draw_lag_functions

NAMES = ["P", "SWC", "LE"]


def links(*rows: tuple[str, str, int, float, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["source", "target", "lag", "value", "mark"], orient="row")


def drawn(path: Path, table: pl.DataFrame) -> bytes:
    draw_graph(path, NAMES, table, {"SWC": 0.8}, "day")
    return path.read_bytes()


def test_equal_graphs_give_equal_bytes(tmp_path: Path) -> None:
    table = links(("P", "SWC", 1, 0.4, "-->"), ("SWC", "LE", 0, -0.2, "o-o"))
    assert drawn(tmp_path / "a.svg", table) == drawn(tmp_path / "b.svg", table)


def test_a_mark_says_where_a_link_points(tmp_path: Path) -> None:
    forward, backward = links(("P", "SWC", 0, 0.4, "-->")), links(("SWC", "P", 0, 0.4, "<--"))
    assert drawn(tmp_path / "a.svg", forward) == drawn(tmp_path / "b.svg", backward)
    without, conflicting = links(("P", "SWC", 0, 0.4, "o-o")), links(("P", "SWC", 0, 0.4, "x-x"))
    assert b"stroke-dasharray" in drawn(tmp_path / "c.svg", conflicting)
    assert b"stroke-dasharray" not in drawn(tmp_path / "d.svg", without)
    assert drawn(tmp_path / "d.svg", without) == drawn(tmp_path / "e.svg", without.drop("mark"))


def test_a_panel_says_why_it_is_empty(tmp_path: Path) -> None:
    table = links(("P", "SWC", 1, 0.4, "-->"))
    draw_graphs(tmp_path / "a.svg", NAMES, {"dry": (table, {}), "wet": "too few days"}, "day")
    text = (tmp_path / "a.svg").read_text()
    assert "too few days" in text
    assert ">dry<" in text


def test_levels_stand_beside_each_other_in_their_colours(tmp_path: Path) -> None:
    row = {"source": "P", "target": "SWC", "lag": 1, "value": 0.4, "low": 0.3, "high": 0.5, "found": True}
    table = pl.DataFrame([row | {"level": level} for level in ("dry", "wet")])
    draw_lag_functions(tmp_path / "a.svg", NAMES, table, "day", {"dry": "#b5651d", "wet": "#1b6ca8"})
    text = (tmp_path / "a.svg").read_text()
    assert "#b5651d" in text
    assert "#1b6ca8" in text
