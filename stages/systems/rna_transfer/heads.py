"""Heads: from embeddings of bases to the answer of a task. Every arm of a task has the same.

Shape suffixes: B base of the batch, L base of a molecule, D unit, C channel, M molecule, Y class.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from stages.rna.alphabet import FIRST_BASE, TOKENS
from stages.systems.rna_transfer.encoder import Packed, initialise
from stages.systems.rna_transfer.settings import PairHead

#: Logit that a pair of bases starts from: about one pair in a hundred exists.
RARE = -4.0


class OneHot(nn.Module):
    """No encoder: each base is itself."""

    width = len(TOKENS) - FIRST_BASE

    def forward(self, packed: Packed) -> Tensor:
        """A, C, G, U or N of each base, shape (base, 5)."""
        return functional.one_hot(packed.token_T[packed.base_B] - FIRST_BASE, self.width).float()


class BaseHead(nn.Module):
    """One number for each base, by one linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, x_BD: Tensor) -> Tensor:
        """Scores, shape (base,)."""
        return self.score(x_BD)[:, 0]  # type: ignore[no-any-return]


class MoleculeHead(nn.Module):
    """Scores of the classes of each molecule, by one linear layer on the mean of its bases."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, classes)

    def forward(self, x_BD: Tensor, lengths: Sequence[int]) -> Tensor:
        """Logits, shape (molecule, class)."""
        mean_MD = torch.stack([part_LD.mean(dim=0) for part_LD in torch.split(x_BD, list(lengths))])
        return self.score(mean_MD)  # type: ignore[no-any-return]


class PairsHead(nn.Module):
    """Logits of all pairs of bases of one molecule: every two bases joined, then two convolutions.

    joined: product
        The product of two projections. It says at once which bases fit each other.
    joined: concatenation
        A dense layer on the concatenation of two bases. It is the sum of two layers on each, so that nothing of shape
        (base, base, 2 units) is formed. What fits has to be learnt first, and short trainings end before that.

    A molecule's pairs are built one molecule at a time.
    """

    def __init__(self, width: int, settings: PairHead) -> None:
        super().__init__()
        channels, kernel = settings.channels, settings.kernel
        self.multiplies = settings.joined == "product"
        self.left = nn.Linear(width, channels)
        self.right = nn.Linear(width, channels, bias=self.multiplies)
        self.first = nn.Conv2d(channels, channels, kernel, padding="same")
        self.second = nn.Conv2d(channels, 1, kernel, padding="same")

    def forward(self, x_LD: Tensor) -> Tensor:
        """Logits, shape (base, base); the entry (i, j) with i < j is that of the pair."""
        left_LC, right_LC = self.left(x_LD)[:, None], self.right(x_LD)[None, :]
        pair_LLC = left_LC * right_LC if self.multiplies else functional.relu(left_LC + right_LC)
        hidden = functional.relu(self.first(pair_LLC.permute(2, 0, 1)[None]))
        return self.second(hidden)[0, 0]  # type: ignore[no-any-return]


def start(head: nn.Module, rng: np.random.Generator) -> None:
    """Draw new weights of a head; pairs start as rare."""
    initialise(head, rng)
    if isinstance(head, PairsHead):
        nn.init.constant_(head.second.bias, RARE)  # type: ignore[arg-type]
