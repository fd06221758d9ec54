"""Repeat the pipeline with another version of a data set, compare the metrics, and keep the result as a branch.

A NAME is a data set: a source, a site, a whole domain, or a .dvc file; a bare key means all of that name, a dotted name
such as sources.NAME exactly that block. Its pointer comes from REV, all else from --code-rev. Your workspace is not
touched.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from flows.combine import Request, combine
from flows.results import RerunResult, settled
from flows.serving import use_server
from flows.verbs.repro import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``rerun``."""
    parser.add_argument(
        "--data-rev", action="append", default=[], metavar="NAME=REV", help="a data set as it was at a Git revision"
    )
    add_shared_arguments(parser)
    parser.add_argument("--name", default="", metavar="BRANCH", help="branch for the result (default: rerun/...)")
    parser.add_argument("--keep", action="store_true", help="leave the worktree at the end, to look into it")


def add_shared_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that ``rerun`` and ``backfill`` share."""
    parser.add_argument("--code-rev", default="", metavar="REV", help="where all else comes from (default: HEAD)")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="a value of params.yaml; +KEY=VALUE adds a key"
    )
    parser.add_argument("--dirty", action="store_true", help="carry uncommitted changes of tracked files along")
    parser.add_argument("--jobs", type=int, default=0, help="stages at a time (default: one for each core)")
    parser.add_argument("--devices", default="auto", help="for stages marked gpu: auto, cpu:2 or cuda:0,1")
    parser.add_argument("--pull", action="store_true", help="look for data and results in the DVC remote too")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the flow; Prefect is started only where there is something to run."""
    request = Request(options.data_rev, options.code_rev, options.set, options.name, options.dirty)
    combination = combine(Path.cwd(), request)
    result = settled(combination)
    if result is None:
        use_server(Path.cwd(), needed=False)
        from flows.repro import RunFailed
        from flows.rerun import rerun

        try:
            ended = rerun.with_options(flow_run_name=combination.branch)(
                options.data_rev,
                options.code_rev,
                options.set,
                options.name,
                options.dirty,
                jobs=options.jobs,
                devices=options.devices,
                pull=options.pull,
                keep=options.keep,
            )
        except RunFailed as failed:
            if not options.json:
                print("\n".join(combination.lines()), end="\n\n")
            show(failed.report.as_json(), as_json=options.json)
            details = [f"{stage.name}: {stage.detail}" for stage in failed.report.stages if stage.why and stage.detail]
            kept = "no branch was made; what had finished is kept, the same command goes on from it"
            print("\n".join([*details, kept]), file=sys.stderr)
            return failed.exit_code
        assert isinstance(ended, RerunResult)
        result = ended
    print(json.dumps(result.as_json(), indent=2, ensure_ascii=False) if options.json else result.text())
    return 0
