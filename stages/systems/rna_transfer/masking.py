"""Masked language modelling: which bases are hidden, and the loss on those alone.

Shape suffixes: B base, C chosen base, K known base (A, C, G, U).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stages.rna.alphabet import FIRST_BASE, MASK, UNKNOWN

#: Of the chosen bases, the shares that are masked and that are replaced by a random base; the rest is kept (BERT).
MASKED, REPLACED = 0.8, 0.1


class Hidden(NamedTuple):
    """Bases with some of them hidden.

    Attributes
    ----------
    token_B
        What the encoder sees.
    chosen_C
        Positions of the bases to predict, ascending.
    target_C
        What stood there: 0 to 3 for A, C, G, U.
    """

    token_B: NDArray[np.uint8]
    chosen_C: NDArray[np.int64]
    target_C: NDArray[np.int64]


def hide(token_B: NDArray[np.uint8], share: float, rng: np.random.Generator) -> Hidden:
    """Choose known bases and hide them: 80 % masked, 10 % replaced by any of the four, 10 % kept.

    Parameters
    ----------
    token_B
        Tokens of stages/rna/alphabet.py, without ends; bases that are not A, C, G or U are never chosen.
    share
        Share of the known bases that are chosen, each by itself; at least one is.

    Raises
    ------
    ValueError
        No base is known.
    """
    known_B = is_known(token_B)
    if not known_B.any():
        raise ValueError("no base is A, C, G or U")
    drawn_B = np.where(known_B, rng.random(len(token_B)), 1.0)
    chosen_C = np.flatnonzero(drawn_B < share)
    if not len(chosen_C):
        chosen_C = np.array([drawn_B.argmin()])
    fate_C = rng.random(len(chosen_C))
    replaced_C = rng.integers(FIRST_BASE, UNKNOWN, len(chosen_C))
    seen_B = token_B.copy()
    seen_C = np.where(fate_C < MASKED, MASK, np.where(fate_C < MASKED + REPLACED, replaced_C, token_B[chosen_C]))
    seen_B[chosen_C] = seen_C
    return Hidden(seen_B, chosen_C, token_B[chosen_C].astype(np.int64) - FIRST_BASE)


def is_known(token_B: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Which bases are A, C, G or U."""
    return (token_B >= FIRST_BASE) & (token_B < UNKNOWN)


def masked_loss(logit_BK: Tensor, hidden: Hidden) -> Tensor:
    """Mean cross-entropy in nats of the chosen bases; no other base has a part in it."""
    place = logit_BK.device
    chosen_C = torch.from_numpy(hidden.chosen_C).to(place)
    return functional.cross_entropy(logit_BK[chosen_C], torch.from_numpy(hidden.target_C).to(place))


def unigram_loss(token_B: NDArray[np.uint8]) -> float:
    """Entropy in nats of the four bases' frequencies: the loss of a model that knows nothing else."""
    count_K = np.bincount(token_B, minlength=UNKNOWN)[FIRST_BASE:UNKNOWN].astype(np.float64)
    share_K = count_K[count_K > 0] / count_K.sum()
    return float(-(share_K * np.log(share_K)).sum())
