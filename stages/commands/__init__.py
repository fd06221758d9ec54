"""Verbs about the project itself; they are no stages, and no stage depends on them."""

MODULES = {
    "params": "stages.commands.params",
    "deps": "stages.commands.deps",
    "results": "stages.commands.results",
}

#: The part of the help that is theirs.
USAGE = """\
  params check            every key of params.yaml: known, of its type, in its range
  params describe [KEY]   what each key means, its unit and its default
  params apply PROFILE [KEY=VALUE ...]   write profiles/PROFILE.yaml into params.yaml, comments kept
  deps [--write]          compare the code deps of dvc.yaml with what each stage imports
  results [SYSTEM ...]    write what the evaluations hold into docs/results.md"""
