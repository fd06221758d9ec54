"""The page of the whole set of fakes, made once a session, and a reader of its markup."""

from __future__ import annotations

import os
from html.parser import HTMLParser
from pathlib import Path

import pytest

from stages.report.stage import Block, Params, run
from tests.report import fakes

PARAMS = Params(report=Block(title="What came of it", records_shown=8))

VOID = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"])


class Element:
    """One element: its name, attributes, text and the elements in it."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.children: list[Element] = []
        self.text = ""

    def all(self, tag: str | None = None, **wanted: str) -> list[Element]:
        """Elements inside with a name and attribute values (class: one of its words), in document order."""
        found = []
        for child in self.children:
            named = tag in (None, child.tag)
            if named and all(child.has(name.rstrip("_"), value) for name, value in wanted.items()):
                found.append(child)
            found += child.all(tag, **wanted)
        return found

    def one(self, tag: str | None = None, **wanted: str) -> Element:
        """The only such element."""
        found = self.all(tag, **wanted)
        assert len(found) == 1, f"{len(found)} of {tag} {wanted}"
        return found[0]

    def has(self, name: str, value: str) -> bool:
        """Whether an attribute has a value."""
        own = self.attributes.get(name)
        return own is not None and (value in own.split() if name == "class" else own == value)

    def words(self) -> str:
        """All text inside, with single spaces."""
        return " ".join(self.text.split())


class Reader(HTMLParser):
    """Builds elements and refuses what a browser would have to repair."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Element("root", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(set(names)) == len(names), f"<{tag}> repeats an attribute: {names}"
        element = Element(tag, dict(attrs))
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>, line {self.getpos()[0]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data


def parse(html: str) -> Element:
    """The elements of a page whose tags are balanced."""
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"not closed: {[element.tag for element in reader.open[1:]]}"
    return reader.root


def report() -> str:
    """Make the report of what lies below the working directory."""
    run(PARAMS, name="", key="")
    return Path("data/report/index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The page of all fakes."""
    before = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("report"))
    try:
        fakes.write_all(fakes.drawn())
        return report()
    finally:
        os.chdir(before)


@pytest.fixture(scope="session")
def page(html: str) -> Element:
    """Its elements."""
    return parse(html)
