"""The versions that a data set had in a range of commits, and the table of a backfill over them."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flows.combine import Combination, Request, UnknownKey, combine, split
from flows.compare import markdown_table, short_names, shown, text_columns
from flows.git import Commit, Git, GitError
from flows.pointers import PARAMS, Names, Snapshot, UnknownName, block
from flows.results import RerunResult, settled

SHOWN_METRICS = 20
EXAMPLE = "NAME=A..B, such as traffic=v1..HEAD"


@dataclass(frozen=True)
class Version:
    """One version of a data set, and what became of it.

    Attributes
    ----------
    commit
        The commit that brought it.
    combination
        The inputs of its rerun; None where that commit has no such data set.
    outcome
        ``to do``, ``absent``, ``failed``, ``gate stopped``, or the outcome of its result.
    detail
        What went wrong, in words.
    result
        The rerun's result, where there is one.
    """

    commit: Commit
    combination: Combination | None
    outcome: str
    detail: str = ""
    result: RerunResult | None = None

    def as_json(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        return {
            "revision": self.commit.id,
            "date": self.commit.date,
            "subject": self.commit.subject,
            "branch": self.combination.branch if self.combination else None,
            "outcome": self.outcome,
            "detail": self.detail or None,
            "result": self.result.as_json() if self.result else None,
        }


@dataclass(frozen=True)
class Backfill:
    """All versions, oldest first."""

    name: str
    versions: Sequence[Version]

    @property
    def exit_code(self) -> int:
        """0 where every version that can be is done, else that of the first that failed."""
        codes = {"failed": 1, "gate stopped": 3}
        return next((codes[version.outcome] for version in self.versions if version.outcome in codes), 0)

    def as_json(self) -> dict[str, Any]:
        """Plain data, as ``--json`` prints it."""
        return {
            "exit_code": self.exit_code,
            "name": self.name,
            "versions": [version.as_json() for version in self.versions],
        }

    def text(self, metrics: str = "*") -> str:
        """The tables for a terminal; ``metrics`` chooses rows of the second by a pattern."""
        if not self.versions:
            return f"{self.name}: no version in this range; its pointer did not change."
        parts = [text_columns(self.rows(), wide=2), self.counts()]
        rows = self.metric_rows(metrics)
        if len(rows) > 1:
            parts += [text_columns(rows, limit=SHOWN_METRICS, wide=0)]
        elif any(version.result for version in self.versions):
            parts += ["no metric differs between these versions and the origin"]
        parts += [f"{version.commit.short}: {version.detail}" for version in self.versions if version.detail]
        return "\n\n".join(parts)

    def markdown(self) -> str:
        """The tables for Prefect's UI."""
        rows = self.metric_rows("*")
        tables = [markdown_table(self.rows()), *([markdown_table(rows)] if len(rows) > 1 else [])]
        return "\n\n".join([f"**{self.name}**: {self.counts()}", *tables])

    def counts(self) -> str:
        """How many versions ended how, in words."""
        outcomes = [version.outcome for version in self.versions]
        return ", ".join(f"{outcomes.count(outcome)} {outcome}" for outcome in dict.fromkeys(outcomes))

    def rows(self) -> list[tuple[str, ...]]:
        """Revision, date, subject, outcome, branch."""
        return [
            ("revision", "date", "subject", "outcome", "branch"),
            *(
                (
                    version.commit.short,
                    version.commit.date,
                    version.commit.subject,
                    version.outcome,
                    version.combination.branch if version.combination and version.outcome != "nothing differs" else "-",
                )
                for version in self.versions
            ),
        ]

    def metric_rows(self, pattern: str) -> list[tuple[str, ...]]:
        """Metrics that some version changes: at the origin, and for each version."""
        done = [version for version in self.versions if version.result and version.result.differences]
        if not done:
            return []
        values = [
            {row.metric: row.new for row in version.result.differences}
            for version in done
            if version.result is not None
        ]
        origin = {row.metric: row.old for version in done if version.result for row in version.result.differences}
        changed = [
            metric for metric in sorted(origin) if any(column.get(metric) != origin[metric] for column in values)
        ]
        chosen = [metric for metric in changed if fnmatch.fnmatch(metric, f"*{pattern.strip('*')}*")]
        first = done[0].combination
        head = ("metric", f"at {first.origin.short if first else ''}", *(version.commit.short for version in done))
        return [
            head,
            *(
                (name, shown(origin[metric]), *(shown(column.get(metric)) for column in values))
                for name, metric in zip(short_names(chosen), chosen, strict=True)
            ),
        ]


def find_versions(root: Path, word: str, request: Request) -> Backfill:
    """The versions of a data set in a range of commits, and which of them are done; runs nothing.

    Parameters
    ----------
    root
        Root of the main workspace.
    word
        ``NAME=A..B``: commits after A up to B, as Git reads it; B is HEAD where it is left out.
    request
        What else goes into each rerun.

    Raises
    ------
    GitError, UnknownName, DirtyError
        As for a rerun, and for a range that is none.
    """
    git = Git.at(root)
    name, span = split(word, "--data-revs", EXAMPLE)
    first, dots, last = span.partition("..")
    if not dots or last.startswith("."):
        raise GitError(f"--data-revs {word}: expected {EXAMPLE}; one revision is a job for `rerun --data-rev`.")
    option = f"--data-revs {word}"
    begin, end = git.commit(first or "HEAD", option), git.commit(last or "HEAD", option)
    commits = list(_changed(git, name, begin, end, option))
    if request.dirty and git.dirty():
        # One commit of the uncommitted changes for all of them.
        request = replace(request, dirty=False, code_rev=git.with_changes())
    return Backfill(name, [_version(root, name, commit, request) for commit in commits])


def _changed(git: Git, name: str, begin: Commit, end: Commit, option: str) -> Iterator[Commit]:
    """Commits of the range after which the pointers of a data set are others than before, oldest first."""
    before, after = Snapshot.of(git, begin.id, begin.short), Snapshot.of(git, end.id, end.short)
    try:
        files = {pointer.file or PARAMS for pointer in Names(after, before).pointers(name, option)}
    except UnknownName:
        # It may have come and gone within the range.
        files = {PARAMS, "*.dvc"}
    words = ("rev-list", "--reverse", "--first-parent", f"{begin.id}..{end.id}", "--", *sorted(files))
    known, last = False, _content(git, before, name, option)
    for commit in git.run(*words).split():
        now = _content(git, Snapshot.of(git, commit, commit[:7]), name, option)
        known = known or now is not None
        if now != last:
            yield git.described(commit)
        last = now
    if not known and _content(git, before, name, option) is None:
        Names(after, before).pointers(name, option)


def _content(git: Git, snapshot: Snapshot, name: str, option: str) -> str | None:
    """What the pointers of a name say in a snapshot; None where it does not know the name."""
    try:
        pointers = Names(snapshot, snapshot).pointers(name, option)
    except UnknownName:
        return None
    said = {
        str(pointer): git.read(snapshot.dvc_files[pointer.file], pointer.file)
        if pointer.file
        else block(snapshot.tree, pointer.keys)
        for pointer in pointers
    }
    return json.dumps(said, sort_keys=True, default=str)


def _version(root: Path, name: str, commit: Commit, request: Request) -> Version:
    try:
        combination = combine(root, replace(request, data_revs=(f"{name}={commit.id}",)))
    except UnknownKey:
        raise
    except UnknownName as error:
        return Version(commit, None, "absent", str(error))
    result = settled(combination)
    return Version(commit, combination, result.outcome if result else "to do", "", result)
