"""The network: shapes, what guidance changes, and what no word and no prior mean."""

from typing import Literal

import numpy as np
import pytest
import torch

from stages.systems.l2l.model import L2l, initialise, pool
from tests.systems.l2l.small import SETTINGS

SIZES = SETTINGS.network


def network(guidance: Literal["maps", "tokens", "none"] = "maps", rho: float = 0.5) -> L2l:
    made = L2l(SIZES.model_copy(update={"rho": rho}), 12, guidance)
    initialise(made, np.random.default_rng(0))
    return made.eval()


def inputs(batch: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    image = torch.rand(batch, 3, 16, 16, generator=rng)
    words = torch.randint(1, 12, (batch, 6), generator=rng)
    return image, words, torch.rand(batch, 16, 16, generator=rng)


@pytest.mark.parametrize("guidance", ["maps", "tokens", "none"])
def test_an_answer_has_the_size_of_the_image(guidance: Literal["maps", "tokens", "none"]) -> None:
    answer = network(guidance)(*inputs())
    assert answer.logit_BHW.shape == (3, 16, 16)
    assert [tuple(level.shape) for level in answer.level_BHW] == [(3, 2, 2), (3, 4, 4), (3, 8, 8)]


def test_samples_do_not_depend_on_each_other() -> None:
    image, words, prior = inputs()
    made = network()
    together = made(image, words, prior).logit_BHW[1]
    alone = made(image[1:2], words[1:2], prior[1:2]).logit_BHW[0]
    torch.testing.assert_close(together, alone)


def test_without_sesm_the_prior_changes_nothing() -> None:
    image, words, prior = inputs()
    made = network("none")
    assert torch.equal(made(image, words, prior).logit_BHW, made(image, words, 1 - prior).logit_BHW)


@pytest.mark.parametrize("guidance", ["maps", "tokens"])
def test_with_sesm_the_prior_changes_the_answer(guidance: Literal["maps", "tokens"]) -> None:
    image, words, prior = inputs()
    made = network(guidance)
    assert not torch.allclose(made(image, words, prior).logit_BHW, made(image, words, 1 - prior).logit_BHW)


def test_rho_1_keeps_the_prior_and_rho_0_forgets_it() -> None:
    image, words, prior = inputs()
    torch.testing.assert_close(network(rho=1)(image, words, prior).guidance_BHW, prior)
    answer = network(rho=0)(image, words, prior)
    last = torch.nn.functional.interpolate(answer.level_BHW[-1].sigmoid()[:, None], scale_factor=2.0, mode="bilinear")
    torch.testing.assert_close(answer.guidance_BHW, last[:, 0])


def test_words_change_the_answer_and_their_order_too() -> None:
    image, words, prior = inputs(1)
    made = network()
    turned = words.flip(1)
    assert not torch.equal(words, turned)
    assert not torch.allclose(made(image, words, prior).logit_BHW, made(image, turned, prior).logit_BHW)


def test_features_are_pooled_by_the_map() -> None:
    features = torch.arange(8.0).reshape(1, 2, 2, 2)
    weight = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    pooled, there = pool(features, weight)
    assert (pooled.tolist(), there.tolist()) == ([[1.5, 5.5]], [True])


def test_a_map_of_nothing_points_nowhere() -> None:
    pooled, there = pool(torch.ones(1, 2, 2, 2), torch.zeros(1, 1, 2, 2))
    assert (pooled.tolist(), there.tolist()) == ([[0.0, 0.0]], [False])


def test_the_default_network_has_between_60_and_150_thousand_weights() -> None:
    sizes = SIZES.model_copy(update={"side": 48, "widths": (24, 32, 48), "words": 32, "groups": 8, "tokens": 16})
    assert 60_000 < sum(weight.numel() for weight in L2l(sizes, 102, "maps").parameters()) < 150_000
