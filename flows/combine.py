"""The inputs of a rerun put together in Git alone: a commit's code and params, with data sets of other revisions."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from flows.errors import FlowError
from flows.git import SHORT, Commit, Git, GitError
from flows.pointers import PARAMS, Names, Snapshot, UnknownName, block, leaf_changes
from flows.yaml_blocks import load, with_block, with_value

#: Trailers of the commit that keeps a result, by which the next rerun recognises it.
INPUTS, UNTRACKED, ORIGIN = "Rerun-Inputs", "Rerun-Untracked", "Rerun-Origin"


class UnknownKey(UnknownName):
    """A key of params.yaml that is not there, or a value that is none."""


class DirtyError(FlowError):
    """Uncommitted changes, and nobody said what shall become of them."""

    exit_code = 2


@dataclass(frozen=True)
class Request:
    """What was asked for.

    Attributes
    ----------
    data_revs
        ``NAME=REV`` for each data set that comes from another revision; a later one wins where two overlap.
    code_rev
        The revision of everything else; empty for HEAD.
    settings
        ``KEY=VALUE`` of params.yaml; ``+KEY=VALUE`` for a key that is not there yet.
    branch
        Name of the branch that keeps the result; empty for one made of the above.
    dirty
        Carry uncommitted changes of tracked files along.
    """

    data_revs: Sequence[str] = ()
    code_rev: str = ""
    settings: Sequence[str] = ()
    branch: str = ""
    dirty: bool = False


@dataclass(frozen=True)
class DataVersion:
    """A data set as another revision has it.

    Attributes
    ----------
    name
        As the user called it.
    commit
        Where its pointers come from.
    changes
        Pointer -> what differs from the present: dotted key, value now, value there.
    absent
        Pointers of that name which the revision does not have; they stay as they are.
    folders
        Values of ``path`` in its blocks: where its bytes lie.
    """

    name: str
    commit: Commit
    changes: Mapping[str, list[tuple[str, Any, Any]]]
    absent: tuple[str, ...]
    folders: tuple[str, ...]


@dataclass(frozen=True)
class Combination:
    """Inputs that can be checked out: the tree ``inputs`` on the commit ``origin``."""

    git: Git
    origin: Commit
    data: tuple[DataVersion, ...]
    settings: Mapping[str, tuple[Any, Any]]
    inputs: str
    branch: str
    carried: tuple[str, ...] = field(default=())

    @property
    def differs(self) -> bool:
        """Whether the inputs are others than those of the origin."""
        return self.inputs != self.git.tree(self.origin.id)

    @cached_property
    def title(self) -> str:
        """What was combined, in one line."""
        parts = [f"{version.name} as at {version.commit.short}" for version in self.data]
        parts += [f"{key}={new}" for key, (_, new) in self.settings.items()]
        return f"{', '.join(parts)} on {self.origin.short}{' with uncommitted changes' if self.carried else ''}"

    def kept(self) -> bool:
        """Whether the branch holds the result of these inputs.

        Raises
        ------
        GitError
            The branch is there and holds something else.
        """
        reference = f"refs/heads/{self.branch}"
        if not self.git.run("rev-parse", "--verify", "--quiet", reference, check=False):
            return False
        if self.git.trailer(self.branch, INPUTS) != [self.inputs]:
            raise GitError(
                f"branch {self.branch} is there and is not the result of these inputs; "
                f"give another --name, or delete it: git branch -D {self.branch}"
            )
        return True

    def lines(self) -> Iterator[str]:
        """What was combined, for a person, a line each."""
        yield f"all else as at {self.origin}"
        if self.carried:
            yield f"  with the uncommitted changes of {', '.join(self.carried)}"
        for version in self.data:
            yield f"{version.name} as at {version.commit}"
            for pointer, changes in version.changes.items():
                if not changes:
                    yield f"  {pointer}: the same there"
                for key, old, new in changes:
                    yield f"  {f'{pointer}.{key}' if key else pointer}: {_shown(old)} → {_shown(new)}"
            yield from (f"  {pointer}: not there at {version.commit.short}, stays" for pointer in version.absent)
        for key, (old, new) in self.settings.items():
            yield f"{key}: {_shown(old)} → {_shown(new)}"


def combine(root: Path, request: Request) -> Combination:
    """Put the inputs of a rerun together; writes objects into the Git repository and nothing else.

    Raises
    ------
    GitError, DirtyError, UnknownName
        A revision, a data set or a key is not there, or the workspace has uncommitted changes: the message names it.
    """
    git = Git.at(root)
    if not request.data_revs and not request.settings:
        raise GitError("rerun: nothing to rerun with; give --data-rev NAME=REV or --set KEY=VALUE.")
    origin, carried = _origin(git, request)
    here = Snapshot.of(git, origin.id, f"HEAD ({origin.short})" if not request.code_rev else request.code_rev)
    texts: dict[str, str] = {}
    versions = [_take(git, here, word, texts) for word in request.data_revs]
    settings = dict(_set(word, here, texts) for word in request.settings)
    inputs = git.tree_with(origin.id, texts)
    base = f"{origin.short}" if not carried else f"dirty-{git.tree(origin.id)[:SHORT]}"
    branch = request.branch or _branch(versions, request.settings, base)
    if not git.run("check-ref-format", "--branch", branch, check=False):
        raise GitError(f"--name {branch}: not a name that Git allows for a branch.")
    return Combination(git, origin, tuple(versions), settings, inputs, branch, carried)


def _origin(git: Git, request: Request) -> tuple[Commit, tuple[str, ...]]:
    if request.code_rev:
        if request.dirty:
            raise DirtyError("--dirty carries changes of the workspace, --code-rev leaves it aside: give one of them.")
        return git.commit(request.code_rev, "--code-rev"), ()
    changed = tuple(git.dirty())
    if changed and not request.dirty:
        raise DirtyError(
            f"{git.root}: uncommitted changes in {', '.join(changed[:5])}{' and more' if len(changed) > 5 else ''}. "
            "A rerun repeats a commit: commit them first, or give --dirty to carry the changes of tracked files along, "
            "or --code-rev HEAD to leave them aside."
        )
    return (git.described(git.with_changes()), changed) if changed else (git.commit("HEAD", "HEAD"), ())


def split(word: str, option: str, example: str) -> tuple[str, str]:
    """The two sides of ``NAME=VALUE``."""
    name, equals, value = word.partition("=")
    if not (name and equals and value):
        raise UnknownName(f"{option} {word}: expected {example}.")
    return name, value


def _take(git: Git, here: Snapshot, word: str, texts: dict[str, str]) -> DataVersion:
    """Put the pointers of one data set, as a revision has them, into the texts of changed files."""
    name, revision = split(word, "--data-rev", "NAME=REV, such as traffic=HEAD~3")
    option = f"--data-rev {word}"
    commit = git.commit(revision, option)
    there = Snapshot.of(git, commit.id, revision if revision == commit.short else f"{revision} ({commit.short})")
    pointers = Names(here, there).pointers(name, option)
    found = [pointer for pointer in pointers if there.has(pointer)]
    if not found:
        raise UnknownName(
            f"{option}: {name} is not in {there.label}: it has no {' and no '.join(map(str, pointers))}. "
            f"`git log --oneline -- {pointers[0].file or PARAMS}` lists the commits to choose from."
        )
    changes = {}
    for pointer in found:
        if pointer.file:
            changes[str(pointer)] = _take_file(git, here, there, pointer.file, texts)
        else:
            old, new = block(here.tree, pointer.keys), block(there.tree, pointer.keys)
            changes[str(pointer)] = list(leaf_changes(old, new))
            texts[PARAMS] = with_block(texts.get(PARAMS, here.params), there.params, pointer.keys)
    absent = tuple(str(pointer) for pointer in pointers if pointer not in found)
    folders = [
        path for pointer in found for path in _folders(block(there.tree, pointer.keys) if pointer.keys else None)
    ]
    return DataVersion(name, commit, changes, absent, tuple(dict.fromkeys(folders)))


def _take_file(
    git: Git, here: Snapshot, there: Snapshot, path: str, texts: dict[str, str]
) -> list[tuple[str, Any, Any]]:
    text = git.read(there.dvc_files[path], path) or ""
    now = git.read(here.dvc_files[path], path) if path in here.dvc_files else None
    texts[path] = text
    if text == now:
        return []
    return [("", None if now is None else _hash_in(now, path), _hash_in(text, path))]


def _hash_in(text: str, path: str) -> str:
    outs = load(text, path).get("outs") or [{}]
    return str(outs[0].get("md5") or outs[0].get("hash") or "?")[:8]


def _folders(item: Any) -> Iterator[str]:
    """Values of ``path`` in a block, at any depth."""
    if isinstance(item, Mapping):
        for key, value in item.items():
            if key == "path" and isinstance(value, str):
                yield value
            else:
                yield from _folders(value)


def _set(word: str, here: Snapshot, texts: dict[str, str]) -> tuple[str, tuple[Any, Any]]:
    dotted, text = split(word, "--set", "KEY=VALUE, such as seeds=[0,1]")
    option, new_key = f"--set {word}", dotted.startswith("+")
    keys = tuple(dotted.removeprefix("+").split("."))
    tree = load(texts.get(PARAMS, here.params), PARAMS)
    parent = block(tree, keys[:-1]) if keys[:-1] else tree
    present = isinstance(parent, Mapping) and keys[-1] in parent
    if not isinstance(parent, Mapping) or (not present and not new_key):
        known = list(_dotted(tree))
        close = difflib.get_close_matches(".".join(keys), known, n=3, cutoff=0.5)
        if isinstance(parent, Mapping):
            hint = f" (+{'.'.join(keys)}=... adds a key)"
        else:
            hint = f" ({'.'.join(keys[:-1])} is no block of keys)"
        raise UnknownKey(
            f"{option}: {PARAMS} has no key {'.'.join(keys)}{hint}{'; nearest: ' + ', '.join(close) if close else ''}."
        )
    try:
        value = YAML().load(text)
    except YAMLError as error:
        raise UnknownKey(f"{option}: the value is not YAML: {' '.join(str(error).split())}") from None
    texts[PARAMS] = with_value(texts.get(PARAMS, here.params), keys, value)
    return ".".join(keys), (parent.get(keys[-1]), value)


def _dotted(node: Mapping[str, Any], above: str = "") -> Iterator[str]:
    for key, value in node.items():
        yield f"{above}{key}"
        if isinstance(value, Mapping):
            yield from _dotted(value, f"{above}{key}.")


def _branch(versions: Sequence[DataVersion], settings: Sequence[str], base: str) -> str:
    """A name that equal inputs give again."""
    parts = [f"{re.sub(r'[^A-Za-z0-9_-]+', '-', version.name)}-{version.commit.short}" for version in versions]
    if settings:
        parts.append(f"set-{hashlib.sha256(repr(sorted(settings)).encode()).hexdigest()[:6]}")
    return f"rerun/{'-'.join(parts)}-on-{base}"


def _shown(value: Any) -> str:
    text = "-" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
