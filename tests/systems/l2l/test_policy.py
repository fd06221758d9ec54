"""RPLE: the policy gradient is that of the expected reward; what a policy does with perfect and with random priors."""

import numpy as np
import pytest
import torch

from stages.systems.l2l.policy import (
    ACTIONS,
    REFUSE,
    Experience,
    Policy,
    entropy,
    expected_reward,
    learn,
    sampled,
    surrogate,
)
from tests.systems.l2l.small import SETTINGS

SELECTION = SETTINGS.selection.model_copy(update={"steps": 300, "batch": 64, "learning_rate": 0.03, "check": 50})


@pytest.mark.parametrize("baseline", [0.0, 0.3])
def test_the_policy_gradient_equals_the_finite_difference_of_the_expected_reward(baseline: float) -> None:
    rng = np.random.default_rng(0)
    logit = torch.from_numpy(rng.normal(size=(1, 4))).requires_grad_()
    reward = torch.from_numpy(rng.normal(size=(1, 4)))
    chances = logit.detach().softmax(dim=1)[0]
    # All four actions are enumerated, each by its probability.
    total = sum(
        chances[action] * surrogate(logit, torch.tensor([action]), reward[:, action], baseline) for action in range(4)
    )
    (gradient,) = torch.autograd.grad(total, logit)
    step = 1e-5
    for action in range(4):
        moved = torch.zeros(1, 4, dtype=torch.float64)
        moved[0, action] = step
        up, down = (expected_reward(logit.detach() + sign * moved, reward) for sign in (1, -1))
        assert -gradient[0, action].item() == pytest.approx((up - down).item() / (2 * step), abs=1e-8)


def test_entropy_is_that_of_a_uniform_choice_at_equal_odds_and_none_when_sure() -> None:
    assert entropy(torch.zeros(3, 4)).item() == pytest.approx(np.log(4))
    assert entropy(torch.tensor([[50.0, 0, 0, 0]])).item() == pytest.approx(0, abs=1e-6)


def test_actions_are_drawn_by_their_probability() -> None:
    logit = torch.log(torch.tensor([[0.5, 0.25, 0.25, 1e-9]])).expand(8000, 4)
    found = torch.bincount(sampled(logit, np.random.default_rng(0)), minlength=4) / 8000
    assert found.tolist() == pytest.approx([0.5, 0.25, 0.25, 0], abs=0.02)


def made(iou: np.ndarray, seed: int) -> Experience:
    """States that say nothing, rewards of candidates with these IoUs (N, 3)."""
    rng = np.random.default_rng(seed)
    reward = np.concatenate([iou - 0.5, np.zeros((len(iou), 1))], axis=1).astype(np.float32)
    return Experience(
        torch.from_numpy(rng.normal(size=(len(iou), 5)).astype(np.float32)),
        torch.from_numpy(reward),
        torch.from_numpy(rng.random((len(iou), 4, 4, 6)).astype(np.float32)),
        torch.full((len(iou), 4, 4), 0.5),
    )


def accept_rate(policy: Policy, seen: Experience) -> float:
    return float((policy.actions(seen.state_NF).argmax(dim=1) != REFUSE).to(torch.float32).mean())


def test_a_perfect_prior_is_always_accepted() -> None:
    rng = np.random.default_rng(1)
    iou = rng.uniform(0, 0.4, (120, 3))
    iou[:, ACTIONS.index("prior")] = 1
    seen = made(iou, 2)
    policy, history = learn(seen, seen, SELECTION, 0, "test")
    assert accept_rate(policy, seen) == 1
    assert history[-1]["validation_reward"] == pytest.approx(0.5)


def test_a_random_prior_is_never_accepted() -> None:
    seen = made(np.random.default_rng(1).uniform(0, 0.3, (120, 3)), 2)
    policy, _ = learn(seen, seen, SELECTION, 0, "test")
    assert accept_rate(policy, seen) == 0


def test_a_state_that_tells_good_from_bad_is_used() -> None:
    rng = np.random.default_rng(3)
    good = rng.random(200) < 0.5
    seen = made(np.where(good, 0.9, 0.1)[:, None] * np.ones(3), 4)
    seen.state_NF[:, 0] = torch.from_numpy(np.where(good, 1.0, -1.0).astype(np.float32))
    policy, _ = learn(seen, seen, SELECTION, 0, "test")
    accepted = (policy.actions(seen.state_NF).argmax(dim=1) != REFUSE).numpy()
    assert (accepted == good).mean() > 0.98


def test_pixels_that_are_right_are_kept_and_wrong_ones_dropped() -> None:
    seen = made(np.full((60, 3), 0.9), 5)
    right = seen.pixel_NHWP[..., 0] > 0.5
    seen = seen._replace(pixel_reward_NHW=torch.where(right, 0.5, -0.5))
    policy, _ = learn(seen, seen, SELECTION, 0, "test")
    weight = policy.pixels(seen.pixel_NHWP).sigmoid()
    assert weight[right].mean() > weight[~right].mean() + 0.3


def test_the_same_seed_learns_the_same_policy() -> None:
    seen = made(np.random.default_rng(1).uniform(0, 1, (40, 3)), 2)
    few = SELECTION.model_copy(update={"steps": 20, "check": 10})
    first, second = (learn(seen, seen, few, 7, "test")[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)
