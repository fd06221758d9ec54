"""``python -m stages deps``: the code deps of dvc.yaml equal what each stage imports.

A dep that is missing lets DVC keep a stale result; one too many repeats a training for nothing. The import closure is
read from the syntax trees (imports inside functions count, those under ``TYPE_CHECKING`` do not); files that are no
Python (templates, style sheets) count with the package they lie in.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedSeq

from stages import artifacts
from stages.entries import entry_module, split_name
from stages.errors import StageError, UsageError

DVC_FILE = Path("dvc.yaml")
ROOT = Path("stages")
COMMAND = "python -m stages "
#: Fewest files for which a folder is listed in their place.
FOLDED_FROM = 3


def run(words: list[str], *, write: bool) -> None:
    """Compare, and with ``--write`` bring dvc.yaml up to date."""
    if words:
        raise UsageError("`deps` takes no name; see `python -m stages --help`.")
    yaml = YAML()
    yaml.width = 118
    yaml.indent(mapping=2, sequence=4, offset=2)
    document = yaml.load(DVC_FILE.read_text(encoding="utf-8"))
    changes = []
    for name, stage in stage_bodies(document):
        now = list(stage.get("deps", []))
        data = [dep for dep in now if not dep.startswith("stages/")]
        wanted = [*data, *code_deps(stage["cmd"])]
        if now != wanted:
            changes.append(_difference(name, now, wanted))
            deps = CommentedSeq(wanted)
            deps.fa.set_flow_style()
            stage["deps"] = deps
    if not changes:
        print(f"{DVC_FILE}: the code deps equal the imports")
    elif write:
        text = io.StringIO()
        yaml.dump(document, text)
        with artifacts.atomic(DVC_FILE) as draft:
            draft.write_text("".join(line.rstrip() + "\n" for line in text.getvalue().splitlines()), encoding="utf-8")
        print("\n".join([f"{DVC_FILE}: brought up to date", *changes]))
    else:
        raise StageError(f"{DVC_FILE}: {'; '.join(changes)}. Run `python -m stages deps --write`.")


def stage_bodies(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and body of each stage of a dvc.yaml that runs this package; a ``foreach`` counts once."""
    for name, stage in document["stages"].items():
        body = stage.get("do", stage)
        if body["cmd"].startswith(COMMAND):
            yield name, body


def code_deps(cmd: str) -> list[str]:
    """What a stage's command imports of this package, sorted, as paths from the root of the repository.

    A folder stands for its files where all of them are imported.
    """
    return _folded(command_closure(cmd))


def command_closure(cmd: str) -> list[str]:
    """Every file of this package that a stage's command imports."""
    verb, _, rest = cmd.removeprefix(COMMAND).partition(" ")
    name, _ = split_name(verb, rest)
    return closure(["stages.__main__", entry_module(verb, name)])


def _folded(files: list[str]) -> list[str]:
    left = set(files)
    whole = []
    for folder in sorted({parent for file in files for parent in Path(file).parents} - set(ROOT.parents) - {ROOT}):
        inside = {path.as_posix() for path in folder.rglob("*") if path.is_file() and _counts(path)}
        if len(inside) >= FOLDED_FROM and inside <= left:
            whole.append(folder.as_posix())
            left -= inside
    return sorted([*whole, *left])


def _counts(path: Path) -> bool:
    """Whether DVC sees a file: .dvcignore leaves out the byte code."""
    return "__pycache__" not in path.parts


def closure(modules: list[str]) -> list[str]:
    """All files in the import closure of some modules."""
    seen: set[Path] = set()
    queue = [file for module in modules for file in _files(module)]
    while queue:
        file = queue.pop()
        if file in seen:
            continue
        seen.add(file)
        if file.suffix == ".py":
            queue += [found for module in _imports(file) for found in _files(module)]
    return sorted(path.as_posix() for path in seen)


def _files(module: str) -> list[Path]:
    """The file of a module, the ``__init__`` of each package above it, and the resources of these packages."""
    parts = module.split(".")
    if parts[0] != ROOT.name:
        return []
    found = []
    for depth in range(1, len(parts) + 1):
        path = Path(*parts[:depth])
        if (path / "__init__.py").is_file():
            found += [path / "__init__.py", *(p for p in path.iterdir() if p.is_file() and _is_resource(p))]
        elif path.with_suffix(".py").is_file():
            found.append(path.with_suffix(".py"))
        else:
            break  # the last part is a name inside a module
    return found


def _is_resource(path: Path) -> bool:
    return path.suffix not in {".py", ".pyc", ".pyi", ".md"} and not path.name.startswith(".")


def _imports(file: Path) -> Iterator[str]:
    package = ".".join(file.parent.parts)
    tree = ast.parse(file.read_text(encoding="utf-8"), filename=str(file))
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, base]).rstrip(".")
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Walk a tree, leaving out what stands under ``if TYPE_CHECKING``."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            for other in child.orelse:
                yield from _executed(other)
        else:
            yield from _executed(child)


def _difference(name: str, now: list[str], wanted: list[str]) -> str:
    missing = [dep for dep in wanted if dep not in now]
    surplus = [dep for dep in now if dep not in wanted]
    words = []
    if missing:
        words.append("lacks " + ", ".join(missing))
    if surplus:
        words.append("need not list " + ", ".join(surplus))
    return f"{name} {' and '.join(words) or 'lists its deps in another order'}"
