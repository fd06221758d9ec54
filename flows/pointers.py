"""What a data set's name points to in a revision: blocks of params.yaml and .dvc files.

Nothing here knows a domain. A data set is a block of params.yaml that has a ``path``, or that a ``foreach`` of dvc.yaml
makes stages of, or a .dvc file. The domain of ``DOMAIN.sites.KEY`` is what stands above the mapping of its blocks.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from flows.errors import FlowError
from flows.git import Git
from flows.yaml_blocks import load

PARAMS = "params.yaml"
DVC_YAML = "dvc.yaml"
WHOLE_NAME = re.compile(r"\$\{([\w.-]+)\}")
Keys = tuple[str, ...]


class UnknownName(FlowError):
    """A data set or a key that is not there."""

    exit_code = 2


@dataclass(frozen=True, order=True)
class Pointer:
    """A block of params.yaml by its keys, or a .dvc file by its path."""

    keys: Keys = ()
    file: str = ""

    def __str__(self) -> str:
        return self.file or ".".join(self.keys)


@dataclass(frozen=True)
class Snapshot:
    """What a revision says of the data."""

    params: str
    dvc_files: Mapping[str, str]
    label: str
    stages: str = ""

    @classmethod
    def of(cls, git: Git, commit: str, label: str) -> Snapshot:
        """Read params.yaml, dvc.yaml and the names of the .dvc files of a commit; ``label`` names it to a person."""
        files = {path: commit for path in git.files(commit) if path.endswith(".dvc")}
        return cls(git.read(commit, PARAMS) or "", files, label, git.read(commit, DVC_YAML) or "")

    @cached_property
    def tree(self) -> Mapping[str, Any]:
        """params.yaml as nested mappings."""
        return load(self.params, f"{PARAMS} at {self.label}")

    def has(self, pointer: Pointer) -> bool:
        """Whether the revision has this block or file."""
        return pointer.file in self.dvc_files if pointer.file else block(self.tree, pointer.keys) is not None

    @cached_property
    def data_sets(self) -> list[Keys]:
        """Keys of each data set in params.yaml."""
        stages = load(self.stages, f"{DVC_YAML} at {self.label}").get("stages") or {}
        made = [stage.get("foreach") for stage in stages.values() if isinstance(stage, Mapping)]
        named = [match[1] for text in made if isinstance(text, str) and (match := WHOLE_NAME.fullmatch(text))]
        blocks = {keys: block(self.tree, keys) for keys in (tuple(name.split(".")) for name in named)}
        found = [(*keys, str(name)) for keys, item in blocks.items() if _holds_blocks(item) for name in item]
        return list(dict.fromkeys([*found, *_with_path(self.tree, ())]))


def block(tree: Any, keys: Keys) -> Any:
    """The value at nested keys, or None."""
    for key in keys:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree


def _holds_blocks(item: Any) -> bool:
    return isinstance(item, Mapping) and all(isinstance(value, Mapping) for value in item.values())


def _with_path(node: Mapping[str, Any], above: Keys) -> Iterator[Keys]:
    for key, value in node.items():
        if isinstance(value, Mapping):
            if isinstance(value.get("path"), str):
                yield (*above, str(key))
            else:
                yield from _with_path(value, (*above, str(key)))


@dataclass(frozen=True)
class Names:
    """All names a data set can be called by, in the present or in the revision that the data come from."""

    here: Snapshot
    there: Snapshot
    _known: dict[str, list[Pointer]] = field(default_factory=dict)

    def pointers(self, name: str, option: str) -> list[Pointer]:
        """What a name points to.

        A dotted name or a path means exactly that block or file; a bare key means all of that name (the source, the
        site, the .dvc file of its folder); a domain means its sites with their sources and .dvc files.

        Raises
        ------
        UnknownName
            The name is not known, or means sites of several domains.
        """
        known = self.known()
        if name not in known:
            close = difflib.get_close_matches(name, known, n=3, cutoff=0.4) or sorted(known)[:8]
            raise UnknownName(
                f"{option}: no data set is called {name!r}, neither in {self.here.label} nor in {self.there.label}"
                f"{'; nearest: ' + ', '.join(close) if close else ': params.yaml has no sources and no sites'}."
            )
        found = known[name]
        blocks = [pointer for pointer in found if len(pointer.keys) > 2]
        if name not in map(str, blocks) and len({pointer.keys[:-2] for pointer in blocks}) > 1 and "." not in name:
            raise UnknownName(f"{option}: {name!r} is in several domains; say {' or '.join(map(str, blocks))}.")
        return found

    def known(self) -> dict[str, list[Pointer]]:
        """Every name with its pointers."""
        if self._known:
            return self._known
        found: dict[str, set[Pointer]] = {}
        for keys in dict.fromkeys([*self.here.data_sets, *self.there.data_sets]):
            found.setdefault(".".join(keys), set()).add(Pointer(keys))
            found.setdefault(keys[-1], set()).update([Pointer(keys), *self._files_of(keys)])
            if len(keys) > 2:
                of_domain = found.setdefault(".".join(keys[:-2]), set())
                of_domain.update([Pointer(keys[:-1]), *self._files_of(keys), *self._sources_of(keys)])
        for file in dict.fromkeys([*self.here.dvc_files, *self.there.dvc_files]):
            path = PurePosixPath(file)
            for name in (file, str(path.with_suffix("")), path.stem):
                found.setdefault(name, set()).add(Pointer(file=file))
        self._known.update({name: sorted(pointers) for name, pointers in sorted(found.items())})
        return self._known

    def _paths(self, keys: Keys) -> set[str]:
        items = (block(snapshot.tree, keys) for snapshot in (self.here, self.there))
        return {str(item["path"]) for item in items if isinstance(item, Mapping) and "path" in item}

    def _files_of(self, keys: Keys) -> Iterator[Pointer]:
        for path in self._paths(keys):
            file = f"{PurePosixPath(path)}.dvc"
            if file in self.here.dvc_files or file in self.there.dvc_files:
                yield Pointer(file=file)

    def _sources_of(self, keys: Keys) -> Iterator[Pointer]:
        for name in {keys[-1], *(PurePosixPath(path).name for path in self._paths(keys))}:
            pointer = Pointer(("sources", name))
            if self.here.has(pointer) or self.there.has(pointer):
                yield pointer


def leaf_changes(old: Any, new: Any, above: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Dotted key, old and new value of each leaf in which two blocks differ; None for one that is not there."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            yield from leaf_changes(old.get(key), new.get(key), f"{above}.{key}" if above else str(key))
    elif old != new:
        yield above, old, new
