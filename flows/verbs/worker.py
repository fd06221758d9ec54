"""Serve a work pool from this machine: one Prefect worker for each GPU, or one for all cores, until Ctrl-C."""

from __future__ import annotations

import argparse
from pathlib import Path

from flows.pools import POOLS, ensure_pools, worker_specs
from flows.serving import use_server


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``worker``."""
    served = "; ".join(f"{name}: {what}" for name, what in POOLS.items())
    parser.add_argument("--pool", choices=POOLS, required=True, help=served)
    parser.add_argument("--devices", default="auto", help="for --pool gpu: auto, cpu:2 or cuda:0,1")
    parser.add_argument("--limit", type=int, default=0, help="for the other pools: runs at a time (default: the cores)")
    parser.add_argument("--host", help="this machine's name in the workers' names (default: its host name)")


def run(options: argparse.Namespace) -> int:
    """Start the workers and look after them."""
    from flows.supervisor import Supervisor

    root = Path.cwd()
    use_server(root, needed=True)
    specs = worker_specs(options.pool, devices=options.devices, limit=options.limit, host=options.host)
    ensure_pools([options.pool])
    Supervisor(specs, root, lambda text: print(text, flush=True)).run()
    return 0
