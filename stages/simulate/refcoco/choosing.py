"""Which meaning a sentence gets: drawn at random among those that name the object without doubt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from stages.simulate.refcoco.meanings import (
    Described,
    Excepted,
    Extreme,
    Facts,
    Located,
    Meaning,
    Ordinal,
    Related,
    Relation,
    Side,
    named,
    names,
    stands,
    toward,
)
from stages.simulate.refcoco.options import Form, Sentences
from stages.simulate.refcoco.shapes import CATEGORIES

#: Draws of a meaning of one form for one object.
TRIES = 16
#: Chance that a sentence says the category, and else each of the other words.
CATEGORY, WORD = 0.85, 0.3
#: Forms and relations that need a word of place, which refcoco+ does not allow.
PLACED_FORMS: frozenset[Form] = frozenset({"location", "ordinal"})
PLACED: tuple[Relation, ...] = ("left of", "right of", "above", "below")
FREE: tuple[Relation, ...] = ("next to", "behind", "in front of")
CORNERS: tuple[tuple[Side, ...], ...] = (("top", "left"), ("top", "right"), ("bottom", "left"), ("bottom", "right"))
SIDES: tuple[tuple[Side, ...], ...] = (("left",), ("right",), ("top",), ("bottom",))


@dataclass(frozen=True)
class Chosen:
    """An object, and a meaning that names it."""

    target: int
    form: Form
    meaning: Meaning


def choose(
    rng: np.random.Generator, facts: Facts, targets: Sequence[int], options: Sentences, *, places: bool
) -> Chosen | None:
    """Draw a form by its weight, then an object and a meaning of that form; another form where no object allows it.

    Parameters
    ----------
    targets
        Objects that may be named.
    places
        Whether words of place are allowed, as in refcoco; refcoco+ has none.

    Returns
    -------
    Chosen or None
        None where no form names any of the objects.
    """
    forms = [form for form, weight in options.forms.items() if weight > 0 and (places or form not in PLACED_FORMS)]
    weights = np.array([options.forms[form] for form in forms])
    order = rng.choice(len(forms), size=len(forms), replace=False, p=weights / weights.sum())
    ambiguous = bool(rng.random() < options.ambiguous)
    for form in (forms[place] for place in order):
        for target in rng.permutation(targets).tolist():
            for _ in range(TRIES):
                meaning = _DRAWN[form](rng, facts, target, places)
                if meaning is not None and fits(facts, meaning, target, ambiguous=ambiguous):
                    return Chosen(target, form, meaning)
    return None


def fits(facts: Facts, meaning: Meaning, target: int, *, ambiguous: bool) -> bool:
    """Whether a meaning names the object alone; or, if it shall be ambiguous, it and others."""
    if not ambiguous:
        return named(facts, meaning) == target
    found = names(facts, meaning)
    return target in found and len(found) > 1


def description(rng: np.random.Generator, facts: Facts, target: int) -> Described:
    """Some words that are true of an object, few more often than many."""
    shape = facts.shapes[target]
    said = {name: getattr(shape, name) for name in ("colour", "pattern", "size") if rng.random() < WORD}
    # Nobody says plain or medium unprompted.
    said = {name: word for name, word in said.items() if word != "medium" and (word != "plain" or rng.random() < 0.3)}
    if rng.random() < CATEGORY:
        return Described(category=shape.category, **said)
    group = CATEGORIES[shape.category].group if rng.random() < 0.4 else None
    return Described(group=group, **said)


def shared(rng: np.random.Generator, facts: Facts, target: int) -> Described | None:
    """A description that other objects fit too, so that the rest of the sentence is needed."""
    for _ in range(4):
        words = description(rng, facts, target)
        if len(names(facts, words)) > 1:
            return words
    return None


def _attributes(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = description(rng, facts, target)
    return words if words.words else None


def _location(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = shared(rng, facts, target)
    return words and Located(words, _sides(rng, facts, target))


def _sides(rng: np.random.Generator, facts: Facts, target: int) -> tuple[Side, ...]:
    """Where in the image an object is: more often a side than a corner or the middle."""
    drawn = rng.random()
    choices = SIDES if drawn < 0.6 else CORNERS
    true = [sides for sides in choices if all(toward(facts, target, side) > 0.5 for side in sides)]
    return true[int(rng.integers(len(true)))] if drawn < 0.85 and true else ()


def _superlative(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = shared(rng, facts, target)
    # "The largest small ball" is no sentence that people say.
    return None if words is None or words.size else Extreme(words, largest=bool(rng.random() < 0.5))


def _ordinal(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = shared(rng, facts, target)
    side: Side = ("left", "right", "top", "bottom")[rng.integers(4)]
    return words and Ordinal(words, int(rng.integers(2, 4)), side)


def _relation(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = shared(rng, facts, target)
    if words is None:
        return None
    # Half the relations of refcoco are those that both data sets may use.
    relations = PLACED if places and rng.random() < 0.5 else FREE
    others = [o for o in range(len(facts.shapes)) if o != target]
    pairs = [(relation, o) for relation in relations for o in others if stands(facts, target, relation, o)]
    if not pairs:
        return None
    relation, mark = pairs[int(rng.integers(len(pairs)))]
    seen = description(rng, facts, mark)
    if places and rng.random() < 0.1:
        return Related(words, relation, Located(seen, SIDES[rng.integers(len(SIDES))]))
    return Related(words, relation, seen) if seen.words else None


def _negation(rng: np.random.Generator, facts: Facts, target: int, places: bool) -> Meaning | None:
    words = shared(rng, facts, target)
    if words is None:
        return None
    others = sorted(names(facts, words) - {target})
    if not others:
        return None
    other = facts.shapes[others[rng.integers(len(others))]]
    name = str(rng.choice(["colour", "pattern", "size"]))
    if getattr(other, name) in ("plain", "medium") or getattr(words, name) is not None:
        return None
    return Excepted(words, Described(**{name: getattr(other, name)}))


_DRAWN: dict[Form, Callable[[np.random.Generator, Facts, int, bool], Meaning | None]] = {
    "attributes": _attributes,
    "location": _location,
    "relation": _relation,
    "superlative": _superlative,
    "ordinal": _ordinal,
    "negation": _negation,
}
