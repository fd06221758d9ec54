"""What a data set's name points to in a revision: blocks of params.yaml and .dvc files.

Nothing here knows a domain. A data set is any mapping that lies under a key ``sources`` or ``sites`` of params.yaml, or
a .dvc file; what stands above ``sites`` is a domain.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import Any

from flows.errors import FlowError
from flows.git import Git
from flows.yaml_blocks import load

PARAMS = "params.yaml"
CONTAINERS = ("sources", "sites")
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

    @classmethod
    def of(cls, git: Git, commit: str, label: str) -> Snapshot:
        """Read params.yaml and the names of the .dvc files of a commit; ``label`` names it to a person."""
        files = {path: commit for path in git.files(commit) if path.endswith(".dvc")}
        return cls(git.read(commit, PARAMS) or "", files, label)

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
        return list(_data_sets(self.tree, ()))


def block(tree: Any, keys: Keys) -> Any:
    """The value at nested keys, or None."""
    for key in keys:
        if not isinstance(tree, Mapping) or key not in tree:
            return None
        tree = tree[key]
    return tree


def _data_sets(node: Mapping[str, Any], above: Keys) -> Iterator[Keys]:
    for key, value in node.items():
        if not isinstance(value, Mapping):
            continue
        keys = (*above, str(key))
        if key in CONTAINERS:
            yield from ((*keys, str(name)) for name, item in value.items() if isinstance(item, Mapping))
        else:
            yield from _data_sets(value, keys)


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
        sites = [pointer for pointer in found if len(pointer.keys) > 1 and pointer.keys[-2:-1] == ("sites",)]
        if len(sites) > 1:
            raise UnknownName(f"{option}: {name!r} is a site of several domains; say {' or '.join(map(str, sites))}.")
        return found

    def known(self) -> dict[str, list[Pointer]]:
        """Every name with its pointers."""
        if self._known:
            return self._known
        found: dict[str, set[Pointer]] = {}
        for keys in dict.fromkeys([*self.here.data_sets, *self.there.data_sets]):
            found.setdefault(".".join(keys), set()).add(Pointer(keys))
            found.setdefault(keys[-1], set()).update([Pointer(keys), *self._files_of(keys)])
            if keys[-2] == "sites" and keys[:-2]:
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
