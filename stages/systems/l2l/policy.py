"""RPLE: a policy that accepts or refuses a pseudo-label of each sample, and weighs its pixels, by REINFORCE.

Shape suffixes: N sample, F feature of a sample's state, A action, H W pixels, P feature of a pixel's state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from stages.runtime import random_numbers
from stages.systems.l2l.settings import Selection

ACTIONS = ("teacher", "prior", "fusion", "refuse")
REFUSE = ACTIONS.index("refuse")


class Policy(nn.Module):
    """Log odds of each action, and of keeping each pixel; both are standardised by what they were trained on."""

    mean_F: Tensor
    std_F: Tensor

    def __init__(self, features: int, width: int, pixel_features: int) -> None:
        super().__init__()
        self.direct = nn.Linear(features, len(ACTIONS))
        self.hidden = nn.Linear(features, width)
        self.out = nn.Linear(width, len(ACTIONS), bias=False)
        self.pixel = nn.Linear(pixel_features, 1)
        self.register_buffer("mean_F", torch.zeros(features))
        self.register_buffer("std_F", torch.ones(features))
        for weight in self.parameters():
            nn.init.zeros_(weight)

    def standardise(self, state_NF: Tensor) -> None:
        """Take the moments of training states."""
        self.mean_F.copy_(state_NF.mean(dim=0))
        self.std_F.copy_(state_NF.std(dim=0, correction=0).clamp(min=1e-3))

    def actions(self, state_NF: Tensor) -> Tensor:
        """Log odds of the actions (N, A)."""
        x_NF = ((state_NF - self.mean_F) / self.std_F).clamp(-5, 5)
        found: Tensor = self.direct(x_NF) + self.out(torch.tanh(self.hidden(x_NF)))
        return found

    def pixels(self, state_NHWP: Tensor) -> Tensor:
        """Log odds of keeping each pixel (N, H, W)."""
        found: Tensor = self.pixel(state_NHWP)[..., 0]
        return found


class Experience(NamedTuple):
    """States whose actions have a known reward.

    Attributes
    ----------
    state_NF, reward_NA
        States of samples, and the reward of each action.
    pixel_NHWP, pixel_reward_NHW
        States of pixels, and the reward of keeping each.
    """

    state_NF: Tensor
    reward_NA: Tensor
    pixel_NHWP: Tensor
    pixel_reward_NHW: Tensor


def surrogate(logit_NA: Tensor, action_N: Tensor, reward_N: Tensor, baseline: float) -> Tensor:
    """REINFORCE (Williams 1992): its gradient, on average over the actions, is less that of the expected reward."""
    chosen_N = logit_NA.log_softmax(dim=1).gather(1, action_N[:, None])[:, 0]
    return -((reward_N - baseline) * chosen_N).mean()


def expected_reward(logit_NA: Tensor, reward_NA: Tensor) -> Tensor:
    """Mean over the samples of the reward that the policy expects."""
    return (logit_NA.softmax(dim=1) * reward_NA).sum(dim=1).mean()


def entropy(logit_NA: Tensor) -> Tensor:
    """Mean entropy of the actions, nats."""
    log_p_NA = logit_NA.log_softmax(dim=1)
    return -(log_p_NA.exp() * log_p_NA).sum(dim=1).mean()


def greedy_reward(logit_NA: Tensor, reward_NA: Tensor) -> float:
    """Mean reward of the likeliest actions."""
    return float(reward_NA.gather(1, logit_NA.argmax(dim=1, keepdim=True)).mean())


def learn(
    train: Experience, validation: Experience, settings: Selection, seed: int, stream: str
) -> tuple[Policy, list[dict[str, float | int | bool]]]:
    """Train a policy; the weights with the best mean reward of the likeliest actions on the validation part are kept.

    Returns
    -------
    policy, history
        step, reward, validation_reward, entropy, accepted (share on the validation part), chosen.
    """
    policy = _started(train, settings, seed, stream)
    optimiser = torch.optim.AdamW(
        policy.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
    )
    rng, count = random_numbers(seed, stream, "actions"), len(train.state_NF)
    baseline = pixel_baseline = 0.0
    best, kept = -np.inf, policy.state_dict()
    history: list[dict[str, float | int | bool]] = []
    rewards: list[float] = []
    for step in range(settings.steps + 1):
        if step % settings.check == 0 or step == settings.steps:
            row = _look(policy, validation)
            better = row["validation_reward"] >= best  # of equals the last: pixels go on learning
            if better:
                best, kept = row["validation_reward"], {k: v.clone() for k, v in policy.state_dict().items()}
            mean = float(np.mean(rewards)) if rewards else float("nan")
            history.append({"step": step, "reward": mean, **row, "chosen": False})
            rewards = []
        if step == settings.steps:
            break
        mine = torch.from_numpy(rng.integers(0, count, settings.batch)).to(train.state_NF.device)
        logit_NA = policy.actions(train.state_NF[mine])
        action_N = sampled(logit_NA.detach(), rng)
        reward_N = train.reward_NA[mine].gather(1, action_N[:, None])[:, 0]
        loss = surrogate(logit_NA, action_N, reward_N, baseline) - settings.entropy * entropy(logit_NA)
        # Pixels are few weights and many samples: eight images of the batch say enough.
        some = mine[:8]
        keep_NHW = policy.pixels(train.pixel_NHWP[some])
        kept_NHW = torch.from_numpy(rng.random(tuple(keep_NHW.shape)).astype(np.float32)).to(keep_NHW.device)
        kept_NHW = (kept_NHW < keep_NHW.detach().sigmoid()).to(torch.float32)
        pixel_reward_NHW = kept_NHW * train.pixel_reward_NHW[some]
        log_p_NHW = -nn.functional.binary_cross_entropy_with_logits(keep_NHW, kept_NHW, reduction="none")
        loss = loss - ((pixel_reward_NHW - pixel_baseline) * log_p_NHW).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        rewards.append(float(reward_N.mean()))
        baseline = settings.baseline * baseline + (1 - settings.baseline) * rewards[-1]
        pixel_baseline = settings.baseline * pixel_baseline + (1 - settings.baseline) * float(pixel_reward_NHW.mean())
    chosen = max(range(len(history)), key=lambda place: (history[place]["validation_reward"], place))
    history[chosen]["chosen"] = True
    policy.load_state_dict(kept)
    return policy, history


def sampled(logit_NA: Tensor, rng: np.random.Generator) -> Tensor:
    """An action of each sample, by its probability."""
    drawn_N1 = torch.from_numpy(rng.random((len(logit_NA), 1)).astype(np.float32)).to(logit_NA.device)
    return (logit_NA.softmax(dim=1).cumsum(dim=1) < drawn_N1).sum(dim=1).clamp(max=logit_NA.shape[1] - 1)


def _started(train: Experience, settings: Selection, seed: int, stream: str) -> Policy:
    policy = Policy(train.state_NF.shape[1], settings.width, train.pixel_NHWP.shape[-1]).to(train.state_NF.device)
    policy.standardise(train.state_NF)
    # Small weights below the hidden layer let it start: at zero no gradient would reach it.
    scale = 1 / np.sqrt(train.state_NF.shape[1])
    drawn = random_numbers(seed, stream, "weights").normal(size=tuple(policy.hidden.weight.shape)) * scale
    with torch.no_grad():
        policy.hidden.weight.copy_(torch.from_numpy(drawn))
    return policy


@torch.no_grad()
def _look(policy: Policy, validation: Experience) -> dict[str, float]:
    logit_NA = policy.actions(validation.state_NF)
    return {
        "validation_reward": greedy_reward(logit_NA, validation.reward_NA),
        "entropy": float(entropy(logit_NA)),
        "accepted": float((logit_NA.argmax(dim=1) != REFUSE).to(torch.float32).mean()),
    }
