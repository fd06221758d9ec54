"""A meaning in words: several ways to say each, in lower case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stages.simulate.refcoco.meanings import Described, Excepted, Extreme, Located, Meaning, Ordinal, Related, Side

NOUNS = {
    "ball": ("ball", "circle", "disc"),
    "ring": ("ring", "donut", "hoop"),
    "egg": ("egg", "oval", "ellipse"),
    "moon": ("moon", "crescent"),
    "flower": ("flower", "blossom"),
    "square": ("square", "box"),
    "triangle": ("triangle",),
    "diamond": ("diamond", "rhombus"),
    "star": ("star",),
    "cross": ("cross", "plus"),
}
GROUPS = {"round": ("round",), "angular": ("angular",)}
ANY = ("shape", "thing", "one", "object")
COLOURS = {"purple": ("purple", "violet")}
SIZES = {"large": ("large", "big"), "small": ("small", "little")}
PATTERNS = {
    "plain": ("plain", "solid"),
    "striped": ("striped",),
    "spotted": ("spotted", "dotted"),
    "checked": ("checked", "checkered"),
}
WITH = {"striped": "with stripes", "spotted": "with spots", "checked": "with checks", "plain": "without a pattern"}
SIDES: dict[Side, tuple[str, ...]] = {
    "left": ("left",),
    "right": ("right",),
    "top": ("top", "upper"),
    "bottom": ("bottom", "lower"),
}
ORDINALS = {2: ("second", "2nd"), 3: ("third", "3rd")}
RELATIONS = {
    "left of": ("left of", "to the left of", "on the left side of"),
    "right of": ("right of", "to the right of", "on the right side of"),
    "above": ("above", "over", "higher than"),
    "below": ("below", "under", "lower than"),
    "next to": ("next to", "beside", "close to"),
    "behind": ("behind", "partly hidden by", "that is behind"),
    "in front of": ("in front of", "partly covering", "that is in front of"),
}
#: Words of place: a sentence of refcoco+ has none of them.
PLACE_WORDS = frozenset(
    {"left", "right", "top", "bottom", "upper", "lower", "middle", "center", "corner", "side", "above", "below"}
    | {"over", "under", "higher", "leftmost", "rightmost"}
)


def say(rng: np.random.Generator, meaning: Meaning) -> str:
    """A sentence with this meaning, in lower case, with or without an article."""
    sentence = _say(rng, meaning)
    return f"the {sentence}" if rng.random() < 0.3 else sentence


def typed(rng: np.random.Generator, sentence: str) -> str:
    """The sentence as somebody may have typed it: some with a capital, some with a full stop."""
    first = sentence[0].upper() + sentence[1:] if rng.random() < 0.3 else sentence
    return f"{first}." if rng.random() < 0.2 else first


def tokens(sentence: str) -> list[str]:
    """The words of a sentence."""
    return sentence.split()


def _one(rng: np.random.Generator, words: Sequence[str]) -> str:
    return words[int(rng.integers(len(words)))]


def _say(rng: np.random.Generator, meaning: Meaning) -> str:
    match meaning:
        case Described():
            return phrase(rng, meaning)
        case Located(of, sides):
            return _located(rng, phrase(rng, of), sides)
        case Extreme(of, largest):
            return f"{_one(rng, ('largest', 'biggest') if largest else ('smallest', 'tiniest'))} {phrase(rng, of)}"
        case Ordinal(of, nth, side):
            article = _one(rng, ("the ", ""))
            return f"{_one(rng, ORDINALS[nth])} {phrase(rng, of)} from {article}{side}"
        case Related(of, relation, landmark):
            article = _one(rng, ("the ", "the ", ""))
            return f"{phrase(rng, of)} {_one(rng, RELATIONS[relation])} {article}{_say(rng, landmark)}"
        case Excepted(of, without):
            link = _one(rng, ("that is not", "not", "which is not"))
            return f"{phrase(rng, of)} {link} {' '.join(_adjectives(rng, without))}"


def phrase(rng: np.random.Generator, words: Described) -> str:
    """A noun with its adjectives; sometimes the pattern or the colour follows it."""
    noun = _one(rng, ANY if words.category is None else NOUNS[words.category])
    after = ""
    if words.pattern is not None and rng.random() < 0.4:
        after = f" {WITH[words.pattern]}"
        words = Described(words.category, words.colour, None, words.size, words.group)
    elif words.colour is not None and words.pattern is None and rng.random() < 0.15:
        after = f" that is {_one(rng, COLOURS.get(words.colour, (words.colour,)))}"
        words = Described(words.category, None, None, words.size, words.group)
    return " ".join([*_adjectives(rng, words), noun]) + after


def _adjectives(rng: np.random.Generator, words: Described) -> list[str]:
    said = []
    if words.size is not None:
        said.append(_one(rng, SIZES[words.size]))
    if words.group is not None:
        said.append(_one(rng, GROUPS[words.group]))
    looks = []
    if words.colour is not None:
        looks.append(_one(rng, COLOURS.get(words.colour, (words.colour,))))
    if words.pattern is not None:
        looks.append(_one(rng, PATTERNS[words.pattern]))
    return [*said, *(reversed(looks) if rng.random() < 0.3 else looks)]


def _located(rng: np.random.Generator, noun: str, sides: tuple[Side, ...]) -> str:
    if not sides:
        return _one(rng, (f"middle {noun}", f"center {noun}", f"{noun} in the middle", f"{noun} in the center"))
    words = " ".join(_one(rng, SIDES[side]) for side in sides)
    if len(sides) == 2:
        return _one(rng, (f"{words} {noun}", f"{noun} in the {words} corner", f"{noun} {words}"))
    ways = [f"{words} {noun}", f"{noun} at the {sides[0]}"]
    if sides[0] in ("left", "right"):
        ways = [f"{words} {noun}", f"{words}most {noun}", f"{noun} on the {words}", f"{noun} on {words} side"]
    return _one(rng, ways)
