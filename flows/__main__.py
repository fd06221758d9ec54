"""The command line of the flows: ``python -m flows VERB``."""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import textwrap
import traceback

from flows.errors import FlowError

#: Verb -> what it does; its module is ``flows.verbs.VERB``, loaded when the verb is called.
VERBS = {
    "repro": "bring stages up to date, in parallel, and say why each ran",
    "rerun": "repeat the pipeline with another version of some data, and compare",
    "backfill": "a rerun for each version of a data set in a range of commits",
    "remote": "set, show or check the place where results are kept for other machines",
    "worker": "serve a work pool from this machine: a worker for each GPU, or one for all cores",
    "serve": "start server, deployments and workers on this machine, in the background",
    "stop": "end what serve started",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    listed = "\n".join(f"  {verb:<10} {what}" for verb, what in VERBS.items())
    parser = argparse.ArgumentParser(
        prog="python -m flows",
        usage="python -m flows VERB [OPTIONS]; python -m flows VERB --help",
        description=f"The DVC graph as Prefect flows.\n\n{listed}",
        epilog="exit codes: 0 done; 2 the command or the graph is wrong; 3 a gate stopped a stage; 1 anything else.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=VERBS, metavar="VERB", help="what to do, see above")
    verb = parser.parse_args(words[:1]).verb
    module = importlib.import_module(f"flows.verbs.{verb}")
    options_parser = argparse.ArgumentParser(prog=f"python -m flows {verb}", description=module.__doc__)
    options_parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    module.add_arguments(options_parser)
    options = options_parser.parse_args(words[1:])
    try:
        return int(module.run(options))
    except KeyboardInterrupt:
        print("interrupted; what had finished is kept, the next run goes on from here", file=sys.stderr)
        return 130
    except FlowError as error:
        if options.debug:
            traceback.print_exc()
        print(textwrap.fill(f"error: {error}", shutil.get_terminal_size().columns), file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
