"""What the arms start from."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from stages.runtime import random_numbers
from stages.systems.rna_transfer.arms import is_lower, layer_of, layers_in, lower_layers, shuffled, starting_weights
from stages.systems.rna_transfer.encoder import Encoder, initialise
from stages.systems.rna_transfer.settings import Size


def weights(seed: int) -> dict[str, Tensor]:
    made = Encoder(Size(width=16, layers=3, heads=2, tokens=[1]))
    initialise(made, random_numbers(seed, "encoder"))
    return {name: value + seed for name, value in made.state_dict().items()}


def started(arm: str) -> dict[str, Tensor]:
    return starting_weights(arm, weights(0), weights(1), lower_share=0.5, rng=np.random.default_rng(0))


def same(first: Tensor, second: Tensor) -> bool:
    return torch.equal(first, second)


def test_shuffling_keeps_the_values_of_each_tensor() -> None:
    before, after = weights(1), started("shuffled")
    for name in before:
        torch.testing.assert_close(after[name].flatten().sort().values, before[name].flatten().sort().values)
    assert not same(before["layers.0.widen.weight"], after["layers.0.widen.weight"])


def test_lower_and_upper_together_are_all_of_the_pre_trained_encoder() -> None:
    fresh, pretrained, lower, upper = weights(0), weights(1), started("lower"), started("upper")
    for name in fresh:
        from_below, from_above = same(lower[name], pretrained[name]), same(upper[name], pretrained[name])
        assert from_below != from_above, name
        assert same(lower[name], fresh[name]) == from_above, name
    assert same(lower["embedding.weight"], pretrained["embedding.weight"])
    assert same(upper["norm.weight"], pretrained["norm.weight"])
    taken = {layer_of(name) for name in fresh if same(lower[name], pretrained[name])}
    assert taken == {"embedding", "layer_1", "layer_2"}


def test_arms_begin_with_the_weights_that_their_name_says() -> None:
    for arm, seed in (("random", 0), ("random_frozen", 0), ("fine_tuned", 1), ("frozen", 1)):
        found = started(arm)
        assert all(same(found[name], value) for name, value in weights(seed).items())


def test_the_border_leaves_a_layer_on_both_sides() -> None:
    assert [lower_layers(layers, 0.5) for layers in (1, 2, 3, 6)] == [1, 1, 2, 3]
    assert [lower_layers(3, share) for share in (0.01, 0.99)] == [1, 2]


def test_layers_are_found_in_the_names_of_other_libraries() -> None:
    names = ["model.embeddings.word_embeddings.weight", "model.encoder.layer.11.attention.self.query.weight"]
    assert [layer_of(name) for name in names] == ["embedding", "layer_12"]
    assert is_lower(names[0], 1)
    assert not is_lower(names[1], 11)
    assert is_lower(names[1], 12)
    assert layers_in(["encoder.layer.0.a", "encoder.layer.1.a", "pooler.b"]) == 2
    assert layer_of("pooler.dense.weight") == "top"


def test_a_pre_trained_arm_without_weights_and_an_arm_without_an_encoder_are_refused() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="arm lower without pre-trained weights"):
        starting_weights("lower", weights(0), None, lower_share=0.5, rng=rng)
    with pytest.raises(ValueError, match="arm one_hot has no encoder"):
        starting_weights("one_hot", weights(0), weights(1), lower_share=0.5, rng=rng)


def test_shuffling_is_seeded() -> None:
    first, second = (shuffled(weights(0), np.random.default_rng(3)) for _ in range(2))
    assert all(same(first[name], second[name]) for name in first)
