"""A rerun for each version that a data set had in a range of commits, oldest first, with one table at the end.

A version is a commit that changed the data set's pointer. Those whose result a branch holds are not run again, so a
backfill that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from flows.combine import Request
from flows.serving import use_server
from flows.verbs.rerun import add_shared_arguments
from flows.versions import Backfill, find_versions


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``backfill``."""
    parser.add_argument(
        "--data-revs", required=True, metavar="NAME=A..B", help="a data set, and a range of commits as Git reads it"
    )
    add_shared_arguments(parser)
    parser.add_argument("--metric", default="*", metavar="PATTERN", help="show only metrics with this in their name")
    parser.add_argument("--dry-run", action="store_true", help="list the versions and which are done; run nothing")


def run(options: argparse.Namespace) -> int:
    """Run the flow; Prefect is started only where there is something to run."""
    request = Request((), options.code_rev, options.set, "", options.dirty)
    found = find_versions(Path.cwd(), options.data_revs, request)
    if options.dry_run or not any(version.outcome == "to do" for version in found.versions):
        return _show(found, options)
    use_server(Path.cwd(), needed=False)
    from flows.backfill import BackfillFailed, backfill

    try:
        result = backfill(
            options.data_revs,
            options.code_rev,
            options.set,
            options.dirty,
            jobs=options.jobs,
            devices=options.devices,
            pull=options.pull,
        )
    except BackfillFailed as failed:
        return _show(failed.backfill, options)
    assert isinstance(result, Backfill)
    return _show(result, options)


def _show(result: Backfill, options: argparse.Namespace) -> int:
    print(json.dumps(result.as_json(), indent=2, ensure_ascii=False) if options.json else result.text(options.metric))
    return result.exit_code
