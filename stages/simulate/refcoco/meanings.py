"""What a sentence means, and which objects of a scene it names.

A meaning is read in two ways. The clear reading asks for a margin: an object is left of another when it is so by a good
part of the image. The loose reading gives the margin away: whatever anybody could call left is left. A sentence names
one object without doubt when both readings name that object alone.
"""

# Shapes: O object in painting order.

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stages.simulate.refcoco.scenes import Measures, Shape
from stages.simulate.refcoco.shapes import CATEGORIES

Side = Literal["left", "right", "top", "bottom"]
Relation = Literal["left of", "right of", "above", "below", "next to", "behind", "in front of"]
#: Least distance that counts as one in the clear reading, as a share of a side.
MARGIN = 0.07
#: How near the middle of the image is, and how near "next to" is: clear, loose.
MIDDLE = (0.14, 0.24)
NEXT = (0.05, 0.14)
#: Areas differ clearly by this ratio.
RATIO = 1.3
#: Share of the smaller object that hides or is hidden where one is clearly before the other.
HIDDEN = 0.06


@dataclass(frozen=True)
class Described:
    """Objects with these words; None says nothing."""

    category: str | None = None
    colour: str | None = None
    pattern: str | None = None
    size: str | None = None
    group: str | None = None

    @property
    def words(self) -> int:
        """How many words it says."""
        return sum(word is not None for word in (self.category, self.colour, self.pattern, self.size, self.group))


@dataclass(frozen=True)
class Located:
    """The one of ``of`` nearest to the sides: one side, two that make a corner, or none for the middle."""

    of: Described
    sides: tuple[Side, ...]


@dataclass(frozen=True)
class Extreme:
    """The largest or the smallest of ``of``."""

    of: Described
    largest: bool


@dataclass(frozen=True)
class Ordinal:
    """Number ``nth`` of ``of``, counted from a side."""

    of: Described
    nth: int
    side: Side


@dataclass(frozen=True)
class Related:
    """Those of ``of`` that stand in a relation to the one object that ``landmark`` names."""

    of: Described
    relation: Relation
    landmark: Described | Located


@dataclass(frozen=True)
class Excepted:
    """Those of ``of`` that are not ``without``."""

    of: Described
    without: Described


Meaning = Described | Located | Extreme | Ordinal | Related | Excepted


@dataclass(frozen=True)
class Facts:
    """A scene as far as sentences speak of it."""

    shapes: tuple[Shape, ...]
    measures: Measures


def names(facts: Facts, meaning: Meaning, *, clear: bool = True) -> set[int]:
    """Objects that a meaning is true of, in its clear or its loose reading."""
    match meaning:
        case Described():
            return {number for number, shape in enumerate(facts.shapes) if _fits(shape, meaning)}
        case Located(of, sides):
            return _located(facts, names(facts, of, clear=clear), sides, clear)
        case Extreme(of, largest):
            return _extreme(facts, names(facts, of, clear=clear), largest, clear)
        case Ordinal(of, nth, side):
            return _ordinal(facts, names(facts, of, clear=clear), nth, side, clear)
        case Related(of, relation, landmark):
            marks = names(facts, landmark, clear=clear)
            # "the" of a landmark asks for one object of its name.
            if len(marks) != 1:
                return set()
            (mark,) = marks
            return {o for o in names(facts, of, clear=clear) - marks if stands(facts, o, relation, mark, clear=clear)}
        case Excepted(of, without):
            return names(facts, of, clear=clear) - names(facts, without, clear=clear)


def named(facts: Facts, meaning: Meaning) -> int | None:
    """The one object that a meaning names in both readings; None where there is none, or a doubt."""
    clear = names(facts, meaning)
    if len(clear) != 1 or names(facts, meaning, clear=False) != clear:
        return None
    # A landmark must be as free of doubt as the object itself.
    if isinstance(meaning, Related) and named(facts, meaning.landmark) is None:
        return None
    return next(iter(clear))


def _fits(shape: Shape, words: Described) -> bool:
    said = (words.category, words.colour, words.pattern, words.size)
    there = (shape.category, shape.colour, shape.pattern, shape.size)
    if words.group is not None and CATEGORIES[shape.category].group != words.group:
        return False
    return all(word is None or word == own for word, own in zip(said, there, strict=True))


def toward(facts: Facts, o: int, side: Side) -> float:
    """How far an object is towards a side: 0 at the opposite one, 1 at the side itself."""
    across = facts.measures.x_O if side in ("left", "right") else facts.measures.y_O
    place = float(across[o])
    return place if side in ("right", "bottom") else 1 - place


def _located(facts: Facts, among: set[int], sides: tuple[Side, ...], clear: bool) -> set[int]:
    margin = MARGIN if clear else -MARGIN
    if not sides:
        near = MIDDLE[0] if clear else MIDDLE[1]
        away = {o: max(abs(facts.measures.x_O[o] - 0.5), abs(facts.measures.y_O[o] - 0.5)) for o in among}
        return {o for o in among if away[o] < near and all(away[o] + margin < away[p] for p in among - {o})}
    if len(sides) == 1:
        far = {o: toward(facts, o, sides[0]) for o in among}
        return {o for o in among if far[o] > 0.5 + margin and all(far[o] > far[p] + margin for p in among - {o})}
    return {o for o in among if all(toward(facts, o, side) > 0.5 + margin for side in sides)}


def _extreme(facts: Facts, among: set[int], largest: bool, clear: bool) -> set[int]:
    if len(among) < 2:
        return set()
    ratio = RATIO if clear else 1 / RATIO

    def before(o: int, p: int) -> bool:
        # Whether one thinks of the visible part or of the whole object must not matter.
        first, second = (o, p) if largest else (p, o)
        areas = (facts.measures.area_O, facts.measures.full_area_O)
        told = [bool(area_O[first] > ratio * area_O[second]) for area_O in areas]
        return all(told) if clear else any(told)

    return {o for o in among if all(before(o, p) for p in among - {o})}


def _ordinal(facts: Facts, among: set[int], nth: int, side: Side, clear: bool) -> set[int]:
    if len(among) < 3 or nth > len(among):
        return set()
    far = {o: toward(facts, o, side) for o in among}
    order = sorted(among, key=lambda o: -far[o])
    one = order[nth - 1]
    if clear:
        return {one} if all(abs(far[one] - far[o]) > MARGIN for o in among - {one}) else set()
    return {o for o in among if abs(far[o] - far[one]) <= MARGIN / 2}


def stands(facts: Facts, o: int, relation: Relation, mark: int, *, clear: bool = True) -> bool:
    """Whether an object stands in a relation to another one."""
    measures = facts.measures
    right, down = measures.x_O[mark] - measures.x_O[o], measures.y_O[mark] - measures.y_O[o]
    match relation:
        case "next to":
            return bool(measures.gap_OO[o, mark] <= (NEXT[0] if clear else NEXT[1]))
        case "behind" | "in front of":
            back, front = (o, mark) if relation == "behind" else (mark, o)
            least = HIDDEN * min(measures.full_area_O[o], measures.full_area_O[mark]) if clear else 1
            return bool(measures.hidden_OO[back, front] >= least)
        case "left of":
            along, aside = right, down
        case "right of":
            along, aside = -right, down
        case "above":
            along, aside = down, right
        case "below":
            along, aside = -down, right
    return bool(along > MARGIN and along > abs(aside)) if clear else bool(along > -MARGIN / 2)
