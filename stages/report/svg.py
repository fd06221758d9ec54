"""Plots made safe to stand inside the page: drawing elements only, ids of their own, styles that end at their edge.

An SVG file is a small document that may hold scripts and may ask other hosts for pictures. Here it is read as XML,
refused if it holds anything that does not draw, and written anew: no namespaces, ids numbered in the order they appear
(so that two plots, or two runs of a plotting library that draws its ids at random, never collide or differ).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from stages.errors import DataError

SVG = "{http://www.w3.org/2000/svg}"
XLINK_HREF = "{http://www.w3.org/1999/xlink}href"

STRUCTURE = {"svg", "g", "defs", "symbol", "use", "title", "desc", "style"}
SHAPES = {"path", "rect", "circle", "ellipse", "line", "polyline", "polygon", "text", "tspan", "textPath", "image"}
PAINT = {"clipPath", "mask", "marker", "pattern", "linearGradient", "radialGradient", "stop"}
DRAWING = frozenset(STRUCTURE | SHAPES | PAINT)
IGNORED = frozenset(["metadata"])

#: Attributes that hold the id of another element without a leading ``#``.
ID_LISTS = frozenset(["aria-labelledby", "aria-describedby"])

_URL = re.compile(r"url\(\s*(['\"]?)(.*?)\1\s*\)", re.IGNORECASE)
_RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")
_DANGEROUS_CSS = re.compile(r"@|expression\s*\(|javascript:|\\|<", re.IGNORECASE)
_LENGTH = re.compile(r"\s*([0-9.]+)\s*(px|pt|in|mm|cm)?\s*$")
_PIXELS = {None: 1.0, "px": 1.0, "pt": 4 / 3, "in": 96.0, "mm": 96 / 25.4, "cm": 96 / 2.54}

REMEDY = "Draw the plot anew with `python -m stages evaluate {system}`, as an SVG of shapes and text alone."


class Picture:
    """An SVG ready to be written into a page: its markup, and its width over its height."""

    def __init__(self, markup: str, width: float, height: float) -> None:
        self.markup = markup
        self.width = width
        self.height = height


def inline(file: Path, *, prefix: str, label: str, system: str) -> Picture:
    """Read a plot and return the markup that draws it inside a page.

    Parameters
    ----------
    file
        The SVG file.
    prefix
        What its ids begin with; unique in the page.
    label
        What a reader who cannot see the picture is told.
    system
        Whose plot it is, for the message of an error.

    Raises
    ------
    DataError
        The file is absent, is not SVG, or holds a script, a foreign element, an event handler or an outside address.
    """
    return _Reader(file, prefix, system).picture(label)


class _Reader:
    def __init__(self, file: Path, prefix: str, system: str) -> None:
        self.file = file
        self.prefix = prefix
        self.remedy = REMEDY.format(system=system)
        self.ids: dict[str, str] = {}

    def refuse(self, found: str, expected: str) -> DataError:
        return DataError(self.file, found=found, expected=expected, remedy=self.remedy)

    def picture(self, label: str) -> Picture:
        root = self._parse()
        self._drop_ignored(root)
        for element in root.iter():
            self._check_name(element)
            if (identity := element.get("id")) is not None:
                self.ids.setdefault(identity, f"{self.prefix}-{len(self.ids) + 1}")
        width, height = self._size(root)
        for element in root.iter():
            self._rewrite(element)
        for name in ("width", "height", "x", "y", "version", "baseProfile", "id", "style", "class"):
            root.attrib.pop(name, None)
        root.attrib |= {"id": self.prefix, "role": "img", "aria-label": label, "focusable": "false"}
        return Picture(ElementTree.tostring(root, encoding="unicode"), width, height)

    def _parse(self) -> ElementTree.Element:
        try:
            text = self.file.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise self.refuse("no such file", "the plot that metrics.json names") from None
        except UnicodeDecodeError as error:
            raise self.refuse(f"bytes that are no UTF-8 ({error.reason})", "an SVG file") from None
        if re.search(r"<!ENTITY|<!DOCTYPE[^>]*\[", text, re.IGNORECASE):
            raise self.refuse("entity declarations", "an SVG file without them")
        try:
            root = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise self.refuse(f"XML that cannot be read ({error})", "an SVG file") from None
        if root.tag != f"{SVG}svg":
            raise self.refuse(f"the root element <{_local(root.tag)}>", "<svg> in the SVG namespace")
        return root

    def _drop_ignored(self, root: ElementTree.Element) -> None:
        for parent in list(root.iter()):
            for child in list(parent):
                if child.tag in {f"{SVG}{name}" for name in IGNORED}:
                    parent.remove(child)

    def _check_name(self, element: ElementTree.Element) -> None:
        local = element.tag.removeprefix(SVG)
        if local not in DRAWING:
            raise self.refuse(f"the element <{_local(element.tag)}>", "elements that draw: shapes, text, gradients")

    def _size(self, root: ElementTree.Element) -> tuple[float, float]:
        """Size in CSS pixels; a root without a viewBox gets one."""
        width, height = _pixels(root.get("width")), _pixels(root.get("height"))
        box = [float(part) for part in re.findall(r"-?[0-9.]+(?:[eE][-+]?\d+)?", root.get("viewBox", ""))]
        if len(box) != 4 and width and height:
            box = [0.0, 0.0, width, height]
            root.set("viewBox", f"0 0 {width:g} {height:g}")
        if len(box) != 4 or box[2] <= 0 or box[3] <= 0:
            raise self.refuse("neither a viewBox nor a width and height", "an <svg> that says how large it is")
        return width or box[2], height or box[3]

    def _rewrite(self, element: ElementTree.Element) -> None:
        element.tag = element.tag.removeprefix(SVG)
        attributes = dict(element.attrib)
        element.attrib.clear()
        for name, value in attributes.items():
            if name == XLINK_HREF or name == "href":
                element.set("href", self._reference(element, value))
            elif name.startswith("{"):
                continue  # editors' notes and xml:space; xml:base would redirect every reference
            elif name.lower().startswith("on"):
                raise self.refuse(f"the event handler {name} on <{element.tag}>", "shapes that do nothing")
            elif name == "id":
                element.set("id", self.ids[value])
            elif name in ID_LISTS:
                element.set(name, " ".join(self._renamed(one) for one in value.split()))
            else:
                element.set(name, self._style(value) if name == "style" else self._urls(value))
        if element.tag == "style":
            element.text = "".join(self._scoped("".join(element.itertext())))

    def _reference(self, element: ElementTree.Element, value: str) -> str:
        if value.startswith("#"):
            return f"#{self._renamed(value[1:])}"
        picture = re.match(r"data:image/(png|jpeg|webp);base64,[A-Za-z0-9+/=\s]*$", value)
        if element.tag == "image" and picture:
            return "".join(value.split())
        raise self.refuse(
            f"the outside address {value[:60]!r} on <{element.tag}>", "references inside the file, and pictures as data"
        )

    def _urls(self, value: str) -> str:
        def local(match: re.Match[str]) -> str:
            target = match[2].strip()
            if not target.startswith("#"):
                raise self.refuse(f"the outside address {target[:60]!r}", "references inside the file")
            return f"url(#{self._renamed(target[1:])})"

        return _URL.sub(local, value)

    def _style(self, text: str) -> str:
        if danger := _DANGEROUS_CSS.search(text):
            raise self.refuse(f"{danger[0]!r} in a style", "plain declarations: colours, widths, fonts")
        return self._urls(text)

    def _scoped(self, text: str) -> Iterator[str]:
        """The rules of a style sheet, each held to this picture."""
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
        if _RULE.sub("", text).strip():
            raise self.refuse("a style sheet with nested rules or unbalanced braces", "plain rules")
        for selectors, declarations in _RULE.findall(self._style(text)):
            held = (f"#{self.prefix} {self._selector(one.strip())}" for one in selectors.split(","))
            yield f"{','.join(held)}{{{declarations.strip()}}}"

    def _selector(self, selector: str) -> str:
        return re.sub(r"#([\w-]+)", lambda match: f"#{self._renamed(match[1])}", selector)

    def _renamed(self, identity: str) -> str:
        return self.ids.get(identity, f"{self.prefix}-absent")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _pixels(length: str | None) -> float | None:
    match = _LENGTH.match(length or "")
    return float(match[1]) * _PIXELS[match[2]] if match else None
