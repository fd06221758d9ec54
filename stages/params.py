"""params.yaml as typed objects.

A stage declares a subclass of :class:`StageParams`. Each field names the subtree of params.yaml it is read from, so
one declaration serves three readers: the stage, the list of params in dvc.yaml, and ``python -m stages params check``.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from stages.errors import UsageError

PARAMS_FILE = Path("params.yaml")


class Config(BaseModel):
    """Base of every block of params.yaml: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


def bound(key: str) -> Any:
    """Bind a field of a :class:`StageParams` to a dotted key of params.yaml; ``{name}`` and ``{key}`` are filled in."""
    return Field(json_schema_extra={"params_key": key})


class StageParams(BaseModel):
    """The params one stage reads; every field is made with :func:`bound`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def keys(cls, *, name: str = "{name}", key: str = "{key}") -> dict[str, str]:
        """Dotted keys of params.yaml by field name."""
        found = {}
        for field_name, field in cls.model_fields.items():
            extra = field.json_schema_extra
            if not isinstance(extra, dict):
                raise TypeError(f"{cls.__name__}.{field_name} is not bound to a key of params.yaml")
            found[field_name] = str(extra["params_key"]).replace("{name}", name).replace("{key}", key)
        return found

    @classmethod
    def read(cls, *, name: str = "", key: str = "", file: Path = PARAMS_FILE) -> Self:
        """Read and check the subtrees this stage uses; raises as :meth:`parse`."""
        return cls.parse(load_params(file), name=name, key=key, file=file)

    @classmethod
    def parse(cls, tree: Mapping[str, Any], *, name: str = "", key: str = "", file: Path = PARAMS_FILE) -> Self:
        """Check the subtrees this stage uses, out of a whole params tree.

        Raises
        ------
        UsageError
            A key is missing, unknown or ill-typed; the message names it and, for an unknown key, the nearest known one.
        """
        dotted = cls.keys(name=name, key=key)
        values = {field: subtree(tree, path, file) for field, path in dotted.items()}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise UsageError(explain(error, cls, dotted, file)) from None


class _OnceLoader(yaml.SafeLoader):
    """A loader that refuses a key that stands twice, where YAML libraries keep one of them without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping of keys that differ."""
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice in one block", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_params(file: Path = PARAMS_FILE) -> dict[str, Any]:
    """The whole of a params file as plain dictionaries."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{file}: not found in {Path.cwd()}. Run the command in the root of the repository.") from None
    try:
        tree = yaml.load(text, Loader=_OnceLoader)
    except yaml.YAMLError as error:
        raise UsageError(f"{file}: is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(tree, dict):
        raise UsageError(f"{file}: found {type(tree).__name__} at the top level; expected a mapping of blocks.")
    return tree


def subtree(tree: Mapping[str, Any], dotted: str, file: Path = PARAMS_FILE) -> Any:
    """The value under a dotted key; an absent key is an error that names the nearest one there."""
    node: Any = tree
    walked: list[str] = []
    for part in dotted.split("."):
        if not isinstance(node, Mapping) or part not in node:
            known = [str(k) for k in node] if isinstance(node, Mapping) else []
            place = ".".join(walked) or "the top level"
            raise UsageError(f"{file}: {dotted} is missing: no key {part!r} in {place}{nearest(part, known)}")
        node = node[part]
        walked.append(part)
    return node


def nearest(unknown: str, known: Iterable[str]) -> str:
    """Hint at the known key nearest to an unknown one, or list what is known."""
    known = sorted(known)
    close = difflib.get_close_matches(unknown, known, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; known keys: {', '.join(known)}." if known else "."


def explain(error: ValidationError, model: type[BaseModel], dotted: Mapping[str, str], file: Path) -> str:
    """One paragraph for all faults of a params block, each with its full dotted key."""
    return " ".join(_explain_one(fault, model, dotted, file) for fault in error.errors(include_url=False))


def _explain_one(fault: ErrorDetails, model: type[BaseModel], dotted: Mapping[str, str], file: Path) -> str:
    location = [str(part) for part in fault["loc"]]
    first = dotted.get(location[0], location[0]) if location else ""
    # Tags of tagged unions stand in pydantic's location but not in the file.
    inner = [part for part in location[1:] if not part.endswith("]") and part not in _union_tags(model)]
    place = ".".join([first, *inner])
    if fault["type"] == "extra_forbidden":
        return f"{file}: {place} is not a known key{nearest(location[-1], _known_keys(model, location[:-1]))}"
    if fault["type"] == "missing":
        return f"{file}: {place} is missing."
    return f"{file}: {place}: found {fault['input']!r}; {fault['msg'][:1].lower()}{fault['msg'][1:]}."


def _union_tags(model: type[BaseModel]) -> set[str]:
    tags: set[str] = set()
    for definition in model.model_json_schema().get("$defs", {}).values():
        for field in definition.get("properties", {}).values():
            if "const" in field:
                tags.add(str(field["const"]))
        tags.add(str(definition.get("title", "")))
    return tags


def _known_keys(model: type[BaseModel], location: list[str]) -> set[str]:
    """Keys known at a place of a model, from its JSON schema; all branches of a union count."""
    schema = model.model_json_schema()
    definitions = schema.get("$defs", {})
    nodes = [schema]
    for part in location:
        nodes = [step for node in _branches(nodes, definitions) for step in _step(node, part)]
    return {key for node in _branches(nodes, definitions) for key in node.get("properties", {})}


def _branches(nodes: list[dict[str, Any]], definitions: Mapping[str, Any]) -> list[dict[str, Any]]:
    flat: list[dict[str, Any]] = []
    queue = list(nodes)
    while queue:
        node = queue.pop()
        if "$ref" in node:
            queue.append(definitions[node["$ref"].rsplit("/", 1)[1]])
        queue.extend(node.get("anyOf", []))
        queue.extend(node.get("oneOf", []))
        flat.append(node)
    return flat


def _step(node: dict[str, Any], part: str) -> list[dict[str, Any]]:
    if part in node.get("properties", {}):
        return [node["properties"][part]]
    if isinstance(node.get("additionalProperties"), dict):
        return [node["additionalProperties"]]
    # The tag of a union is no step in the file: stay where we are.
    return [node] if node.get("title") == part or _is_tagged(node, part) else []


def _is_tagged(node: dict[str, Any], part: str) -> bool:
    return any(field.get("const") == part for field in node.get("properties", {}).values())
