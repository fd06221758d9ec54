"""Why a stage is not up to date: each changed command, dep, param and out, with its old and new value.

Beside :mod:`flows.workspace` the only module that reads DVC's stage objects; it changes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from dvc.output import Output
    from dvc.stage import Stage

What = Literal["command", "dep", "param", "out", "stage"]
NOT_IN_CACHE = "not in cache"
SHOWN_CHARACTERS = 48


@dataclass(frozen=True)
class Change:
    """One reason why a stage is not up to date: what changed, from which value to which.

    Hashes are shortened to eight digits; a value that was not there, or is not there now, is None.
    """

    what: What
    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.what == "stage":
            return self.name
        old, new = _shown(self.old, self.new)
        if old is None:
            return f"{self.what} {self.name}: new{'' if new is None else f', {new}'}"
        head = "command" if self.what == "command" else f"{self.what} {self.name}"
        return f"{head}: {old} → {'missing' if new is None else new}"


def stage_changes(stage: Stage) -> list[Change]:
    """Why a stage is not up to date, as ``dvc status`` judges it; empty when it is."""
    if stage.cmd and not stage.frozen and stage.outs and not any(out.hash_info for out in (*stage.deps, *stage.outs)):
        return [Change("stage", "never run here", None, None)]
    found = [] if stage.frozen else list(_dep_changes(stage))
    if stage.changed_stage():
        found.insert(0, _command_change(stage))
    if not stage.frozen and (stage.is_callback or stage.always_changed):
        found.append(Change("stage", "always changed, says dvc.yaml", None, None))
    return found or list(out_changes(stage))


def out_changes(stage: Stage) -> Iterator[Change]:
    """Outs that are missing, other than dvc.lock says, or not in the cache."""
    for out in stage.outs:
        status = out.status()
        if status:
            missing = NOT_IN_CACHE in status.values()
            yield Change("out", str(out), _short(out.hash_info.value), NOT_IN_CACHE if missing else _hash_now(out))


def command_lines(stage: Stage) -> tuple[str, ...]:
    """The shell command lines of a stage."""
    lines = stage.cmd if isinstance(stage.cmd, list) else str(stage.cmd or "").splitlines()
    return tuple(str(line) for line in lines)


def _command_change(stage: Stage) -> Change:
    contents = getattr(stage.dvcfile, "lockfile_contents", None) or {}
    old = contents.get("stages", {}).get(getattr(stage, "name", None), {}).get("cmd")
    before = "\n".join(old) if isinstance(old, list) else old
    return Change("command", str(stage.addressing), before, "\n".join(command_lines(stage)))


def _dep_changes(stage: Stage) -> Iterator[Change]:
    from dvc.dependency.param import ParamsDependency

    for dep in stage.deps:
        status = dep.status()
        if not status:
            continue
        if isinstance(dep, ParamsDependency):
            old: Any = dep.hash_info.value or {}
            new = dep.read_params() if dep.exists else {}
            said = status[str(dep)]
            for key in said if isinstance(said, Mapping) else dep.params or [str(dep)]:
                yield from _param_changes(key, old.get(key), new.get(key))
        else:
            yield Change("dep", str(dep), _short(dep.hash_info.value), _hash_now(dep))


def _param_changes(key: str, old: Any, new: Any) -> Iterator[Change]:
    """The leaves of a params subtree that differ."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for part in sorted({*old, *new}, key=str):
            if old.get(part) != new.get(part):
                yield from _param_changes(f"{key}.{part}", old.get(part), new.get(part))
    else:
        yield Change("param", key, None if old is None else str(old), None if new is None else str(new))


def _hash_now(item: Output) -> str | None:
    if not item.exists:
        return None
    with suppress(OSError):
        return _short(item.get_hash().value)
    return None


def _short(value: str | None) -> str | None:
    return None if value is None else str(value)[:8]


def _shown(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Two values cut to a line, from where they begin to differ."""
    if old is None or new is None:
        return _cut(old), _cut(new)
    equal = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), 0)
    start = max(old.rfind(" ", 0, equal), old.rfind("\n", 0, equal)) + 1
    if start < SHOWN_CHARACTERS // 2:
        return _cut(old), _cut(new)
    return _cut("…" + old[start:]), _cut("…" + new[start:])


def _cut(value: str | None) -> str | None:
    if value is None:
        return None
    line = " ⏎ ".join(value.splitlines()) or "''"
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "…"
