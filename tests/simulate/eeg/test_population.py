"""The people of a simulated corpus: what they share, how they differ, and the control where they do not."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from stages.simulate.eeg import cortex, population
from stages.simulate.eeg.options import Design, Emotion, Noise, People, Simulation

SIMULATION = Simulation(seed=3)


def with_emotion(**changes: float) -> Simulation:
    return SIMULATION.model_copy(update={"emotion": Emotion.model_validate(changes)})


def test_a_state_changes_power_by_its_decibels_and_all_states_together_by_none() -> None:
    state_KSB = cortex.state_effects(Emotion(states=4, state_db=5), np.random.default_rng(0))
    np.testing.assert_allclose(state_KSB.mean(axis=0), 0, atol=1e-12)
    assert 10 * np.log10(np.e) * np.sqrt(np.mean(state_KSB**2)) == pytest.approx(5)


@pytest.mark.parametrize(("overlap", "rank"), [(1.0, 2), (0.0, 3)])
def test_states_that_overlap_fully_lie_among_the_differences_of_the_classes(overlap: float, rank: int) -> None:
    state_KSB = cortex.state_effects(Emotion(states=4, state_overlap=overlap), np.random.default_rng(0))
    effect_YSB = cortex.class_effects(Emotion())
    contrast_YF = (effect_YSB - effect_YSB.mean(axis=0)).reshape(3, -1)
    state_KF = state_KSB.reshape(4, -1)
    assert np.linalg.matrix_rank(state_KF) == rank
    outside = state_KF - state_KF @ np.linalg.pinv(contrast_YF) @ contrast_YF
    assert (np.abs(outside).max() < 1e-9) == (overlap == 1)


def test_a_class_of_three_decibels_doubles_the_power_of_its_main_source() -> None:
    effect_YSB = cortex.class_effects(Emotion(class_db=3))
    temporal = cortex.PLACES.index("T7"), list(cortex.BANDS).index("gamma")
    assert np.exp(effect_YSB[2][temporal]) == pytest.approx(10**0.3)
    assert effect_YSB[0][temporal] == 0


def test_uncoupled_states_are_equally_likely_in_all() -> None:
    people = [population.subject(with_emotion(coupling=0, states=4), number) for number in (1, 2)]
    for person in people:
        np.testing.assert_allclose(person.states_YK, 0.25)
    assert not np.array_equal(people[0].mixing_CS, people[1].mixing_CS)


def test_the_law_of_coupled_states_differs_by_subject_and_class() -> None:
    laws = [population.subject(with_emotion(coupling=1), number).states_YK for number in (1, 2)]
    for law_YK in laws:
        np.testing.assert_allclose(law_YK.sum(axis=1), 1)
    assert np.abs(laws[0] - laws[1]).max() > 0.3
    assert np.abs(laws[0][0] - laws[0][2]).max() > 0.1


def test_under_the_null_control_all_subjects_are_one() -> None:
    control = SIMULATION.model_copy(update={"null_control": True})
    first, second = (population.subject(control, number) for number in (1, 2))
    np.testing.assert_array_equal(first.mixing_CS, second.mixing_CS)
    np.testing.assert_array_equal(first.power_YSB, second.power_YSB)
    np.testing.assert_array_equal(first.states_YK, np.full((3, 3), 1 / 3))
    assert (first.alpha_peak, first.gain) == (second.alpha_peak, second.gain) == (10.0, 1.0)
    np.testing.assert_array_equal(population.session(control, first, 1).gain_C, np.ones(62))


def test_more_subjects_or_sessions_leave_the_first_ones_as_they_were() -> None:
    more = SIMULATION.model_copy(update={"design": Design(subjects=20, sessions=3)})
    small, large = (population.subject(simulation, 3) for simulation in (SIMULATION, more))
    np.testing.assert_array_equal(small.mixing_CS, large.mixing_CS)
    one, other = (population.session(simulation, small, 1) for simulation in (SIMULATION, more))
    np.testing.assert_array_equal(one.power_RSB, other.power_RSB)
    assert not np.array_equal(one.power_RSB, population.session(more, small, 2).power_RSB)


def test_every_class_is_a_third_of_the_trials() -> None:
    label_R = population.labels(SIMULATION)
    assert np.unique(label_R, return_counts=True)[1].tolist() == [5, 5, 5]
    np.testing.assert_array_equal(population.session(SIMULATION, population.subject(SIMULATION, 2), 1).label_R, label_R)


def test_no_two_subjects_share_their_initials() -> None:
    assert len({population.initials(number) for number in range(1, 100)}) == 99


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ({"trials": 10}, "a multiple of 3"),
        ({"seconds": [14, 11]}, r"expected \[shortest, longest\]"),
        ({"seconds": [1, 2]}, "4 ≤ shortest"),
        ({"subjects": 1}, "greater than or equal to 2"),
    ],
)
def test_a_design_that_cannot_be(block: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Design.model_validate(block)


def test_the_control_keeps_noise_and_classes() -> None:
    options = Simulation(seed=0, null_control=True, noise=Noise(line_hz=60), emotion=Emotion(class_db=2)).applied()
    assert (options.noise.line_hz, options.emotion.class_db, options.people.power_db) == (60, 2, 0)
    assert options.people != People()
