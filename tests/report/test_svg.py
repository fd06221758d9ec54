"""Plots that may stand in the page, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stages.errors import DataError
from stages.report.svg import Picture, inline
from tests.report import fakes
from tests.report.conftest import parse

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 5"'


def read(folder: Path, text: str, prefix: str = "p") -> Picture:
    file = folder / "plot.svg"
    file.write_text(text, encoding="utf-8")
    return inline(file, prefix=prefix, label="a plot", system="graphs")


def test_a_plot_of_matplotlib_keeps_its_shapes_and_loses_its_wrapping(tmp_path: Path) -> None:
    drawn = fakes.drawn()["lags.svg"]
    picture = read(tmp_path, drawn)
    root = parse(picture.markup).one("svg")
    assert len(root.all("path")) == len(re.findall("<path", drawn))
    assert len(root.all("use")) == len(re.findall("<use", drawn))
    assert not root.all("metadata")
    assert "http" not in picture.markup
    assert picture.width == pytest.approx(6.4 * 96)
    assert picture.height == pytest.approx(3.2 * 96)


def test_every_reference_points_at_an_id_of_the_same_plot(tmp_path: Path) -> None:
    root = parse(read(tmp_path, fakes.drawn()["lags.svg"], "plot-7").markup)
    ids = {element.attributes["id"] for element in root.all() if "id" in element.attributes}
    references = {(use.attributes["href"] or "").removeprefix("#") for use in root.all("use")}
    for element in root.all():
        references.update(re.findall(r"url\(#([^)]+)\)", " ".join(filter(None, element.attributes.values()))))
    assert references
    assert references <= ids
    assert all(identity == "plot-7" or str(identity).startswith("plot-7-") for identity in ids)


def test_ids_drawn_at_random_do_not_reach_the_page(tmp_path: Path) -> None:
    one = fakes.PLOT.replace("COLOUR", "30")
    other = one.replace("m1", "m9f3a").replace("p1", "p77c2")
    assert read(tmp_path, one).markup == read(tmp_path, other).markup


def test_styles_hold_for_their_plot_alone(tmp_path: Path) -> None:
    style = "<style>/* all */ *{stroke-linejoin: round} #a, .b text {fill: url(#a)}</style>"
    markup = read(tmp_path, f'{HEAD}>{style}<g id="a"/></svg>', "q").markup
    assert "<style>#q *{stroke-linejoin: round}#q #q-1,#q .b text{fill: url(#q-1)}</style>" in markup


def test_a_plot_without_a_viewbox_gets_one_of_its_size(tmp_path: Path) -> None:
    picture = read(tmp_path, '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="48"><path d="M0 0"/></svg>')
    assert 'viewBox="0 0 96 48"' in picture.markup
    assert (picture.width, picture.height) == (96, 48)


def test_pictures_inside_a_plot_are_kept_as_data(tmp_path: Path) -> None:
    markup = read(tmp_path, f'{HEAD}><image xlink:href="data:image/png;base64,iVBO\nRw0="/></svg>').markup
    assert 'href="data:image/png;base64,iVBORw0="' in markup


@pytest.mark.parametrize(
    ("inside", "message"),
    [
        ("<script>alert(1)</script>", "found the element <script>; expected elements that draw"),
        ('<g><foreignObject><p xmlns="http://www.w3.org/1999/xhtml"/></foreignObject></g>', "element <foreignObject>"),
        ('<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>', "found the element <script>"),
        ('<set attributeName="href" to="x"/>', "found the element <set>"),
        ('<a href="https://example.org"><path d=""/></a>', "found the element <a>"),
        ('<rect onload="alert(1)"/>', "found the event handler onload on <rect>"),
        ('<rect OnClick="alert(1)"/>', "found the event handler OnClick on <rect>"),
        ('<use xlink:href="https://example.org/a.svg#b"/>', "found the outside address 'https://example.org/a.svg#b'"),
        ('<use href="other.svg#b"/>', "found the outside address 'other.svg#b' on <use>"),
        ('<image href="data:image/svg+xml;base64,PHN2Zz4="/>', "found the outside address 'data:image/svg"),
        ('<image href="javascript:alert(1)"/>', "found the outside address 'javascript:alert"),
        ('<rect fill="url(https://example.org/a)"/>', "found the outside address 'https://example.org/a'"),
        ("<rect style=\"fill: URL( '//example.org' )\"/>", "found the outside address '//example.org'"),
        ("<style>@import 'https://example.org';</style>", "found '@' in a style|style sheet with nested rules"),
        ("<style>a{b:c}}</style>", "unbalanced braces"),
        ("<style>* {background: url(https://example.org)}</style>", "found the outside address"),
        ('<rect style="fill: u\\72l(//example.org)"/>', r"found '\\\\' in a style"),
    ],
)
def test_what_does_not_draw_is_refused(tmp_path: Path, inside: str, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, f"{HEAD}>{inside}</svg>")
    assert "`python -m stages evaluate graphs`" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found XML that cannot be read"),
        ("<svg", "found XML that cannot be read"),
        ("<html/>", "found the root element <html>; expected <svg>"),
        ("<svg/>", "expected <svg> in the SVG namespace"),
        ('<svg xmlns="http://www.w3.org/2000/svg"/>', "neither a viewBox nor a width and height"),
        ('<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="5"/>', "neither a viewBox nor"),
        ('<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>', "found entity declarations"),
    ],
)
def test_what_is_no_plot_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_bytes_of_another_encoding_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plot.svg").write_bytes(b"\xff\xfe<\x00s\x00")
    with pytest.raises(DataError, match="bytes that are no UTF-8"):
        inline(tmp_path / "plot.svg", prefix="p", label="", system="graphs")
