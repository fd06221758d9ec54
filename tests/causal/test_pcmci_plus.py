"""PCMCI+ orients colliders, keeps assumptions, is the same in any order, and returns what tigramite returned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from contemporaneous import OneByOne, random_case, random_system
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.causal.assumptions import LinkAssumptions
from stages.causal.errors import CausalDataError, ConstantVariable, TooFewSamples
from stages.causal.links import confidence_bounds, link_graph, link_q_values, link_table, marked_graph
from stages.causal.pcmci import run_pcmci
from stages.causal.pcmci_plus import pcmci_plus_on, run_pcmci_plus
from stages.causal.samples import lagged_sample

REFERENCE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "pcmci_plus_reference.json").read_text())


def collider(steps: int = 1000) -> np.ndarray:
    """X0 -> X2 <- X1 and X2 -> X3, all at lag 0, and own lags."""
    data_TN = np.random.default_rng(0).standard_normal((steps, 4))
    for t in range(steps):
        if t:
            data_TN[t] += 0.5 * data_TN[t - 1]
        data_TN[t, 2] += 0.6 * data_TN[t, 0] + 0.6 * data_TN[t, 1]
        data_TN[t, 3] += 0.6 * data_TN[t, 2]
    return data_TN


@pytest.mark.parametrize("name", REFERENCE)
def test_equals_the_numbers_of_tigramite(name: str) -> None:
    case = REFERENCE[name]
    options = dict(case["options"])
    links = options.pop("assumptions", None)
    assumptions = None if links is None else LinkAssumptions(**{k: [tuple(x) for x in v] for k, v in links.items()})
    result = run_pcmci_plus(np.array(case["data"], dtype=float), assumptions=assumptions, **options)
    np.testing.assert_array_equal(result.graph_NNL, case["graph"])
    assert [list(triple) for triple in result.ambiguous] == case["ambiguous"]
    free_NNL = ~result.required_NNL
    np.testing.assert_allclose(result.p_NNL[free_NNL], np.array(case["p"])[free_NNL], rtol=0, atol=1e-11)
    free_NNL[:, :, 0] &= result.graph_NNL[:, :, 0] != ""
    np.testing.assert_allclose(result.value_NNL[free_NNL], np.array(case["value"])[free_NNL], rtol=0, atol=1e-11)


@pytest.mark.parametrize("rule", ["conservative", "majority"])
def test_a_collider_and_what_follows_it_are_oriented(rule: Any) -> None:
    result = run_pcmci_plus(collider(), tau_max=1, pc_alpha=0.001, collider_rule=rule)
    assert np.argwhere(result.graph_NNL[:, :, 0] == "-->").tolist() == [[0, 2], [1, 2], [2, 3]]
    assert np.argwhere(result.graph_NNL[:, :, 1] == "-->").tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert result.separating[0, 0, 3] == (2,)
    assert result.separating[0, 0, 1] == ()


def test_one_link_without_a_past_has_no_direction() -> None:
    data_TN = np.random.default_rng(0).standard_normal((500, 2))
    data_TN[:, 1] += data_TN[:, 0]
    result = run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0.001)
    assert result.graph_NNL[0, 1, 0] == result.graph_NNL[1, 0, 0] == "o-o"
    # The correlation is 1 / sqrt(2).
    assert result.value_NNL[0, 1, 0] == pytest.approx(np.sqrt(0.5), abs=0.05)


def test_not_oriented_on_request() -> None:
    result = run_pcmci_plus(collider(), tau_max=1, pc_alpha=0.001, orient=False)
    assert set(result.graph_NNL[:, :, 0].ravel().tolist()) == {"", "o-o"}
    assert result.ambiguous == ()


def same(ours: Any, other: Any) -> None:
    np.testing.assert_array_equal(ours.graph_NNL, other.graph_NNL)
    np.testing.assert_allclose(ours.value_NNL, other.value_NNL, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.p_NNL, other.p_NNL, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(ours.samples_NNL, other.samples_NNL)
    np.testing.assert_array_equal(ours.df_NNL, other.df_NNL)
    assert ours.parents == other.parents
    assert ours.separating == other.separating
    assert ours.ambiguous == other.ambiguous


@pytest.mark.parametrize("seed", range(100, 124))
def test_the_compiled_search_equals_that_with_any_test(seed: int) -> None:
    data_TN, options = random_case(seed)
    names = ("tau_max", "test", "mask_TN")
    sample = lagged_sample(data_TN, **{name: options.pop(name) for name in names if name in options})
    rng = np.random.default_rng(seed)
    n, tau_max = data_TN.shape[1], sample.tau_max
    if rng.random() < 0.3:
        drawn_NNL = rng.random((n, n, tau_max + 1)) < 0.2
        drawn_NNL[:, :, : max(1, options["tau_min"])] = False
        options["lagged_conditions"] = [np.argwhere(drawn_NNL[:, j]).tolist() for j in range(n)]
    try:
        compiled = pcmci_plus_on(sample, **options)
    except CausalDataError as error:
        with pytest.raises(type(error)):
            pcmci_plus_on(OneByOne(sample), **options)
        return
    same(compiled, pcmci_plus_on(OneByOne(sample), **options))


@settings(max_examples=15, deadline=None)
@given(st.permutations(range(5)), st.integers(0, 10**6), st.sampled_from(["majority", "conservative"]), st.booleans())
def test_relabelling_the_variables_relabels_the_graph(order: list[int], seed: int, rule: Any, gaps: bool) -> None:
    rng = np.random.default_rng(seed)
    data_TN = random_system(rng, steps=150, variables=5)
    if gaps:
        data_TN[rng.random(data_TN.shape) < 0.03] = np.nan
    plain = run_pcmci_plus(data_TN, tau_max=2, pc_alpha=0.1, collider_rule=rule)
    moved = run_pcmci_plus(data_TN[:, order], tau_max=2, pc_alpha=0.1, collider_rule=rule)
    np.testing.assert_array_equal(moved.graph_NNL, plain.graph_NNL[np.ix_(order, order)])
    # Of pairs that are not adjacent at lag 0, either of two separating tests of one pass may be reported.
    linked_NNL = moved.graph_NNL != ""
    linked_NNL[:, :, 1:] = True
    for name in ("value_NNL", "p_NNL", "samples_NNL"):
        expected_NNL = getattr(plain, name)[np.ix_(order, order)]
        np.testing.assert_allclose(getattr(moved, name)[linked_NNL], expected_NNL[linked_NNL], rtol=0, atol=1e-10)


def test_the_selected_parents_are_those_of_pcmci() -> None:
    data_TN = random_system(np.random.default_rng(2), steps=200, variables=5)
    plus = run_pcmci_plus(data_TN, tau_max=3, pc_alpha=0.1)
    assert plus.parents == run_pcmci(data_TN, tau_max=3, pc_alpha=0.1).parents


def test_given_conditions_replace_the_selection() -> None:
    sample = lagged_sample(random_system(np.random.default_rng(3), steps=200, variables=4), tau_max=2)
    selected = pcmci_plus_on(sample, pc_alpha=0.1)
    again = pcmci_plus_on(sample, pc_alpha=0.1, lagged_conditions=selected.parents)
    np.testing.assert_array_equal(again.graph_NNL, selected.graph_NNL)
    linked_NNL = selected.graph_NNL != ""
    np.testing.assert_array_equal(again.p_NNL[linked_NNL], selected.p_NNL[linked_NNL])
    none = pcmci_plus_on(sample, pc_alpha=0.1, lagged_conditions=[[]] * 4)
    assert not none.tested_NNL[:, :, 1:].any()
    with pytest.raises(ValueError, match=r"lagged_conditions of X1: \(0, 3\) is no variable and lag 1 to 2"):
        pcmci_plus_on(sample, pc_alpha=0.1, lagged_conditions=[[], [(0, 3)], [], []])


def test_assumptions_hold_whatever_the_data_say() -> None:
    links = LinkAssumptions(
        forbidden=[("X0", "X2", 0), ("X3", "X3", 1)],
        required=[("X0", "X3", 0), ("X1", "X0", 2)],
        oriented=[("X3", "X2", 0), ("X0", "X3", 0)],
    )
    result = run_pcmci_plus(collider(), tau_max=2, pc_alpha=0.001, assumptions=links)
    assert result.graph_NNL[0, 2, 0] == result.graph_NNL[3, 3, 1] == ""
    assert not result.tested_NNL[0, 2, 0]
    assert result.graph_NNL[0, 3, 0] == result.graph_NNL[1, 0, 2] == "-->"
    assert result.graph_NNL[3, 2, 0] == "-->"
    # The required link that the data do not show is in the graph with its own p-value, and stays at any level.
    assert result.p_NNL[1, 0, 2] > 0.001
    assert link_graph(result, alpha=1e-12, corrected=True)[1, 0, 2]


def test_contradicting_assumptions_are_an_error() -> None:
    links = LinkAssumptions(forbidden=[(0, 1, 1)], required=[(0, 1, 1)])
    with pytest.raises(ValueError, match=r"X0\(t-1\) -> X1\(t\) is forbidden too"):
        run_pcmci_plus(collider(100), tau_max=1, pc_alpha=0.1, assumptions=links)


def test_tables_intervals_and_corrected_graphs() -> None:
    result = run_pcmci_plus(collider(), tau_max=1, pc_alpha=0.05, names=["P", "SW_IN", "SWC", "LE"])
    table = link_table(result)
    row = table.filter((table["source"] == "SWC") & (table["target"] == "LE") & (table["lag"] == 0)).row(0, named=True)
    assert row["mark"] == "-->"
    assert row["low"] < row["value"] < row["high"]
    assert table.filter((table["source"] == "P") & (table["target"] == "SW_IN"))["mark"].to_list() == ["", ""]
    low_NNL, high_NNL = confidence_bounds(result, level=0.9)
    tested_NNL = result.tested_NNL
    assert (low_NNL <= high_NNL)[tested_NNL].all()
    q_NNL = link_q_values(result)
    marked_NNL = marked_graph(result, alpha=0.01, corrected=True)
    np.testing.assert_array_equal(marked_NNL != "", (result.graph_NNL != "") & (q_NNL <= 0.01))
    np.testing.assert_array_equal(marked_NNL[marked_NNL != ""], result.graph_NNL[marked_NNL != ""])


def test_without_lags_it_is_the_pc_algorithm() -> None:
    data_TN = np.random.default_rng(0).standard_normal((800, 3))
    data_TN[:, 2] += data_TN[:, 0] + data_TN[:, 1]
    result = run_pcmci_plus(data_TN, tau_max=0, pc_alpha=0.001)
    assert np.argwhere(result.graph_NNL[:, :, 0] == "-->").tolist() == [[0, 2], [1, 2]]


def test_without_lag_0_every_link_is_an_arrow() -> None:
    result = run_pcmci_plus(collider(), tau_max=2, pc_alpha=0.05, tau_min=1)
    assert set(result.graph_NNL.ravel().tolist()) == {"", "-->"}
    assert not result.tested_NNL[:, :, 0].any()


def test_wrong_settings_and_data_are_named() -> None:
    data_TN = collider(100)
    with pytest.raises(ValueError, match="pc_alpha 0"):
        run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0)
    with pytest.raises(ValueError, match="expected one of none, conservative, majority"):
        run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0.1, collider_rule="half")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_conds_dim -1"):
        run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0.1, max_conds_dim=-1)
    with pytest.raises(TooFewSamples, match="with 1 conditions needs 4"):
        run_pcmci_plus(data_TN[:5], tau_max=1, pc_alpha=1.0)
    data_TN[:, 1] = np.nan
    with pytest.raises(CausalDataError, match="X1 has no value at all"):
        run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0.1)
    data_TN[:, 1] = 3.0
    with pytest.raises(ConstantVariable, match="X1 is constant"):
        run_pcmci_plus(data_TN, tau_max=1, pc_alpha=0.1)
