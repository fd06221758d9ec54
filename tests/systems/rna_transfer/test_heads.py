"""The heads: what they compute, against the plain way of computing it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from stages.rna import alphabet
from stages.systems.rna_transfer.encoder import pack
from stages.systems.rna_transfer.heads import RARE, BaseHead, MoleculeHead, OneHot, PairsHead, start
from stages.systems.rna_transfer.settings import PairHead


def pair_head(joined: str, seed: int = 0) -> PairsHead:
    head = PairsHead(6, PairHead.model_validate({"joined": joined, "channels": 4, "kernel": 3, "canonical": True}))
    start(head, np.random.default_rng(seed))
    return head


@torch.no_grad()
@pytest.mark.parametrize("joined", ["concatenation", "product"])
def test_pairs_are_joined_as_the_settings_say(joined: str) -> None:
    """The concatenation of two bases through one dense layer, without ever being formed."""
    head, x_LD = pair_head(joined), torch.randn(9, 6, generator=torch.Generator().manual_seed(0))
    both = torch.cat([x_LD[:, None].expand(9, 9, 6), x_LD[None].expand(9, 9, 6)], dim=-1)
    if joined == "concatenation":
        weight = torch.cat([head.left.weight, head.right.weight], dim=1)
        pair_LLC = functional.relu(both @ weight.T + head.left.bias)
    else:
        pair_LLC = head.left(both[..., :6]) * head.right(both[..., 6:])
    image = pair_LLC.permute(2, 0, 1)[None]
    wanted = functional.conv2d(image, head.first.weight, head.first.bias, padding=1)
    wanted = functional.conv2d(functional.relu(wanted), head.second.weight, head.second.bias, padding=1)[0, 0]
    torch.testing.assert_close(head(x_LD), wanted, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_pairs_start_as_rare() -> None:
    head = pair_head("product")
    assert float(head.second.bias) == RARE
    assert torch.sigmoid(torch.tensor(RARE)) < 0.02


@torch.no_grad()
def test_a_molecule_is_judged_by_the_mean_of_its_bases() -> None:
    head = MoleculeHead(3, 2)
    x_BD = torch.randn(7, 3)
    found = head(x_BD, [2, 5])
    torch.testing.assert_close(found[1], head.score(x_BD[2:].mean(dim=0)))
    assert found.shape == (2, 2)
    assert BaseHead(3)(x_BD).shape == (7,)


def test_one_hot_is_the_base_itself() -> None:
    found = OneHot()(pack([alphabet.encode("GU"), alphabet.encode("ACN")]))
    assert found.argmax(dim=1).tolist() == [2, 3, 0, 1, 4]
    assert found.sum(dim=1).tolist() == [1] * 5
