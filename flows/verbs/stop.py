"""End what ``serve`` started for this project, and nothing else."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``stop`` has no options of its own."""


def run(options: argparse.Namespace) -> int:
    """End the processes."""
    from flows.serve import stop

    stop(Path.cwd())
    return 0
