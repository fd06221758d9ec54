"""Bring the DVC graph up to date: stages in parallel, each with the reason why it ran."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from flows.devices import parse_devices
from flows.plan import idle_report
from flows.report import RunReport, text_table
from flows.serving import use_server
from flows.workspace import opened


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``repro``."""
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="stages or outs; none means all")
    parser.add_argument("--jobs", type=int, default=0, help="stages at a time (default: one for each core)")
    parser.add_argument("--devices", default="auto", help="for stages marked gpu: auto, cpu:2 or cuda:0,1")
    parser.add_argument("--keep-going", action="store_true", help="go on with what does not depend on a failed stage")
    parser.add_argument("--pull", action="store_true", help="look for results in the DVC remote too")
    parser.add_argument("--remote", action="store_true", help="send stages to the workers of the pools gpu and cpu")
    parser.add_argument("--no-wait", action="store_true", help="refuse, rather than wait, while another run works here")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def run(options: argparse.Namespace) -> int:
    """Run the flow; Prefect is started only where there is something to do."""
    jobs = options.jobs or len(os.sched_getaffinity(0))
    parse_devices(options.devices, jobs)
    with opened(Path.cwd(), options.targets, wait=not options.no_wait) as workspace:
        idle = idle_report(workspace)
        if idle is not None:
            show(idle.as_json(), as_json=options.json)
            return 0
        use_server(Path.cwd(), needed=options.remote)
        from flows.repro import REMOTE_JOBS, run_in

        if options.remote:
            jobs = options.jobs or REMOTE_JOBS
        choice = {name: getattr(options, name) for name in ("devices", "keep_going", "pull", "remote")}
        report, server_lost = run_in(workspace, jobs, targets=options.targets, **choice)
    show(report.as_json(), as_json=options.json)
    if server_lost:
        print("warning: Prefect's server was lost, it does not show all of this run", file=sys.stderr)
        # Prefect's threads would try for minutes to tell the server that is gone; nothing else is left to do.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(report.exit_code)
    return report.exit_code


def show(report: dict[str, Any], *, as_json: bool) -> None:
    """Print a report as a table or as JSON."""
    if as_json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    run_report = RunReport.from_json(report)
    print(text_table(run_report.rows(), shutil.get_terminal_size().columns))
    print(run_report.counts())
