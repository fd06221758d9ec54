"""``python -m stages params``: check, describe and set params.yaml."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel
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


def run(words: list[str], *, write: bool) -> None:
    """Do what the first word says."""
    match words:
        case ["check"]:
            check(load_params())
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
    sites = {domain: tree.get(domain, {}).get("sites", {}) for domain in known_names("ingest")}
    for verb in ENTRIES:
        if verb == "fetch":
            pairs = [(str(source), str(source)) for source in tree.get("sources", {})]
        elif verb == "ingest":
            pairs = [(domain, str(site)) for domain, block in sites.items() for site in block]
        elif verb == "report":
            pairs = [("", "")]
        else:
            pairs = [(name, "0") for name in known_names(verb)]
        for name, key in pairs:
            yield importlib.import_module(entry_module(verb, name)).Params, name, key


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
    if not isinstance(seeds, list) or not seeds or not all(type(seed) is int and seed >= 0 for seed in seeds):
        raise UsageError(f"{PARAMS_FILE}: seeds: found {seeds!r}; expected whole numbers from 0, such as [0, 1, 2].")
    for params, name, key in bindings(tree):
        params.parse(tree, name=name, key=key)
        read.update(params.keys(name=name, key=key).values())
    _refuse_unread(tree, read, ())


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
    lines: dict[str, str] = {
        "profile": "profile (str): the profile that was applied last",
        "seeds": "seeds (list of int): each system is trained once for each",
    }
    for verb in ENTRIES:
        for name in known_names(verb) or [""]:
            params: type[StageParams] = importlib.import_module(entry_module(verb, name)).Params
            for field, dotted in params.keys(name=name or "{name}", key="NAME").items():
                annotation = params.model_fields[field].annotation
                place = dotted.replace("{name}", "NAME")
                for path, line in _describe_type(place, annotation):
                    lines.setdefault(path, line)
    chosen = [line for path, line in sorted(lines.items()) if path == wanted or path.startswith(wanted)]
    if not chosen:
        raise UsageError(f"`params describe {wanted}`: no such key{nearest(wanted, lines)}")
    return chosen


def _describe_type(place: str, annotation: Any) -> Iterator[tuple[str, str]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if issubclass(annotation, Config) and annotation.__doc__:
            yield place, f"{place}: {' '.join(annotation.__doc__.split())}"
        for name, field in annotation.model_fields.items():
            path = f"{place}.{name}"
            inner = list(_describe_type(path, field.annotation))
            default = "" if field.is_required() else f", default {field.get_default(call_default_factory=True)!r}"
            if not (inner and inner[0][0] == path) and not (
                isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel)
            ):
                yield path, f"{path} ({_type_name(field.annotation)}{default}): {field.description or ''}"
            yield from inner
        return
    arguments = get_args(annotation)
    step = f"{place}.NAME" if getattr(annotation, "__origin__", None) is dict else place
    for argument in arguments:
        yield from _describe_type(step, argument)


def _type_name(annotation: Any) -> str:
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    return str(annotation).replace("typing.", "").replace("pathlib._local.", "").replace("pathlib.", "")
