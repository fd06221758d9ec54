"""The alphabet of sequences, and the tokens of models.

A sequence is upper case, has U for T, and no gap. A, C, G and U are known bases; the other IUPAC codes stand for one of
several bases and are unknown ones. X, which some programs write for a modified base, is read as N.

Shape: L bases, and two more where the ends have tokens.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

KNOWN = "ACGU"
#: IUPAC codes of several bases, and the bases they stand for.
AMBIGUOUS = {
    "R": "AG",
    "Y": "CU",
    "S": "CG",
    "W": "AU",
    "K": "GU",
    "M": "AC",
    "B": "CGU",
    "D": "AGU",
    "H": "ACU",
    "V": "ACG",
    "N": "ACGU",
}
GAPS = "-.~_"
#: Pairs of bases that count as canonical: Watson-Crick and the wobble pair.
CANONICAL = ("AU", "CG", "GC", "GU", "UA", "UG")

#: Tokens of models, in the order of their numbers.
TOKENS = ("<pad>", "<mask>", "<start>", "<end>", "A", "C", "G", "U", "N")
PAD, MASK, START, END = range(4)
FIRST_BASE = TOKENS.index("A")
UNKNOWN = TOKENS.index("N")

#: Bytes that may stand for a base in a file.
LETTERS = ("".join([*KNOWN, *AMBIGUOUS, "TX"]) + "".join([*KNOWN, *AMBIGUOUS, "TX"]).lower()).encode()
#: Table of bytes.translate: upper case, T to U, X to N.
UPPER = bytes.maketrans(LETTERS, LETTERS.decode().upper().replace("T", "U").replace("X", "N").encode())

_TOKEN_OF_BYTE = np.full(256, UNKNOWN, dtype=np.uint8)
_TOKEN_OF_BYTE[np.frombuffer(KNOWN.encode(), dtype=np.uint8)] = np.arange(FIRST_BASE, UNKNOWN, dtype=np.uint8)
_IS_CANONICAL = np.zeros((256, 256), dtype=np.bool_)
for _pair in CANONICAL:
    _IS_CANONICAL[ord(_pair[0]), ord(_pair[1])] = True
_IS_KNOWN = np.zeros(256, dtype=np.bool_)
_IS_KNOWN[np.frombuffer(KNOWN.encode(), dtype=np.uint8)] = True


def normal(text: str) -> str:
    """A sequence in the alphabet: upper case, U for T, N for X; gaps and anything else stay as they are."""
    return text.encode("latin-1", "replace").translate(UPPER).decode("latin-1")


def encode(sequence: str, *, ends: bool = False) -> NDArray[np.uint8]:
    """Tokens of a normal sequence: (L,), with ``ends`` (L + 2,) between the tokens of start and end.

    Bases that are not A, C, G or U share one token, ``N``.
    """
    token_L = _TOKEN_OF_BYTE[codes(sequence)]
    return np.concatenate([[START], token_L, [END]]).astype(np.uint8) if ends else token_L


def decode(token_L: NDArray[np.integer]) -> str:
    """The sequence of tokens; those of padding and of the ends are left out, a masked base is ``?``."""
    return "".join(
        "?" if token == MASK else TOKENS[token] for token in token_L.tolist() if token not in (PAD, START, END)
    )


def codes(sequence: str) -> NDArray[np.uint8]:
    """The letters of a normal sequence as bytes (L,)."""
    return np.frombuffer(sequence.encode("ascii"), dtype=np.uint8)


def unknown_bases(sequence: str) -> int:
    """Number of bases that are not A, C, G or U."""
    return len(sequence) - sum(sequence.count(base) for base in KNOWN)


def gc_share(sequence: str) -> float | None:
    """Share of G and C among the known bases; None where there is none."""
    known = {base: sequence.count(base) for base in KNOWN}
    total = sum(known.values())
    return (known["G"] + known["C"]) / total if total else None


def canonical(left_N: NDArray[np.uint8], right_N: NDArray[np.uint8]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs of letters (bytes of normal sequences) are AU, GC or GU, and which are of two known bases."""
    return _IS_CANONICAL[left_N, right_N], _IS_KNOWN[left_N] & _IS_KNOWN[right_N]


def canonical_share(sequence: str, pairs: NDArray[np.integer]) -> float | None:
    """Share of AU, GC and GU among the pairs (N, 2) of two known bases; None where there is none."""
    code_L = codes(sequence)
    canonical_N, known_N = canonical(code_L[pairs[:, 0]], code_L[pairs[:, 1]])
    total = int(np.count_nonzero(known_N))
    return int(np.count_nonzero(canonical_N)) / total if total else None
