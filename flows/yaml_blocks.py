"""One block of a YAML text replaced by another text's, or one value set; all other lines and comments stay."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from flows.errors import GraphError

Keys = tuple[str, ...]
#: Layouts of sequences in block style; the one that leaves a text as it is is used.
LAYOUTS = ({"mapping": 2, "sequence": 2, "offset": 0}, {"mapping": 2, "sequence": 4, "offset": 2})
WIDTHS = (120, 80, 4096)


def load(text: str, label: str) -> Mapping[str, Any]:
    """A YAML text as nested mappings.

    Raises
    ------
    GraphError
        The text is no YAML, or no mapping.
    """
    try:
        tree = YAML(typ="safe", pure=True).load(text) or {}
    except YAMLError as error:
        raise GraphError(f"{label}: not readable as YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, Mapping):
        raise GraphError(f"{label}: expected a mapping of keys, found {type(tree).__name__}.")
    return tree


def with_block(text: str, other: str, keys: Keys) -> str:
    """A text whose block at ``keys`` is the one of another text.

    The lines of the block are taken over as they are, with their comments. Where that cannot be (a parent in flow
    style, an anchor that lies elsewhere) the value is set.
    """
    value = _at(load(other, "the other text"), keys)
    wanted = _replaced(load(text, "the text"), keys, value)
    for attempt in (_spliced, _assigned):
        result = attempt(text, other, keys)
        if result is not None and _reads_as(result, wanted):
            return result
    return with_value(text, keys, value)


def with_value(text: str, keys: Keys, value: Any) -> str:
    """A text in which the value at ``keys`` is another one; mappings above it are made where they lack.

    Raises
    ------
    GraphError
        The YAML that comes out does not read as what was meant.
    """

    def put(document: Any) -> None:
        for key in keys[:-1]:
            document = document.setdefault(key, CommentedMap())
        document[keys[-1]] = value

    result = _edited(text, put)
    if not _reads_as(result, _replaced(load(text, "the text"), keys, value)):
        raise GraphError(f"{'.'.join(keys)}: {value!r} cannot be written into this YAML text; commit it by hand.")
    return result


def _spliced(text: str, other: str, keys: Keys) -> str | None:
    old, new = _lines_of(text, keys), _lines_of(other, keys)
    if old is None or new is None:
        return None
    lines, others = text.splitlines(keepends=True), other.splitlines(keepends=True)
    (first, last, column), (start, end, indent) = old, new
    block = []
    for line in others[start:end]:
        stripped = line.lstrip(" ")
        depth = len(line) - len(stripped)
        block.append(" " * max(0, depth - indent + column) + stripped if stripped.strip() else line)
    if block and not block[-1].endswith("\n"):
        block[-1] += "\n"
    return "".join([*lines[:first], *block, *lines[last:]])


def _lines_of(text: str, keys: Keys) -> tuple[int, int, int] | None:
    """First line of a block in block style, the line after its last, and its column; None where it has no own lines."""
    node = YAML(typ="safe", pure=True).compose(text)
    name: Node | None = None
    for key in keys:
        if not isinstance(node, MappingNode) or node.flow_style:
            return None
        pair = next(((name, value) for name, value in node.value if str(name.value) == key), None)
        if pair is None:
            return None
        name, node = pair
    if name is None:
        return None
    return name.start_mark.line, _last_line(node, text.splitlines()) + 1, name.start_mark.column


def _last_line(node: Any, lines: list[str]) -> int:
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _last_line(last[1] if isinstance(last, tuple) else last, lines)
    if isinstance(node, ScalarNode) and node.style in ("|", ">"):
        # The mark stands where the next token begins: step back over what lies between.
        line = int(node.end_mark.line) - (1 if node.end_mark.column == 0 else 0)
        while line > node.start_mark.line and not lines[min(line, len(lines) - 1)].strip():
            line -= 1
        return min(line, len(lines) - 1)
    return int(node.end_mark.line)


def _assigned(text: str, other: str, keys: Keys) -> str | None:
    value = _at(_round_trip(LAYOUTS[0], WIDTHS[0]).load(other), keys)

    def put(document: Any) -> None:
        for key in keys[:-1]:
            document = document.setdefault(key, CommentedMap())
        document[keys[-1]] = value

    return _edited(text, put)


def _edited(text: str, edit: Callable[[Any], None]) -> str:
    """Change a text with the layout that would leave it as it is."""
    options = [(layout, width) for width in WIDTHS for layout in LAYOUTS]
    for layout, width in options:
        if _dumped(text, layout, width, lambda _: None) == text:
            return _dumped(text, layout, width, edit)
    return _dumped(text, *options[0], edit)


def _dumped(text: str, layout: dict[str, int], width: int, edit: Callable[[Any], None]) -> str:
    yaml = _round_trip(layout, width)
    document = yaml.load(text)
    edit(document)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def _round_trip(layout: dict[str, int], width: int) -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = width
    yaml.indent(**layout)
    return yaml


def _reads_as(text: str, wanted: Any) -> bool:
    try:
        return bool(load(text, "the result") == wanted)
    except GraphError:
        return False


def _at(tree: Any, keys: Keys) -> Any:
    for key in keys:
        tree = tree[key]
    return tree


def _replaced(tree: Mapping[str, Any], keys: Keys, value: Any) -> dict[str, Any]:
    first, *rest = keys
    return {**tree, first: _replaced(tree.get(first, {}), tuple(rest), value) if rest else value}
