"""Kill -9 at a chosen moment: put first on PYTHONPATH, it ends the process group of one stage when it writes.

``KILL_STAGE`` names the stage's words (``train pcmci@0``), ``KILL_AT`` the event: ``draft`` when a file inside the
draft is opened for writing, ``rename`` just before a finished draft takes its place.
"""

import os
import signal
import sys

WORDS = ["-m", "stages", *os.environ.get("KILL_STAGE", "").split()]


def watch(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook (PEP 578)."""
    if event == "open" and os.environ["KILL_AT"] == "draft":
        path, mode, _ = arguments
        hit = ".partial" in str(path) and isinstance(mode, str) and mode[:1] in "wxa"
    elif event == "os.rename" and os.environ["KILL_AT"] == "rename":
        hit = ".partial" in str(arguments[0]) and ".partial" not in str(arguments[1])
    else:
        return
    if hit:
        os.killpg(0, signal.SIGKILL)


if os.environ.get("KILL_STAGE") and sys.orig_argv[1:] == WORDS:
    sys.addaudithook(watch)
