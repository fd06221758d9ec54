"""Run tigramite's own test files against our engine: `make peers`, or `python -m tests.peers.run [pytest options]`.

The test files, and nothing else, are unpacked from the package's source archive into a folder that goes away with the
run. They find `tigramite` in shim/, which stands first on the path. What does not pass is listed with its reason in
expected.toml; the run fails when a case fails that is not listed, when a listed one passes, and when a file has another
number of cases than stated there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from stages.errors import StageError
from stages.fetch.registry import RegistrySource

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SHIM = HERE / "shim"
# Their warnings are theirs: numpy's and Python's deprecations in the test files.
CONFIG = "[pytest]\nfilterwarnings =\n    ignore\n"


def fetch(expected: Mapping[str, Any], folder: Path) -> None:
    """Write the test files into a folder, from the cache of downloads or the package index."""
    source = RegistrySource(
        kind="registry",
        archive="sdist",
        members=tuple(f"tests/{file}" for file in expected["cases"]),
        citation="https://github.com/jakobrunge/tigramite",
        **expected["source"],
    )
    source.write(folder, "tigramite_tests")


def outcomes(folder: Path, files: Sequence[str], options: Sequence[str] = ()) -> dict[str, bool]:
    """Run test files in a folder; True for every case that passes."""
    report = folder / "report.xml"
    (folder / "pytest.ini").write_text(CONFIG, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SHIM), str(ROOT)])}
    command = [sys.executable, "-m", "pytest", "-c", "pytest.ini", "--rootdir", ".", "-p", "no:cacheprovider", "-q"]
    command += ["--tb=short", "--show-capture=no", f"--junitxml={report}", *options, *files]
    subprocess.run(command, cwd=folder, env=environment, check=False)
    if not report.exists():
        raise SystemExit("pytest has written no report; its own message stands above")
    cases = ElementTree.parse(report).getroot().iter("testcase")
    return {f"{case.get('classname')}.py::{case.get('name')}": len(case) == 0 for case in cases}


def listed(case: str, names: Sequence[str]) -> str | None:
    """The entry of a list that a case belongs to: its full name, or that of its function."""
    return next((name for name in names if name in (case, case.partition("[")[0])), None)


def compare(passed: Mapping[str, bool], expected: Mapping[str, Any]) -> list[str]:
    """What differs from the expected result, one line each."""
    found = Counter(case.partition("::")[0] for case in passed)
    lines = [
        f"{file}: {found[file]} cases, expected {count}"
        for file, count in expected["cases"].items()
        if found[file] != count
    ]
    names = [entry["test"] for entry in expected.get("not_passing", [])]
    for case, good in passed.items():
        known = listed(case, names)
        if good and known:
            lines.append(f"{case} passes, and stands in expected.toml as not passing: take it out")
        elif not good and not known:
            lines.append(f"{case} does not pass, and expected.toml gives no reason")
    lines += [
        f"{name} stands in expected.toml and is no case" for name in names if not any(listed(c, [name]) for c in passed)
    ]
    return lines


def summary(passed: Mapping[str, bool], expected: Mapping[str, Any]) -> list[str]:
    """How many pass, by file, and why any does not."""
    lines = []
    for file in expected["cases"]:
        good = [ok for case, ok in passed.items() if case.startswith(f"{file}::")]
        lines.append(f"{sum(good):4d} of {len(good):3d} pass  {file}")
    own = [case for case, ok in passed.items() if ok and listed(case, [e["test"] for e in expected["shim_alone"]])]
    total = sum(passed.values())
    lines.append(
        f"{total:4d} of {len(passed):3d} pass; {total - len(own)} of them run the engine, {len(own)} the shim alone"
    )
    for entry in expected.get("not_passing", []):
        lines.append(f"     not passing: {entry['test']}: {entry['reason']}")
    return lines


def main(options: Sequence[str]) -> int:
    """Fetch, run, compare; 1 where the result is not the expected one."""
    expected = tomllib.loads((HERE / "expected.toml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        try:
            fetch(expected, folder)
        except StageError as error:
            print(f"tigramite's test files cannot be had: {error}", file=sys.stderr)
            return 1
        passed = outcomes(folder, list(expected["cases"]), options)
    print("\n".join(summary(passed, expected)))
    differences = compare(passed, expected)
    print("\n".join(differences), file=sys.stderr, end="\n" if differences else "")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
