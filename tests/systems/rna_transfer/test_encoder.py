"""The encoder: one embedding a base, no molecule sees another, nothing is padded."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch.nn import functional

from stages.rna import alphabet
from stages.rna.alphabet import END, START
from stages.runtime import random_numbers
from stages.systems.rna_transfer.encoder import Encoder, initialise, pack, rotated, turns
from stages.systems.rna_transfer.settings import Size


@pytest.fixture
def encoder() -> Encoder:
    made = Encoder(Size(width=32, layers=2, heads=2, tokens=[1]))
    initialise(made, random_numbers(0, "encoder"))
    return made


def molecules(lengths: list[int], seed: int = 0) -> list[NDArray[np.uint8]]:
    rng = np.random.default_rng(seed)
    return [alphabet.encode("".join(rng.choice(list("ACGUN"), length))) for length in lengths]


@torch.no_grad()
def test_five_bases_give_five_embeddings(encoder: Encoder) -> None:
    assert encoder(pack([alphabet.encode("ACGUU")])).shape == (5, 32)


@torch.no_grad()
def test_a_molecule_does_not_see_its_neighbours(encoder: Encoder) -> None:
    """Unpadded batching gives what each molecule has alone."""
    batch = molecules([7, 30, 7, 1, 30, 12])
    together = torch.split(encoder(pack(batch)), [len(each) for each in batch])
    for molecule, found in zip(batch, together, strict=True):
        np.testing.assert_allclose(found.numpy(), encoder(pack([molecule])).numpy(), atol=1e-5)


def test_a_batch_holds_its_bases_and_their_ends_and_nothing_else() -> None:
    batch = molecules([4, 9, 4])
    packed = pack(batch)
    assert packed.blocks == ((2, 6), (1, 11))
    assert len(packed.token_T) == sum(count * size for count, size in packed.blocks) == 17 + 2 * 3
    assert torch.equal(packed.token_T[packed.base_B], torch.from_numpy(np.concatenate(batch)).long())
    ends = torch.isin(packed.token_T, torch.tensor([START, END]))
    assert int(ends.sum()) == 6
    assert packed.position_T.tolist()[:12] == [*range(6), *range(6)]


def test_a_batch_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="a batch of no molecules"):
        pack([])


@torch.no_grad()
def test_attention_is_that_of_a_plain_transformer_layer(encoder: Encoder) -> None:
    """One molecule by the textbook: softmax of rotated queries times keys."""
    molecule = molecules([11])[0]
    packed = pack([molecule])
    x_TD = encoder.embedding(packed.token_T)
    layer = encoder.layers[0]
    normed = functional.layer_norm(x_TD, (32,))
    query, key, value = (part.view(13, 2, 16) for part in (normed @ layer.query_key_value.weight.T).split(32, dim=1))
    turn = turns(packed.position_T, encoder.frequency_E)
    score_HLL = torch.einsum("lhe,mhe->hlm", rotated(query, turn), rotated(key, turn)) / 4
    mixed_TD = torch.einsum("hlm,mhe->lhe", score_HLL.softmax(dim=-1), value).reshape(13, 32)
    x_TD = x_TD + mixed_TD @ layer.out.weight.T
    x_TD = x_TD + functional.gelu(functional.layer_norm(x_TD, (32,)) @ layer.widen.weight.T) @ layer.narrow.weight.T
    _, first, *_ = encoder.hidden(packed)
    torch.testing.assert_close(first, x_TD[1:-1], atol=1e-5, rtol=1e-5)


def test_rotary_scores_depend_on_the_distance_alone() -> None:
    rng = np.random.default_rng(0)
    query, key = (torch.from_numpy(rng.normal(size=8)).expand(20, 1, 8).contiguous() for _ in range(2))
    turn = turns(torch.arange(20), torch.tensor([1.0, 0.3, 0.1, 0.01], dtype=torch.float64))
    score_LL = rotated(query, turn)[:, 0] @ rotated(key, turn)[:, 0].T
    for distance in (-3, 0, 5):
        diagonal = torch.diagonal(score_LL, distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal))
    torch.testing.assert_close(score_LL[0, 0], query[0, 0] @ key[0, 0])


def test_rotary_positions_turn_each_two_units_by_the_angle() -> None:
    turned = rotated(torch.tensor([[[1.0, 0.0]]]), turns(torch.tensor([2]), torch.tensor([torch.pi / 4])))
    torch.testing.assert_close(turned, torch.tensor([[[0.0, 1.0]]]))


@torch.no_grad()
def test_matrices_start_with_the_deviation_of_their_inputs() -> None:
    made = Encoder(Size(width=64, layers=2, heads=2, tokens=[1]))
    initialise(made, random_numbers(0, "encoder"))
    layer = made.layers[1]
    assert float(layer.widen.weight.std()) == pytest.approx(64**-0.5, rel=0.05)
    assert float(layer.narrow.weight.std()) == pytest.approx((256 * 4) ** -0.5, rel=0.05)
    assert float(layer.attention_norm.weight.min()) == 1
    again = Encoder(Size(width=64, layers=2, heads=2, tokens=[1]))
    initialise(again, random_numbers(0, "encoder"))
    assert all(torch.equal(a, b) for a, b in zip(made.parameters(), again.parameters(), strict=True))
