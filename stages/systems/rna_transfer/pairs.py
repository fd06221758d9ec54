"""From scores of pairs to a structure: each base at most one partner, loops of at least three bases.

Shapes: L base, N pair.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from stages.rna.alphabet import CANONICAL, FIRST_BASE, TOKENS
from stages.rna.structure import Pairs

#: Bases between the two of a pair at least.
MINIMUM_LOOP = 3

_MAY_PAIR = np.zeros((len(TOKENS), len(TOKENS)), dtype=np.bool_)
for _pair in CANONICAL:
    _MAY_PAIR[TOKENS.index(_pair[0]), TOKENS.index(_pair[1])] = True
# A base that is not known may pair with any.
_MAY_PAIR[TOKENS.index("N"), FIRST_BASE:] = True
_MAY_PAIR[FIRST_BASE:, TOKENS.index("N")] = True


def decode(
    score_LL: NDArray[np.floating], token_L: NDArray[np.uint8], *, threshold: float, canonical: bool
) -> tuple[Pairs, NDArray[np.float32]]:
    """The structure that takes pairs from the highest score down, as long as both bases are free.

    A structure may have pseudoknots. What is decoded at a higher threshold are the pairs of this structure that reach
    it.

    Parameters
    ----------
    score_LL
        Score of each pair of bases; only the part above the diagonal is read.
    token_L
        Bases, as tokens of stages/rna/alphabet.py.
    threshold
        Lowest score of a pair.
    canonical
        Whether only AU, GC and GU pair; a base that is not known then pairs with any.

    Returns
    -------
    pairs, score_N
        Sorted by left base, and their scores.

    Notes
    -----
    Ties: of two pairs of equal score, the one whose left base comes first (5') is taken first, then the one whose right
    base comes first.
    """
    allowed_LL = np.triu(score_LL >= threshold, MINIMUM_LOOP + 1)
    if canonical:
        allowed_LL &= _MAY_PAIR[token_L[:, None], token_L[None, :]]
    left_N, right_N = np.nonzero(allowed_LL)
    found_N = score_LL[left_N, right_N].astype(np.float32)
    # Row by row, a stable sort leaves equal scores in the order of left, then right.
    order_N = np.argsort(-found_N, kind="stable")
    is_free_L = np.ones(len(token_L), dtype=np.bool_)
    taken: list[int] = []
    for n in order_N.tolist():
        left, right = left_N[n], right_N[n]
        if is_free_L[left] and is_free_L[right]:
            is_free_L[left] = is_free_L[right] = False
            taken.append(n)
    taken.sort()
    pairs = np.stack([left_N[taken], right_N[taken]], axis=1).astype(np.int32)
    return pairs, found_N[taken]
