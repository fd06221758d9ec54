"""``python -m stages params``: check, describe and set params.yaml."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from stages import artifacts
from stages.entries import ENTRIES, entry_module, known_names
from stages.errors import UsageError
from stages.params import PARAMS_FILE, Config, StageParams, load_params, nearest, subtree

PROFILES = Path("profiles")
DEFAULT = "default"

#: Top-level keys that belong to the graph itself: the size in use, and the seeds of ``foreach: ${seeds}``.
GRAPH_KEYS = ("profile", "seeds")

#: Verbs whose stages write data/raw/NAME.
RAW_VERBS = ("fetch", "simulate")

#: What can be the name of a stage in DVC and of a folder.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


def run(words: list[str], *, write: bool) -> None:
    """Do what the first word says."""
    match words:
        case ["check"]:
            tree = load_params()
            check(tree)
            check_strangers(tree)
            print(f"{PARAMS_FILE}: every key is known and in its range")
        case ["describe"]:
            print("\n".join(describe("")))
        case ["describe", key]:
            print("\n".join(describe(key)))
        case ["apply", profile, *assignments]:
            apply(profile, assignments)
        case _:
            raise UsageError(
                "`params` takes one of: check; describe [KEY]; apply PROFILE [KEY=VALUE ...]. "
                f"Profiles: {', '.join(profile_names())}."
            )


def bindings(tree: Mapping[str, Any]) -> Iterator[tuple[type[StageParams], str, str]]:
    """Each stage's params class with the names and keys that params.yaml gives it."""
    for verb in ENTRIES:
        for name in known_names(verb) or [""]:
            params = params_class(verb, name)
            container = container_of(params, name)
            keys = ["0"] if container is None else [str(key) for key in block_at(tree, container)]
            for key in keys:
                yield params, name or key, key


def params_class(verb: str, name: str) -> type[StageParams]:
    """The params class of the stage that does a verb for a domain or system, or of the one stage of the verb."""
    found: type[StageParams] = importlib.import_module(entry_module(verb, name)).Params
    return found


def container_of(params: type[StageParams], name: str) -> str | None:
    """Dotted key of the block that names what a stage runs on: ``sources``, ``eeg.corpora``; None for other stages."""
    for dotted in params.keys(name=name).values():
        container, found, _ = dotted.partition(".{key}")
        if found:
            return container
    return None


def containers() -> dict[str, str]:
    """Each block that names sources or data sets, and the verb of its stage."""
    found = {}
    for verb in ENTRIES:
        for name in known_names(verb) or [""]:
            container = container_of(params_class(verb, name), name)
            if container is not None:
                found[container] = verb
    return found


def block_at(tree: Mapping[str, Any], dotted: str) -> Mapping[Any, Any]:
    """The block under a dotted key, empty where there is none."""
    node: Any = tree
    for part in dotted.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def check(tree: Mapping[str, Any]) -> None:
    """Read every block as the stage that uses it would, and refuse keys that no stage reads.

    Raises
    ------
    UsageError
        One key is unknown, missing or ill-typed; the message names it.
    """
    read: set[str] = set(GRAPH_KEYS)
    if not isinstance(subtree(tree, "profile"), str):
        raise UsageError(f"{PARAMS_FILE}: profile: found {tree['profile']!r}; expected the name of a profile.")
    seeds = subtree(tree, "seeds")
    right = isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds)
    if not right or len(set(seeds)) < len(seeds):
        raise UsageError(
            f"{PARAMS_FILE}: seeds: found {seeds!r}; expected whole numbers that differ, such as [0, 1, 2]."
        )
    _check_names(tree)
    for params, name, key in bindings(tree):
        params.parse(tree, name=name, key=key)
        read.update(params.keys(name=name, key=key).values())
    _refuse_unread(tree, read, ())


def _check_names(tree: Mapping[str, Any]) -> None:
    """Names of sources and data sets become names of stages and folders; a path must be there, or be fetched."""
    raw: dict[str, str] = {}
    for place, verb in containers().items():
        for key, value in block_at(tree, place).items():
            if verb in RAW_VERBS and raw.setdefault(str(key), place) != place:
                raise UsageError(
                    f"{PARAMS_FILE}: {place}: the name {key!r} stands in {raw[str(key)]} too, and both would write "
                    f"{artifacts.raw(str(key))}. Rename one of them."
                )
            if not (isinstance(key, str) and NAME.fullmatch(key)):
                raise UsageError(
                    f"{PARAMS_FILE}: {place}: the name {key!r} is no name of a stage or folder; use letters, digits, "
                    "- and _, and quote a name that is all digits."
                )
            path = value.get("path") if isinstance(value, Mapping) else None
            if isinstance(path, str):
                _check_path(f"{place}.{key}.path", path)


def _check_path(place: str, path: str) -> None:
    if path.startswith("~"):
        raise UsageError(
            f"{PARAMS_FILE}: {place}: found {path!r}; DVC does not know ~, write {Path(path).expanduser()}"
        )
    made = Path(path).parts[:2] == ("data", "raw")
    if not made and not Path(path).exists():
        raise UsageError(f"{PARAMS_FILE}: {place}: {path!r} does not exist (looked in {Path.cwd()}).")


def check_strangers(tree: Mapping[str, Any]) -> None:
    """Refuse folders of data sets and seeds that params.yaml no longer names: DVC hashes them with their neighbours.

    Raises
    ------
    UsageError
        There are some; the message says how to remove them.
    """
    blocks = {container: container.partition(".")[0] for container, verb in containers().items() if verb == "ingest"}
    named = {
        artifacts.ingested(domain): set(block_at(tree, container))
        for container, domain in blocks.items()
        if domain in tree
    }
    named |= {artifacts.model(system): {str(seed) for seed in tree["seeds"]} for system in known_names("train")}
    strangers = [
        path.as_posix()
        for folder, names in named.items()
        for path in (sorted(folder.iterdir()) if folder.is_dir() else [])
        if path.is_dir() and path.name not in names
    ]
    if strangers:
        raise UsageError(
            f"{', '.join(strangers)}: no longer named in {PARAMS_FILE}, yet part of what the next stages hash. Remove "
            f"with `rm -r {' '.join(strangers)}` (the DVC cache keeps the content), or name them again."
        )


def _refuse_unread(node: Mapping[str, Any], read: set[str], above: tuple[str, ...]) -> None:
    for key, value in node.items():
        dotted = ".".join([*above, str(key)])
        if dotted in read:
            continue
        beneath = {path.split(".")[len(above)] for path in read if path.split(".")[: len(above)] == list(above)}
        if str(key) not in beneath:
            raise UsageError(f"{PARAMS_FILE}: {dotted} is not a known key{nearest(str(key), beneath)}")
        if isinstance(value, Mapping):
            _refuse_unread(value, read, (*above, str(key)))


def apply(profile: str, assignments: list[str]) -> None:
    """Write a profile, then single values, into params.yaml; comments and unnamed keys stay.

    Each profile is laid over ``profiles/default.yaml``, so that one after another leaves nothing of the first.
    """
    if profile not in profile_names():
        raise UsageError(f"`params apply {profile}`: no such profile{nearest(profile, profile_names())}")
    round_trip = YAML()
    round_trip.width = 118
    round_trip.preserve_quotes = True
    round_trip.indent(mapping=2, sequence=4, offset=2)
    document = round_trip.load(PARAMS_FILE.read_text(encoding="utf-8"))
    for layer in dict.fromkeys([DEFAULT, profile]):
        for dotted, value in leaves(load_params(PROFILES / f"{layer}.yaml")):
            assign(document, dotted, value)
    for assignment in assignments:
        dotted, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"`params apply`: found {assignment!r}; expected KEY=VALUE, such as seeds=[0,1].")
        assign(document, dotted, yaml.safe_load(text))
    document["profile"] = profile
    with artifacts.atomic(PARAMS_FILE) as draft:
        with draft.open("w", encoding="utf-8") as stream:
            round_trip.dump(document, stream)
        check(load_params(draft))
    print(f"{PARAMS_FILE}: {' '.join(['profile', profile, *assignments])}; `git diff` shows what changed")


def assign(document: Any, dotted: str, value: Any) -> None:
    """Set one value of a nested mapping; the blocks above it must be there."""
    *above, last = dotted.split(".")
    node = subtree(document, ".".join(above)) if above else document
    if not isinstance(node, Mapping):
        raise UsageError(f"{PARAMS_FILE}: {'.'.join(above)} is a value; {last!r} cannot be set inside it.")
    if isinstance(node.get(last), Mapping) and not isinstance(value, Mapping):
        raise UsageError(f"{PARAMS_FILE}: {dotted} is a block of keys, not a value{nearest('', map(str, node[last]))}")
    if isinstance(value, list):
        value = CommentedSeq(value)
        value.fa.set_flow_style()
    node[last] = value  # type: ignore[index]


def leaves(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of a nested mapping."""
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*above, str(key)))
        else:
            yield ".".join([*above, str(key)]), value


def profile_names() -> list[str]:
    """Names of the profiles there are."""
    return sorted(path.stem for path in PROFILES.glob("*.yaml"))


def describe(wanted: str) -> list[str]:
    """Lines that say what the keys of params.yaml mean, of those under ``wanted``.

    Raises
    ------
    UsageError
        No key starts so; the message names the nearest.
    """
    lines: dict[str, list[str]] = {
        "profile": ["profile (str): the profile that was applied last"],
        "seeds": ["seeds (list[int]): each system is trained once for each"],
    }
    for verb in ENTRIES:
        for name in known_names(verb) or [""]:
            params = params_class(verb, name)
            for field, dotted in params.keys(name=name or "{name}", key="NAME").items():
                annotation = params.model_fields[field].annotation
                for path, line in _describe_type(dotted.replace("{name}", "NAME"), annotation):
                    known = lines.setdefault(path, [])
                    known += [] if line in known else [line]
    under = {path: said for path, said in lines.items() if not wanted or f"{path}.".startswith(f"{wanted}.")}
    chosen = [line for _, said in sorted(under.items()) for line in said]
    if not chosen:
        close = difflib.get_close_matches(wanted, lines, n=1) or [path for path in lines if path.startswith(wanted[:4])]
        hint = f"; did you mean {close[0]!r}?" if close else "; `params describe` lists all."
        raise UsageError(
            f"`params describe {wanted}`: no such key{hint} Data sets and sources are described under NAME."
        )
    return chosen


def _describe_type(place: str, annotation: Any) -> Iterator[tuple[str, str]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if issubclass(annotation, Config) and annotation.__doc__:
            yield place, f"{place}: {' '.join(annotation.__doc__.split())}"
        for name, field in annotation.model_fields.items():
            path = f"{place}.{name}"
            block = isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
            if not block and field.annotation is not Any:  # a field typed Any belongs to another stage
                yield path, f"{path} ({_type_name(field.annotation)}{_limits(field)}): {field.description or ''}"
            yield from _describe_type(path, field.annotation)
        return
    step = f"{place}.NAME" if getattr(annotation, "__origin__", None) is dict else place
    for argument in get_args(annotation):
        yield from _describe_type(step, argument)


def _limits(field: FieldInfo) -> str:
    """Bounds and default of a field, as they stand behind its type."""
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    bounds = [
        f", {sign} {getattr(rule, name):g}"
        for rule in field.metadata
        for name, sign in signs.items()
        if hasattr(rule, name)
    ]
    default = "" if field.is_required() else f", default {field.get_default(call_default_factory=True)!r}"
    return "".join(bounds) + default


def _type_name(annotation: Any) -> str:
    """A type in words, without what pydantic hangs on it."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(arguments[0])
    if origin is Literal:
        return " or ".join(str(argument) for argument in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_type_name(argument) for argument in arguments)
    if arguments:
        return f"{origin.__name__}[{', '.join(_type_name(argument) for argument in arguments if argument is not ...)}]"
    return "null" if annotation is type(None) else getattr(annotation, "__name__", str(annotation))
