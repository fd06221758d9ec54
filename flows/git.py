"""Git as a reader and a writer of commits, without touching a working tree: snapshots, trees, branches."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from flows.errors import FlowError

#: A hook of the user's (pre-commit, or DVC's own checkout hook) has no business in a commit that flows makes.
NO_HOOKS = ("-c", "core.hooksPath=/dev/null", "-c", "advice.detachedHead=false")
#: Variables that a calling git sets, and that would send commands to another repository.
FOREIGN = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
SHORT = 7


class GitError(FlowError):
    """A git command that failed, or a revision that is not there."""

    exit_code = 2


@dataclass(frozen=True)
class Commit:
    """A commit as it is shown to a person."""

    id: str
    date: str
    subject: str

    @property
    def short(self) -> str:
        """The first digits of its id."""
        return self.id[:SHORT]

    def __str__(self) -> str:
        return f'{self.short} ({self.date}, "{self.subject}")'


@dataclass(frozen=True)
class Git:
    """A git repository by its working tree."""

    root: Path

    @classmethod
    def at(cls, folder: Path) -> Git:
        """The repository whose root is ``folder``.

        Raises
        ------
        GitError
            ``folder`` is not the root of a git repository with DVC in it.
        """
        top = cls(folder.resolve()).run("rev-parse", "--show-toplevel", check=False).strip()
        if not top or Path(top).resolve() != folder.resolve() or not (folder / ".dvc").is_dir():
            raise GitError(
                f"{folder.resolve()}: not the root of a Git repository with DVC in it"
                f"{f' (that is {top})' if top else ''}; a rerun takes data from Git revisions. Call it there."
            )
        return cls(Path(top).resolve())

    def run(
        self, *words: str, check: bool = True, stdin: bytes | None = None, environment: Mapping[str, str] | None = None
    ) -> str:
        """Run a git command and return what it printed; with ``check=False`` a failure prints nothing.

        Raises
        ------
        GitError
            The command failed; the message is git's own.
        """
        kept = {name: value for name, value in os.environ.items() if name not in FOREIGN}
        done = subprocess.run(
            ["git", *NO_HOOKS, *words],
            cwd=self.root,
            env={**kept, "LC_ALL": "C", **(environment or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            check=False,
        )
        if done.returncode and check:
            said = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
            raise GitError(f"{self.root}: `git {' '.join(words[:3])}` failed: {said}")
        return "" if done.returncode else done.stdout.decode(errors="surrogateescape")

    def commit(self, revision: str, option: str) -> Commit:
        """The commit that a revision means.

        Raises
        ------
        GitError
            There is no such revision; the message names it and the ``option`` it was given with.
        """
        found = ""
        if revision and not revision.startswith("-"):
            found = self.run("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", check=False).strip()
        if not found:
            raise GitError(
                f"{option}: {revision!r} is no revision of {self.root}; expected a commit, a branch, a tag or "
                "the like, such as HEAD~3. `git log --oneline` lists commits; a shallow clone is completed by "
                "`git fetch --unshallow --tags`."
            )
        return self.described(found)

    def described(self, commit: str) -> Commit:
        """Date and subject of a commit id."""
        identity, date, subject = self.run("log", "-1", "--format=%H%n%cs%n%s", commit).rstrip("\n").split("\n")
        return Commit(identity, date, subject)

    def read(self, commit: str, path: str) -> str | None:
        """The text of a file in a commit, or None."""
        if not self.run("ls-tree", "--name-only", commit, "--", path, check=False).strip():
            return None
        return self.run("cat-file", "blob", f"{commit}:{path}")

    def files(self, commit: str) -> list[str]:
        """Paths of all files in a commit."""
        return [path for path in self.run("ls-tree", "-r", "-z", "--name-only", commit).split("\0") if path]

    def tree(self, revision: str) -> str:
        """Id of the tree of a revision."""
        return self.run("rev-parse", "--verify", f"{revision}^{{tree}}").strip()

    def tree_with(self, commit: str, texts: Mapping[str, str]) -> str:
        """Id of the tree of a commit in which some files have other texts."""
        with tempfile.TemporaryDirectory() as folder:
            index = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
            self.run("read-tree", commit, environment=index)
            for path, text in texts.items():
                blob = self.run("hash-object", "-w", "--stdin", stdin=text.encode(errors="surrogateescape")).strip()
                self.run("update-index", "--add", "--cacheinfo", f"100644,{blob},{path}", environment=index)
            return self.run("write-tree", environment=index).strip()

    def commit_tree(self, tree: str, parent: str, message: str) -> str:
        """Make a commit of a tree, on no branch, and return its id."""
        named = self.run("var", "GIT_COMMITTER_IDENT", check=False) and self.run("var", "GIT_AUTHOR_IDENT", check=False)
        # A worker's machine often has no identity set.
        nobody = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "flows"), ("EMAIL", "flows@localhost"))
        }
        return self.run(
            "commit-tree", tree, "-p", parent, "-F", "-", stdin=message.encode(), environment={} if named else nobody
        ).strip()

    def dirty(self) -> list[str]:
        """Tracked files with uncommitted changes."""
        listed = self.run("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames")
        return [entry[3:] for entry in listed.split("\0") if entry]

    def with_changes(self) -> str:
        """A commit on HEAD, on no branch, that holds the uncommitted changes of tracked files."""
        stash = self.run("stash", "create").strip()
        if not stash:
            return self.run("rev-parse", "HEAD").strip()
        return self.commit_tree(self.tree(stash), "HEAD", "Uncommitted changes of a workspace, carried into a rerun\n")

    def trailer(self, branch: str, key: str) -> list[str]:
        """Values of a trailer in the message of a branch's last commit; none where the branch is not there."""
        form = f"--format=%(trailers:key={key},valueonly)"
        found = self.run("log", "-1", form, f"refs/heads/{branch}", "--", check=False).split("\n")
        return [value for value in found if value]
