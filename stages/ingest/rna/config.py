"""The format of one RNA set in params.yaml as typed objects; ``format: fasta`` is short for ``{reader: fasta}``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from stages.params import Config


def _compiles(pattern: str) -> str:
    try:
        groups = re.compile(pattern).groupindex
    except re.error as error:
        raise PydanticCustomError("pattern", "is no regular expression: {told}", {"told": str(error)}) from None
    if "family" not in groups:
        raise PydanticCustomError("pattern", "must have a group (?P<family>...)")
    return pattern


Pattern = Annotated[str, AfterValidator(_compiles)]


class _Layout(Config):
    files: str | None = Field(
        None, description="glob of the files to read under `path`, such as '**/*.seed'; default: by their suffix"
    )


class _Named(_Layout):
    family: Pattern | None = Field(
        None, description="regular expression with a group (?P<family>...) that finds the family in a molecule's name"
    )


class Fasta(_Named):
    """FASTA: sequences without structures, also aligned ones with gaps."""

    reader: Literal["fasta"]


class Stockholm(_Layout):
    """Stockholm 1.0: families with a consensus structure in WUSS, such as Rfam.seed."""

    reader: Literal["stockholm"]


class DotBracket(_Named):
    """A name, a sequence and its structure in brackets, such as RNAfold's output or bpRNA's dbn files."""

    reader: Literal["dotbracket"]


class Bpseq(_Named):
    """BPSEQ: a line for each base with its number, letter and partner."""

    reader: Literal["bpseq"]


class Ct(_Named):
    """CT (connect): a line for each base, one structure or more in a file."""

    reader: Literal["ct"]
    structures: Literal["all", "first"] = Field(
        "all", description="structures to read of a file; a file of suboptimal structures has the best first"
    )


class BpRnaSt(_Named):
    """bpRNA's st files: sequence, brackets, and the kinds of loops."""

    reader: Literal["bprna_st"]


class Beacon(_Named):
    """BEACON's secondary structures: a csv of sequences, and a matrix of pairs (npy) for each of them."""

    reader: Literal["beacon"]
    splits: tuple[str, ...] | None = Field(
        None, min_length=1, description="folders to read, such as TR0; default: all that the csv names"
    )


class ArchiveII(_Named):
    """ArchiveII as a csv of id, sequence, structure and base pairs."""

    reader: Literal["archiveii"]
    family: Pattern | None = Field(
        r"^(?P<family>[^_]+)_",
        description="regular expression with a group (?P<family>...) that finds the family in a molecule's name",
    )


READERS = ("fasta", "stockholm", "dotbracket", "bpseq", "ct", "bprna_st", "beacon", "archiveii")


def _shorthand(value: Any) -> Any:
    """A bare name is short for ``{reader: NAME}``; an unknown reader is refused at its own place."""
    block = {"reader": value} if isinstance(value, str) else value
    if isinstance(block, Mapping) and block.get("reader") not in READERS:
        reader = block.get("reader")
        close = difflib.get_close_matches(str(reader), READERS, n=1)
        hint = f"did you mean {close[0]!r}? " if close else ""
        told = f"no reader has this name; {hint}the readers are {', '.join(READERS)}"
        fault: InitErrorDetails = {
            "type": PydanticCustomError("reader", "{told}", {"told": told}),
            "loc": ("reader",),
            "input": reader,
        }
        raise ValidationError.from_exception_data("format", [fault])
    return block


AnyFormat = Fasta | Stockholm | DotBracket | Bpseq | Ct | BpRnaSt | Beacon | ArchiveII
Format = Annotated[AnyFormat, Field(discriminator="reader"), BeforeValidator(_shorthand)]


class MfeLabels(Config):
    """Structures of minimum free energy and pair probabilities by the ViennaRNA library."""

    max_length: int = Field(
        400, ge=1, description="longest molecule in bases that is folded; time grows with the cube of the length"
    )
    per_family: int | None = Field(
        None, ge=1, description="most different molecules of a family that are folded; default: all"
    )
    temperature: float = Field(37.0, ge=-50, le=150, description="degrees Celsius at which energies are taken")


class Labels(Config):
    """Label sources beside the structures of the files; never mixed with them."""

    mfe: MfeLabels | None = Field(None, description="fold with ViennaRNA; null: no such labels")
