"""What may be accepted, what the policy sees, rewards, and the rules that decide."""

import numpy as np
import pytest
import torch

from stages.systems.l2l.policy import ACTIONS, REFUSE
from stages.systems.l2l.proposals import (
    CANDIDATES,
    PIXEL_FEATURES,
    STATISTICS,
    Proposals,
    candidate_ious,
    fusion_confidence,
    mask_iou,
    pixel_states,
    rewards,
    states,
    uncertainty,
)
from stages.systems.l2l.selection import Agreement, Oracle, Tally, Threshold, best_threshold
from tests.systems.l2l.small import SETTINGS

SELECTION = SETTINGS.selection


def made(teacher: torch.Tensor, prior: torch.Tensor) -> Proposals:
    count = len(teacher)
    return Proposals(
        torch.stack([teacher, prior, (teacher + prior) / 2]),
        teacher,
        torch.ones(count),
        torch.zeros(count, 3, *teacher.shape[1:]),
        torch.zeros(count, 6),
        torch.full((count,), 2.0),
    )


#: Teacher right, prior a half of it; teacher empty, prior right; both wrong.
TRUTH = torch.tensor([[[1, 1, 0, 0]], [[0, 0, 1, 1]], [[1, 0, 0, 0]]])
FOUND = made(
    torch.tensor([[[0.9, 0.9, 0.1, 0.1]], [[0.1, 0.1, 0.1, 0.1]], [[0.0, 0.9, 0.9, 0.9]]]),
    torch.tensor([[[0.8, 0.0, 0.0, 0.0]], [[0.0, 0.0, 1.0, 1.0]], [[0.0, 0.9, 0.9, 0.0]]]),
)


def test_true_ious_of_the_candidates_by_hand() -> None:
    found = candidate_ious(FOUND, TRUTH)
    assert found.tolist() == [[1.0, 0.5, 0.5], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]]


def test_rewards_are_iou_less_the_cost_and_refusing_earns_nothing() -> None:
    found = rewards(FOUND, TRUTH, "cross_fitted", SELECTION, None)
    assert found.tolist() == [[0.5, 0.0, 0.0, 0.0], [-0.5, 0.5, 0.5, 0.0], [-0.5, -0.5, -0.5, 0.0]]


def test_agreement_needs_no_truth_and_pays_the_same_for_all_that_is_accepted() -> None:
    found = rewards(FOUND, torch.zeros_like(TRUTH), "agreement", SELECTION, None)
    assert found[0].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert found[2].tolist() == pytest.approx([2 / 3 - 0.5] * 3 + [0.0])


def test_the_gain_moves_all_rewards_of_a_sample_alike() -> None:
    plain = rewards(FOUND, TRUTH, "cross_fitted", SELECTION, 0.6)
    moved = (plain - rewards(FOUND, TRUTH, "gain", SELECTION, 0.6)).numpy()
    assert np.ptp(moved, axis=1).max() == pytest.approx(0, abs=1e-6)
    # The threshold accepts the fusion of the first and the last sample: their confidences are 0.85 and 0.9.
    assert moved[:, 0].tolist() == pytest.approx([0.0, 0.0, -0.5])


def test_confidence_is_the_mean_of_the_fusion_inside_its_mask() -> None:
    assert fusion_confidence(FOUND).tolist() == pytest.approx([0.85, 0.55, 0.9])


def test_iou_of_two_empty_masks_is_0_and_not_nan() -> None:
    nothing = torch.zeros(1, 2, 2, dtype=torch.bool)
    assert mask_iou(nothing, nothing).tolist() == [0.0]


def test_uncertainty_is_1_at_a_half_and_0_where_sure() -> None:
    assert uncertainty(torch.tensor([0.5, 0.0, 1.0])).tolist() == pytest.approx([1, 0, 0], abs=1e-4)


def test_embeddings_add_to_the_statistics_and_are_finite() -> None:
    plain, more = states(FOUND, "statistics"), states(FOUND, "embeddings")
    assert plain.shape == (3, len(STATISTICS))
    assert torch.equal(more[:, : len(STATISTICS)], plain)
    # image 6, words 6, length 1, and 10 for each of three masks
    assert more.shape == (3, len(STATISTICS) + 6 + 6 + 1 + 30)
    assert torch.isfinite(more).all()


def test_statistics_of_a_sample_by_hand() -> None:
    found = dict(zip(STATISTICS, states(FOUND, "statistics")[0].tolist(), strict=True))
    assert found["teacher_area"] == pytest.approx(0.5**0.5)
    assert found["teacher_inside"] == pytest.approx(0.9)
    assert found["prior_highest"] == pytest.approx(0.8)
    assert found["teacher_prior_iou"] == pytest.approx(0.5)
    assert found["difference"] == pytest.approx((0.1 + 0.9 + 0.1 + 0.1) / 4)


def test_pixels_are_seen_under_the_candidate_that_was_accepted() -> None:
    found = pixel_states(FOUND, torch.tensor([0, 1, 0]))
    assert found.shape == (3, 1, 4, PIXEL_FEATURES)
    assert found[1, 0, :, 4].tolist() == [0, 0, 1, 1]
    assert found[0, 0, :, 0].tolist() == pytest.approx([0.8] * 4)


def test_the_oracle_takes_the_best_candidate_or_none() -> None:
    actions = Oracle(0.5).decide(FOUND, TRUTH).action_N
    assert [ACTIONS[action] for action in actions] == ["teacher", "prior", "refuse"]


def test_fixed_rules_do_not_look_at_the_truth() -> None:
    for rule in (Threshold(0.6), Agreement(0.4)):
        assert torch.equal(rule.decide(FOUND, TRUTH).action_N, rule.decide(FOUND, 1 - TRUTH).action_N)
    fusion = ACTIONS.index("fusion")
    assert Threshold(0.6).decide(FOUND, TRUTH).action_N.tolist() == [fusion, REFUSE, fusion]
    assert Agreement(0.4).decide(FOUND, TRUTH).action_N.tolist() == [fusion, REFUSE, fusion]


def test_the_best_threshold_refuses_what_loses_and_is_the_lowest_of_equals() -> None:
    confidence, reward = torch.tensor([0.55, 0.65, 0.85]), torch.tensor([-0.3, 0.1, 0.2])
    assert best_threshold(confidence, reward, [0.9, 0.6, 0.5, 0.55]) == (0.55, pytest.approx(0.1))


def test_a_tally_by_hand() -> None:
    tally = Tally()
    decision = Threshold(0.6).decide(FOUND, TRUTH)
    tally.add(FOUND, decision, TRUTH)
    row = tally.row()
    assert (row["pool"], row["accepted"], row["accepted_fusion"], row["accepted_teacher"]) == (3, 2, 2, 0)
    # The first is good (IoU 0.5), the last is not; two samples have a good candidate.
    assert (row["precision"], row["recall"], row["iou"]) == (0.5, 0.5, 0.25)
    # Fusion masks hold 1 and 2 pixels, of which 1 is right; the true masks of what was accepted hold 3.
    assert (row["pixel_precision"], row["pixel_recall"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    assert len(CANDIDATES) == len(ACTIONS) - 1
