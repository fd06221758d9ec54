"""Serve this project from this machine: Prefect server, deployments and workers, in the background."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.pools import POOLS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``serve``."""
    parser.add_argument("--port", type=int, default=4200, help="where the server listens (default: 4200)")
    parser.add_argument(
        "--address", default="127.0.0.1", help="0.0.0.0 lets other machines in; see the docs on who may"
    )
    parser.add_argument("--devices", default="auto", help="for the workers of pool gpu: auto, cpu:2 or cuda:0,1")
    parser.add_argument("--pools", default=",".join(POOLS), help="pools this machine serves (default: %(default)s)")


def run(options: argparse.Namespace) -> int:
    """Start what does not run yet."""
    from flows.serve import serve

    pools = [name for name in options.pools.split(",") if name]
    serve(Path.cwd(), port=options.port, address=options.address, devices=options.devices, pools=pools)
    return 0
