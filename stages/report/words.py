"""Values as words and markup: the filters of the templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup, escape

from stages.report.figures import UNDEFINED, number

SPACE = "\N{NO-BREAK SPACE}"
THIN = "\N{NARROW NO-BREAK SPACE}"

COUNTS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
ACRONYMS = {"eeg": "EEG", "rna": "RNA"}
DIMENSIONLESS = frozenset(["", "1", "-", UNDEFINED, "dimensionless"])
_POWER = re.compile(r"(?<=[A-Za-zµ°])(-?\d)$")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_DOI = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)(10\.\d{4,9}/[^\s\"<>]*[^\s\"<>.,;)\]])", re.IGNORECASE)


def figure(value: float | int | None, decimals: int | None = None) -> Markup:
    """A number for the reader, with the exact one in the markup; an undefined one is a dash that says so."""
    text = number(value, decimals)
    if value is None or text == UNDEFINED:
        return Markup('<abbr title="undefined">{}</abbr>').format(UNDEFINED)
    return Markup('<data value="{}">{}</data>').format(repr(value), text)


def percent(share: float | None) -> Markup:
    """A share as percent, with one decimal below ten."""
    if share is None:
        return figure(None)
    decimals = 1 if 0 < share < 0.1 and round(share * 100, 1) % 1 else 0
    return Markup('<data value="{}">{}{}%</data>').format(repr(share), number(100.0 * share, decimals), THIN)


def unit(text: str) -> str:
    """A unit to stand behind a value: a space before it, exponents raised; nothing where there is none."""
    return "" if text in DIMENSIONLESS else SPACE + raised(text)


def raised(text: str) -> str:
    """A unit with its exponents raised: W m-2 becomes W m⁻²; a number without unit is 1."""
    if text in DIMENSIONLESS:
        return "1"
    words = ["°C" if word == "degC" else word for word in text.split()]
    return SPACE.join(_POWER.sub(lambda match: match[1].translate(_RAISED), word) for word in words)


def humane(name: str) -> str:
    """A name of a folder as words: land_atmosphere becomes Land atmosphere."""
    text = " ".join(ACRONYMS.get(word, word) for word in re.split(r"[_\s]+", name) if word)
    return text[:1].upper() + text[1:]


def slug(name: str) -> str:
    """A name as part of an id: letters, digits, ``-`` and ``_`` as they are, others by their number."""
    return re.sub(r"[^a-zA-Z0-9_-]", lambda match: f".{ord(match[0]):x}.", name)


def byte_size(size: int) -> str:
    """A size in decimal units."""
    value, name = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, name = value / 1000, larger
    return f"{number(value) if name != 'B' else size}{THIN}{name}"


def cite(text: str) -> Markup:
    """A citation as text; a DOI in it becomes a link."""
    parts: list[Markup] = []
    end = 0
    for match in _DOI.finditer(text):
        parts.append(escape(text[end : match.start()]))
        link = f"https://doi.org/{quote(match[1], safe='/().;:-_')}"
        parts.append(Markup('<a href="{}" rel="noreferrer">doi:{}</a>').format(link, match[1]))
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def counted(count: int) -> str:
    """A count in running text: a word up to twelve."""
    return COUNTS[count] if 0 <= count < len(COUNTS) else number(count)


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first of some names, and how many more there are."""
    more = f", and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def plural(noun: str, count: int) -> str:
    """A noun behind a count."""
    if count == 1 or noun.endswith("s"):
        return noun
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        return f"{noun[:-1]}ies"
    return f"{noun}s"
