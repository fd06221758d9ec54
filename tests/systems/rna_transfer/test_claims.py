"""When a claim counts as shown."""

from __future__ import annotations

import math

import pytest

from stages.systems.rna_transfer import claims
from stages.systems.rna_transfer.claims import alignment, benefits, capacity, faster, flatter, frozen, headline, reuse
from stages.systems.rna_transfer.comparisons import Comparison
from stages.systems.rna_transfer.settings import Run
from tests.systems.rna_transfer.answered import FAMILY_COUNT, MEMBERS, comparison, optimisation, quality
from tests.systems.rna_transfer.small import settings


def test_the_headline_names_the_best_baseline_without_pre_training_and_folding_beside_it() -> None:
    said = headline(comparison(quality(base_pairs={"fine_tuned": 0.7, "one_hot": 0.6, "frozen": 0.9, "mfe": 0.8})))
    assert said.metric.startswith("F1, mean over molecules of new families: base pairs")
    assert said.value == pytest.approx(0.7, abs=0.02)
    assert said.baseline_value == pytest.approx(0.6, abs=0.02)
    assert "one-hot" in said.baseline
    assert "ViennaRNA, no training has 0.8" in said.baseline
    assert (said.records, said.groups, said.seeds, said.simulated) == (FAMILY_COUNT * MEMBERS, FAMILY_COUNT, 2, True)
    assert said.split_unit == "family and 80 % sequence identity"
    assert said.low is not None
    assert said.high is not None
    assert said.low < said.value < said.high  # type: ignore[operator]


def test_equal_arms_show_nothing() -> None:
    found = comparison(quality())
    verdicts = {claim.claim: claim.verdict for claim in claims.claims(found, optimisation())}
    assert "shown" not in verdicts.values()
    assert benefits(found).verdict == "not shown"
    assert reuse(found).verdict == "not tested"  # nothing to be kept
    assert "No task has a benefit" in reuse(found).evidence


def test_a_benefit_of_fine_tuning_is_shown_with_its_size() -> None:
    said = benefits(comparison(quality(base_pairs={"fine_tuned": 0.8})))
    assert said.verdict == "shown"
    assert "+0.3" in said.evidence


def test_frozen_features_fail_in_general_where_they_fail_in_one_task() -> None:
    worse = quality(base_pairs={"frozen": 0.9}, rna_type={"frozen": 0.2})
    assert frozen(comparison(worse)).verdict == "shown"
    assert frozen(comparison(quality(base_pairs={"frozen": 0.9}))).verdict == "not shown"
    assert "8 comparisons together" in frozen(comparison(worse)).evidence


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"), [(0.5, 0.5, "shown"), (0.9, 0.5, "not shown"), (0.8, 0.9, "shown")]
)
def test_reuse_is_hierarchical_where_the_lower_layers_keep_the_benefit(
    lower: float, upper: float, verdict: str
) -> None:
    made = quality(base_pairs={"fine_tuned": 0.9, "lower": lower, "upper": upper})
    assert reuse(comparison(made)).verdict == verdict


def test_alignment_needs_a_misaligned_task_that_can_be_learnt() -> None:
    gain = {"fine_tuned": 0.9}
    assert alignment(comparison(quality(base_pairs=gain, paired=gain))).verdict == "shown"
    everywhere = quality(base_pairs=gain, paired=gain, gc_shuffled={"fine_tuned": 0.95})
    assert alignment(comparison(everywhere)).verdict == "not shown"
    hard = alignment(comparison(quality(base_pairs=gain, paired=gain, gc_shuffled={"random": 0.0})))
    assert hard.verdict == "not tested"
    assert "does not learn" in hard.evidence
    without = settings(tasks=["base_pairs", "paired"], geometry={"tasks": ["base_pairs"]})
    assert alignment(comparison(quality(base_pairs=gain), train=without)).verdict == "not tested"


def sizes() -> dict[str, dict[str, object]]:
    size = {"layers": 2, "heads": 2, "tokens": [600]}
    return {"large": size | {"width": 32}, "small": size | {"width": 16}}


def test_capacity_compares_the_largest_with_the_smallest_whatever_their_order() -> None:
    train = settings(sizes={"small": sizes()["small"], "large": sizes()["large"]}, geometry={"tasks": ["base_pairs"]})
    better = {("large", "fine_tuned"): 0.9, ("small", "fine_tuned"): 0.55}
    said = capacity(comparison(quality(), by_size=better, train=train))
    assert said.verdict == "shown"
    assert said.evidence.index("small (256 weights)") < said.evidence.index("large (1024 weights)")
    worse = {("large", "fine_tuned"): 0.5, ("small", "fine_tuned"): 0.9}
    assert capacity(comparison(quality(), by_size=worse, train=train)).verdict == "not shown"
    assert capacity(comparison(quality())).verdict == "not tested"


def test_flatter_means_a_smaller_eigenvalue_in_every_seed_at_the_same_loss() -> None:
    found = comparison(quality())
    low = flatter(found, optimisation(sharpness={"random": [8.0, 10.0], "fine_tuned": [4.0, 5.1]}))
    assert low.verdict == "shown"
    assert "0.505" in low.evidence
    mixed = flatter(found, optimisation(sharpness={"random": [8.0, 10.0], "fine_tuned": [4.0, 11.0]}))
    assert mixed.verdict == "not shown"
    assert flatter(found, optimisation(sharpness={"random": [8.0, 10.0]})).verdict == "not tested"
    nowhere = comparison(quality(), train=settings(geometry={"tasks": []}))
    assert "not measured" in flatter(nowhere, optimisation()).evidence


def test_convergence_is_measured_against_the_level_of_the_random_arm() -> None:
    found = comparison(quality())
    slow, quick = [0.0, 0.1, 0.3, 0.45, 0.5], [0.0, 0.46, 0.46, 0.46, 0.46]
    said = faster(found, optimisation({"random": slow, "fine_tuned": quick}))
    assert said.verdict == "shown"
    assert "-66.7" in said.evidence  # 10 updates instead of 30
    assert faster(found, optimisation({"random": quick, "fine_tuned": slow})).verdict == "not shown"
    never = faster(found, optimisation({"random": slow, "fine_tuned": [0.4] * 5}))
    assert never.verdict == "not shown"
    assert "never reached in 2 of 2 seeds" in never.evidence
    still = faster(found, optimisation({"random": [0.0] * 5, "fine_tuned": quick}))
    assert still.verdict == "not tested"


def test_one_simple_baseline_that_is_better_is_enough() -> None:
    made = quality(
        base_pairs={"fine_tuned": 0.9, "mfe": 0.95}, paired={"fine_tuned": 0.9}, rna_type={"fine_tuned": 0.9},
        gc_shuffled={"fine_tuned": 0.9},
    )  # fmt: skip
    assert claims.simple_baselines(comparison(made)).verdict == "not shown"
    made["base_pairs"]["mfe"] = 0.5
    assert claims.simple_baselines(comparison(made)).verdict == "shown"


def test_figures_are_flat_and_without_nan() -> None:
    figures = claims.figures(comparison(quality()))
    assert figures["benefit"]["base_pairs"] == 0
    assert "mfe" not in figures["score"]["rna_type"]
    assert all(
        value is None or math.isfinite(value) for scores in figures["score"].values() for value in scores.values()
    )


def test_a_run_that_was_not_trained_has_no_score() -> None:
    found: Comparison = comparison(quality())
    assert math.isnan(found.value("base_pairs", Run("huge", 5, "fine_tuned")))
    assert math.isnan(found.estimate("base_pairs", Run("huge", 5, "fine_tuned")).low)
