"""Small families of hairpins with random sequences, as a dot-bracket file."""

from __future__ import annotations

import random
from pathlib import Path

FAMILIES, MOLECULES, STEM, LOOP = 10, 3, 18, 8
PAIRED = {"A": "U", "C": "G", "G": "C", "U": "A"}


def write_hairpins(path: Path) -> None:
    """Write families of hairpins: a stem of random pairs that varies a little within its family."""
    rng = random.Random(0)
    lines = []
    for family in range(FAMILIES):
        stem = rng.choices("ACGU", k=STEM)
        for molecule in range(MOLECULES):
            mine = [base if rng.random() < 0.7 else rng.choice("ACGU") for base in stem]
            other = [PAIRED[base] for base in reversed(mine)]
            sequence = "".join([*mine, *rng.choices("ACGU", k=LOOP), *other])
            lines += [f">hairpin{family}_{molecule}", sequence, "(" * STEM + "." * LOOP + ")" * STEM]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
