"""Which module does the work of a verb and a name; the one place that knows."""

from __future__ import annotations

from pathlib import Path

from stages.errors import UsageError
from stages.params import nearest

#: Verb -> dotted module with ``Params`` and ``run``; ``{name}`` is a domain or a system.
ENTRIES = {
    "fetch": "stages.fetch.stage",
    "simulate": "stages.simulate.{name}.stage",
    "ingest": "stages.ingest.{name}.stage",
    "validate": "stages.validate.{name}.stage",
    "train": "stages.systems.{name}.train",
    "evaluate": "stages.systems.{name}.evaluate",
    "report": "stages.report.stage",
}

PACKAGE = Path(__file__).parent


def split_name(verb: str, name: str) -> tuple[str, str]:
    """``land_atmosphere@us-arm`` -> domain and site; ``pcmci@0`` -> system and seed; a source is both its parts.

    Raises
    ------
    UsageError
        The name has not the form that the verb takes.
    """
    if "/" in name or name.startswith("."):
        raise UsageError(f"`{verb} {name}`: a name is no path; see `python -m stages --help`.")
    if verb == "fetch":
        return name, name
    head, _, key = name.partition("@")
    form = {"simulate": "DOMAIN@NAME", "ingest": "DOMAIN@NAME", "train": "SYSTEM@SEED"}.get(verb)
    seed = verb == "train" and not (key.isdigit() or key.startswith("${"))
    if (form is None and key) or (form is not None and not key) or seed:
        raise UsageError(
            f"`{verb} {name}`: expected `{verb} {form or 'NAME'}`{', SEED a whole number' if seed else ''}."
        )
    return head, key


def known_names(verb: str) -> list[str]:
    """Domains or systems that have the verb, by the folders of this package."""
    folder, _, rest = ENTRIES[verb].removeprefix("stages.").partition(".{name}")
    if not rest:
        return []
    leaf = rest.removeprefix(".") + ".py"
    return sorted(path.parent.name for path in PACKAGE.joinpath(*folder.split(".")).glob(f"*/{leaf}"))


def entry_module(verb: str, name: str) -> str:
    """Dotted module that does the work.

    Raises
    ------
    UsageError
        No such domain or system; the message names the nearest.
    """
    template = ENTRIES[verb]
    if "{name}" in template and name not in known_names(verb):
        raise UsageError(f"`{verb} {name}`: no such name{nearest(name, known_names(verb))}")
    return template.replace("{name}", name)
