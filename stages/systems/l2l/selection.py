"""Rules that say what becomes of each pseudo-label: fixed ones, the oracle, and the learned one; and their bookkeeping.

Shape suffixes: N sample, H W pixels, A action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from stages.systems.l2l.policy import ACTIONS, REFUSE, Policy
from stages.systems.l2l.proposals import (
    CANDIDATES,
    Proposals,
    candidate_ious,
    fusion_confidence,
    mask_iou,
    picked,
    pixel_states,
    states,
)
from stages.systems.l2l.settings import State

TEACHER, FUSION = ACTIONS.index("teacher"), ACTIONS.index("fusion")
#: A pseudo-label is good from this IoU on.
GOOD = 0.5


class Decision(NamedTuple):
    """An action of each sample (N,), and what each pixel counts (N, H, W) from 0 to 1."""

    action_N: Tensor
    weight_NHW: Tensor


class Rule(Protocol):
    """What becomes of pseudo-labels. Only the oracle looks at the truth."""

    two_views: bool

    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """Decide on each sample."""


class Fixed:
    """Accept one candidate of every sample, or refuse all."""

    two_views = False

    def __init__(self, action: int) -> None:
        self.action = action

    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """The same for all."""
        return _whole(found, torch.full_like(found.confidence_N, self.action, dtype=torch.int64))


class Threshold:
    """Accept the fusion where its confidence is above a threshold."""

    two_views = False

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold

    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """By confidence."""
        return _whole(found, torch.where(fusion_confidence(found) > self.threshold, FUSION, REFUSE))


class Agreement:
    """Accept the fusion where teacher and prior overlap."""

    two_views = False

    def __init__(self, least: float) -> None:
        self.least = least

    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """By the IoU of the two masks."""
        return _whole(found, torch.where(mask_iou(found.masks[0], found.masks[1]) > self.least, FUSION, REFUSE))


class Oracle:
    """Accept the best candidate where its true IoU is worth it."""

    two_views = False

    def __init__(self, cost: float) -> None:
        self.cost = cost

    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """By the true masks."""
        best_N, place_N = candidate_ious(found, truth_NHW).max(dim=1)
        return _whole(found, torch.where(best_N > self.cost, place_N, REFUSE))


class Learned:
    """The likeliest action of a policy, and its weights of pixels."""

    two_views = True

    def __init__(self, policy: Policy, state: State) -> None:
        self.policy, self.state = policy, state

    @torch.no_grad()
    def decide(self, found: Proposals, truth_NHW: Tensor) -> Decision:
        """By what the policy learnt."""
        action_N = self.policy.actions(states(found, self.state)).argmax(dim=1)
        weight_NHW = self.policy.pixels(pixel_states(found, action_N)).sigmoid()
        return Decision(action_N, weight_NHW)


def _whole(found: Proposals, action_N: Tensor) -> Decision:
    return Decision(action_N, torch.ones_like(found.moved_NHW))


def best_threshold(confidence_N: Tensor, fusion_reward_N: Tensor, grid: Sequence[float]) -> tuple[float, float]:
    """The threshold of a grid under which accepting the fusion earns most, and what it earns; the lowest of equals."""
    earned = [float((fusion_reward_N * (confidence_N > threshold)).mean()) for threshold in sorted(grid)]
    place = max(range(len(earned)), key=lambda k: (earned[k], -k))
    return sorted(grid)[place], earned[place]


class Tally:
    """Pseudo-labels of a round, against the true masks; for the report alone."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys(("pool", "accepted", "accepted_good", "any_good", *CANDIDATES), 0.0)
        self._sums = dict.fromkeys(("iou", "weight", "shared", "claimed", "true"), 0.0)

    def add(self, found: Proposals, decision: Decision, truth_NHW: Tensor) -> None:
        """Count the samples of a batch."""
        true_NM = candidate_ious(found, truth_NHW)
        accepted_N = decision.action_N != REFUSE
        mask_NHW = picked(found.masks, decision.action_N) & accepted_N[:, None, None]
        iou_N = true_NM.gather(1, decision.action_N.clamp(max=len(CANDIDATES) - 1)[:, None])[:, 0]
        counts = self._counts
        counts["pool"] += len(accepted_N)
        counts["accepted"] += int(accepted_N.sum())
        counts["accepted_good"] += int((accepted_N & (iou_N >= GOOD)).sum())
        counts["any_good"] += int((true_NM.amax(dim=1) >= GOOD).sum())
        for action, name in enumerate(CANDIDATES):
            counts[name] += int((decision.action_N == action).sum())
        sums, truth = self._sums, truth_NHW > 0
        sums["iou"] += float(iou_N[accepted_N].sum())
        sums["weight"] += float(decision.weight_NHW[accepted_N].mean(dim=(1, 2)).sum())
        sums["shared"] += int((mask_NHW & truth).sum())
        sums["claimed"] += int(mask_NHW.sum())
        sums["true"] += int(truth[accepted_N].sum())

    def row(self) -> dict[str, float | int | None]:
        """Columns of rounds.parquet; null where nothing was accepted."""
        counts, sums = self._counts, self._sums
        return {
            **{name: int(counts[name]) for name in ("pool", "accepted")},
            **{f"accepted_{name}": int(counts[name]) for name in CANDIDATES},
            "precision": _share(counts["accepted_good"], counts["accepted"]),
            "recall": _share(counts["accepted_good"], counts["any_good"]),
            "iou": _share(sums["iou"], counts["accepted"]),
            "pixel_precision": _share(sums["shared"], sums["claimed"]),
            "pixel_recall": _share(sums["shared"], sums["true"]),
            "weight": _share(sums["weight"], counts["accepted"]),
        }


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
