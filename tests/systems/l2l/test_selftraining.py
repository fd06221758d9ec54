"""Self-training: refusing all is supervised training, accepting all plain self-training, decay 1 a frozen teacher."""

from pathlib import Path

import numpy as np
import pytest
import torch

from stages.errors import UsageError
from stages.runtime import random_numbers
from stages.systems.l2l import checkpoints
from stages.systems.l2l.fitting import Budget, Fitted, Judge, dice_loss, fit, follow, rate, weighted_loss
from stages.systems.l2l.model import L2l, initialise
from stages.systems.l2l.policy import REFUSE
from stages.systems.l2l.priors import no_priors
from stages.systems.l2l.proposals import propose
from stages.systems.l2l.selection import TEACHER, Fixed, Oracle, Rule, Threshold
from stages.systems.l2l.selftraining import SelfTrained, Supervised
from stages.systems.l2l.settings import Base
from stages.systems.l2l.study import Study, parts_of
from stages.systems.l2l.views import relabelled, strong
from tests.systems.l2l.small import SETTINGS, SIDE, made, study

SELF = SETTINGS.self_training
STEPS = SELF.rounds * SELF.steps


def network(of: Study) -> L2l:
    found = L2l(of.train.network, len(of.pictures.vocabulary), "maps")
    initialise(found, np.random.default_rng(0))
    return found


def self_trained(of: Study, rule: Rule) -> SelfTrained:
    parts = of.parts
    return SelfTrained(
        of._loaded[True], parts.labelled, parts.unlabelled, SELF, SETTINGS.views, 0, rule, SETTINGS.fusion, 6
    )


def supervised(of: Study) -> Supervised:
    return Supervised(of._loaded[True], of.parts.labelled, SELF.labelled, STEPS, SETTINGS.views, 0)


def fitted(of: Study, source: SelfTrained | Supervised, *, decay: float = 0.9, file: Path | None = None) -> Fitted:
    judge = Judge(of._loaded[True], of.parts.validation, 0.0)
    return fit(network(of), source, judge, Budget(STEPS, SELF.steps, 0.005, decay, False), SETTINGS.optimiser, file)


def same(first: Fitted, second: Fitted) -> bool:
    return all(torch.equal(first.weights[name], second.weights[name]) for name in first.weights)


def test_refusing_all_gives_the_numbers_of_supervised_training() -> None:
    of = study()
    plain, refused = fitted(of, supervised(of)), fitted(of, self_trained(of, Fixed(REFUSE)))
    assert same(plain, refused)
    assert plain.history == refused.history
    assert [row["accepted"] for row in refused.rounds] == [0, 0]


def test_accepting_all_is_plain_self_training_on_the_teachers_masks() -> None:
    of = study()
    source = self_trained(of, Fixed(TEACHER))
    teacher = network(of)
    rows = source.begin(0, teacher)
    (_, _), (batch, divisor) = source.batches(0)
    assert divisor == SELF.unlabelled / SELF.weight
    # Written out by hand: the teacher's masks of the same sentences, in the same strong views.
    mine = source._order[: SELF.unlabelled]
    plain = of._loaded[True].batch(mine)
    found = propose(teacher, plain, torch.ones(len(mine)), 0.5, 0, two_views=False)
    labelled = relabelled(plain, found.masks[0], torch.ones_like(plain.mask_BHW))
    expected = strong(labelled, SETTINGS.views, random_numbers(0, "unlabelled", "0"))
    torch.testing.assert_close(batch.mask_BHW, expected.mask_BHW)
    torch.testing.assert_close(batch.image_BCHW, expected.image_BCHW)
    assert rows[0]["accepted"] == rows[0]["pool"] == SELF.steps * SELF.unlabelled


def test_a_frozen_teacher_stays_as_it_is() -> None:
    of = study()
    teacher, student = network(of), network(of)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    with torch.no_grad():
        for weight in student.parameters():
            weight.add_(1)
    follow(teacher, student, 1.0)
    assert all(torch.equal(before[name], value) for name, value in teacher.state_dict().items())
    follow(teacher, student, 0.0)
    torch.testing.assert_close(teacher.state_dict(), student.state_dict())


def test_with_a_frozen_teacher_every_round_has_the_same_pseudo_labels() -> None:
    of = study()
    source = self_trained(of, Fixed(TEACHER))
    masks = []
    begin = source.begin
    first = {name: value.clone() for name, value in network(of).state_dict().items()}

    def noted(step: int, teacher: L2l) -> list[dict[str, object]]:
        masks.append(all(torch.equal(first[name], value) for name, value in teacher.state_dict().items()))
        return begin(step, teacher)

    source.begin = noted  # type: ignore[method-assign]
    fitted(of, source, decay=1.0)
    assert masks == [True, True]


def test_a_killed_fit_goes_on_to_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    of, file = study(), tmp_path / "kept.safetensors"
    whole = fitted(of, self_trained(of, Fixed(TEACHER)))
    source = self_trained(of, Fixed(TEACHER))
    batches = source.batches

    def killed(step: int) -> list[tuple[object, float]]:
        if step == SELF.steps + 1:
            raise KeyboardInterrupt
        return batches(step)  # type: ignore[return-value]

    source.batches = killed  # type: ignore[method-assign, assignment]
    with pytest.raises(KeyboardInterrupt):
        fitted(of, source, file=file)
    kept = checkpoints.load(file)
    assert kept is not None
    assert kept.progress["step"] == SELF.steps
    resumed = fitted(of, self_trained(of, Fixed(TEACHER)), file=file)
    assert same(whole, resumed)
    assert (whole.history, whole.rounds) == (resumed.history, resumed.rounds)


def test_a_checkpoint_of_other_priors_is_not_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    base, nothing = Base("maps", True), no_priors(len(made().sentence_S), SIDE)
    study(scratch=tmp_path)._burn_in(base)
    assert same(study(priors=nothing)._burn_in(base), study(scratch=tmp_path, priors=nothing)._burn_in(base))


def test_an_arms_views_do_not_depend_on_what_it_accepts() -> None:
    of = study()
    images = []
    for rule in (Fixed(TEACHER), Oracle(0.0)):
        source = self_trained(of, rule)
        source.begin(0, network(of))
        images.append(source.batches(0)[1][0].image_BCHW)
    assert any(torch.equal(images[0][k], images[1][0]) for k in range(len(images[0])))


def test_a_threshold_of_1_refuses_all() -> None:
    of = study()
    rows = self_trained(of, Threshold(1.0)).begin(0, network(of))
    assert rows[0]["accepted"] == 0
    assert rows[0]["precision"] is None


def test_the_oracle_accepts_a_perfect_prior_of_every_sample() -> None:
    of = study()
    row = self_trained(of, Oracle(0.5)).begin(0, network(of))[0]
    assert row["accepted"] == row["pool"]
    assert (row["precision"], row["recall"], row["iou"], row["pixel_precision"]) == (1, 1, 1, 1)


def test_labels_are_drawn_by_image_and_no_other_mask_is_labelled() -> None:
    of = study()
    image_S = of.accepted.image_O[of.accepted.object_S]
    labelled, unlabelled = set(image_S[of.parts.labelled]), set(image_S[of.parts.unlabelled])
    assert not labelled & unlabelled
    assert labelled == set(np.flatnonzero(of.accepted.labelled(0.5, 0)))
    assert set(of.parts.predicted) == {"validation", "testA", "testB"}


def test_the_halves_share_no_image_and_are_rewarded_on_the_other() -> None:
    of = study()
    first, second = of._halves(Base("maps", True))
    image_S = of.accepted.image_O[of.accepted.object_S]
    assert not set(image_S[first.sentence_S]) & set(image_S[second.sentence_S])
    assert sorted([*first.sentence_S, *second.sentence_S]) == of.parts.labelled.tolist()


def test_a_share_that_labels_one_image_is_refused() -> None:
    accepted = made()
    accepted._labelled.replace_column(4, accepted._labelled["image_id"].eq(100).alias("labelled"))
    with pytest.raises(UsageError, match=r"A share of 0\.5 of the training images of made labels 1 of 8"):
        parts_of(accepted, 0.5, 0, 4)


def test_the_rate_rises_and_falls_to_a_twentieth() -> None:
    budget = Budget(100, 10, 1.0, 0.9, False)
    found = [rate(step, budget, 10) for step in range(101)]
    assert found[:10] == sorted(found[:10])
    assert found[10] == 1
    assert found[100] == pytest.approx(0.05)


def test_losses_of_a_right_and_sure_answer_are_none_and_pixels_without_weight_do_not_count() -> None:
    mask = torch.tensor([[[1.0, 0.0], [1.0, 0.0]]])
    sure = 40 * (2 * mask - 1)
    ones = torch.ones_like(mask)
    assert weighted_loss(sure, mask, ones).item() == pytest.approx(0, abs=1e-6)
    assert dice_loss(sure, mask, ones).item() == pytest.approx(0, abs=1e-6)
    wrong = sure.clone()
    wrong[0, 0, 0] = -40
    without = ones.clone()
    without[0, 0, 0] = 0
    assert weighted_loss(wrong, mask, ones).item() == pytest.approx(10)
    assert weighted_loss(wrong, mask, without).item() == pytest.approx(0, abs=1e-6)
    assert dice_loss(wrong, mask, without).item() == pytest.approx(0, abs=1e-6)
