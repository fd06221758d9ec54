"""SUMO's programs: where they are, and how one is run to its end."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
from collections import deque
from collections.abc import Callable
from pathlib import Path

from stages.errors import StageError

MODULE, PACKAGE = "sumo", "eclipse-sumo"
#: What SUMO prints while it runs, e.g. "Step #3600.00 (1ms ...".
_STEP = re.compile(r"Step #(?P<seconds>\d+)")
#: Lines of a program's output that an error repeats.
LAST_LINES = 5


def home() -> Path:
    """Folder of the installed SUMO.

    Raises
    ------
    StageError
        It is not installed.
    """
    found = importlib.util.find_spec(MODULE)
    if found is None or found.origin is None:
        raise StageError(
            f"the simulated lanes need SUMO: no module {MODULE!r} found; expected the package {PACKAGE}, which brings "
            f"its programs. Install the project's dependencies again (`pip install -e .`), or `pip install {PACKAGE}`."
        )
    return Path(found.origin).parent


def version() -> str:
    """Version of the installed SUMO."""
    return importlib.metadata.version(PACKAGE)


def run(program: str, *arguments: str, announce: Callable[[int], None] = lambda seconds: None) -> None:
    """Run a program of SUMO and wait for its end.

    Parameters
    ----------
    announce
        Called with SUMO's time in seconds, as often as the program prints it. What it raises stops the program.

    Raises
    ------
    StageError
        The program is missing or failed; the message has the last lines that it printed.
    """
    executable = home() / "bin" / program
    last: deque[str] = deque(maxlen=LAST_LINES)
    environment = os.environ | {"SUMO_HOME": str(home())}
    try:
        process = subprocess.Popen(
            [str(executable), *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
    except OSError as error:
        raise StageError(f"{program}: {error.strerror}. Install {PACKAGE} again.") from None
    with process:
        try:
            assert process.stdout is not None
            # Text mode turns the carriage returns between two steps into ends of lines.
            for line in process.stdout:
                if step := _STEP.match(line):
                    announce(int(step["seconds"]))
                elif line.strip():
                    last.append(line.strip())
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        said = " ".join(last) or "nothing"
        ended = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
        raise StageError(
            f"{program} of {PACKAGE} {version()} stopped with {ended} and said: {said}. Correct the options that it "
            "names under traffic.simulated in params.yaml; a signal means too little memory or a stop from outside."
        )
