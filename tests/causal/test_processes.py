from __future__ import annotations

import os
import subprocess
import sys

import pytest

from stages.causal.processes import processes
from tests.conftest import ROOT


def square(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number**2


def where(_: int) -> int:
    return os.getpid()


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_tasks(workers: int) -> None:
    with processes(workers) as spread:
        assert list(spread.map(square, range(20))) == [number**2 for number in range(20)]
        pids = set(spread.map(where, range(4)))
        assert (os.getpid() in pids) == (workers == 1)
        with pytest.raises(ValueError, match="-3 is negative"):
            list(spread.map(square, [1, -3]))


def test_no_process_is_no_number_of_processes() -> None:
    with pytest.raises(ValueError, match="workers 0"), processes(0):
        pass


def test_a_killed_parent_leaves_no_process_behind() -> None:
    """The pipe ends when the last process that holds it has ended."""
    script = (
        "import os, signal\n"
        "from stages.causal.processes import processes\n"
        "from tests.causal.test_processes import square\n"
        "if __name__ == '__main__':\n"
        "    with processes(2) as spread:\n"
        "        print(list(spread.map(square, [1, 2, 3])), flush=True)\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.stdout == "[1, 4, 9]\n"
