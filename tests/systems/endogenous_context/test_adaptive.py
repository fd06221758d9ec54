"""Algorithms A and B: what they find with endless data (d-separation), and on simulated series."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pytest

from stages.causal.errors import ConstantVariable, TooFewSamples
from stages.causal.independence import Cell, IndependenceTest
from stages.causal.oracle import ContextOracle
from stages.causal.partial_correlation import TestResult
from stages.causal.pcmci_plus import PCMCIPlusResult, pcmci_plus_on, run_pcmci_plus
from stages.systems.endogenous_context.adaptive import (
    RULES,
    combined_context,
    discover,
    search_context,
)
from stages.systems.endogenous_context.context_links import ContextLinks
from stages.systems.endogenous_context.models import (
    ContextModel,
    collider_example,
    proxy_example,
    random_context_model,
)

SEARCH = {"tau_max": 2, "pc_alpha": 0.05}
X, Y, Z, W = range(4)


class SystemOracle:
    """d-separation among the variables of the system, the context left out of pairs and conditions."""

    def __init__(self, oracle: IndependenceTest) -> None:
        self.oracle = oracle
        self.names, self.tau_max = oracle.names[:-1], oracle.tau_max

    def measure(self, x: Cell, y: Cell, conditions: Sequence[Cell]) -> TestResult:
        return self.oracle.measure(x, y, conditions)


def adjacencies(model: ContextModel) -> np.ndarray:
    graph_MNNL = model.graphs.copy()
    graph_MNNL[:, :, :, 0] |= graph_MNNL[:, :, :, 0].swapaxes(1, 2)
    return graph_MNNL


def context_oracle(model: ContextModel) -> ContextOracle:
    return ContextOracle(
        list(model.full_graphs()), context=len(model.names), names=(*model.names, "R"), tau_max=model.tau_max
    )


def found_by_oracle(
    model: ContextModel, rule: str = "windows", inside: Collection[int] | None = None
) -> list[PCMCIPlusResult]:
    """The graph of each context with endless data."""
    oracle = context_oracle(model)
    pooled = pcmci_plus_on(SystemOracle(oracle), pc_alpha=0.05, orient=False)
    graphs = []
    for level in range(2):
        tests = {
            "pooled": SystemOracle(oracle),
            "now": SystemOracle(oracle.within(level)),
            "past": SystemOracle(oracle.within(level, window=range(1, model.tau_max + 1))),
        }
        at_context = None if inside is None else ContextLinks((), frozenset(inside))
        graphs.append(search_context(pooled, tests, RULES[rule], at_context, {"pc_alpha": 0.05}))
    return graphs


def adjacent_to_context(model: ContextModel) -> set[int]:
    full_NNL = model.full_graphs().any(axis=0)
    return {i for i in range(len(model.names)) if full_NNL[i, -1].any() or full_NNL[-1, i].any()}


@pytest.mark.parametrize("kind", ["A", "B"])
@pytest.mark.parametrize("part", range(4))
def test_with_endless_data_the_graph_of_each_context_is_the_true_one(kind: str, part: int) -> None:
    for repeat in range(50 * part, 50 * (part + 1)):
        model = random_context_model(
            np.random.default_rng(repeat),
            variables=4 + repeat % 4,
            persistence=0.5,
            changed=1 + repeat % 2,
            density=0.3,
        )
        inside = adjacent_to_context(model) if kind == "B" else None
        for graph, truth_NNL in zip(found_by_oracle(model, inside=inside), adjacencies(model), strict=True):
            np.testing.assert_array_equal(graph.graph_NNL != "", truth_NNL)


def test_contemporaneous_arrows_of_endless_data_point_as_in_the_model() -> None:
    right = oriented = 0
    for repeat in range(40):
        model = random_context_model(np.random.default_rng(repeat), variables=6, persistence=0.5, density=0.3)
        for graph, truth_NNL in zip(found_by_oracle(model), model.graphs, strict=True):
            arrows_NN = graph.graph_NNL[:, :, 0] == "-->"
            oriented += int(arrows_NN.sum())
            right += int((arrows_NN & truth_NNL[:, :, 0]).sum())
    assert right == oriented > 20


def test_masking_joins_the_causes_of_the_context_and_pooling_hides_whose_the_link_is() -> None:
    model = collider_example(0.5)
    oracle = context_oracle(model)
    masked = pcmci_plus_on(SystemOracle(oracle.within(0, window=[0])), pc_alpha=0.05).graph_NNL
    pooled = pcmci_plus_on(SystemOracle(oracle), pc_alpha=0.05).graph_NNL
    assert masked[X, Y, 0] != ""
    assert masked[Z, W, 1] == ""
    assert pooled[X, Y, 0] == ""
    assert pooled[Z, W, 1] == "-->"
    zero, one = (graph.graph_NNL for graph in found_by_oracle(model))
    assert zero[X, Y, 0] == one[X, Y, 0] == ""
    assert zero[Z, W, 1] == ""
    assert one[Z, W, 1] == "-->"


def driven_target() -> ContextModel:
    """X_{t-1} -> R_t <- Y_t, and X_{t-2} -> Y_t ... X_{t-1} -> Y_t in one context only."""
    coefficient_MNNL = np.zeros((2, 2, 2, 3))
    coefficient_MNNL[:, range(2), range(2), 1] = 0.3
    coefficient_MNNL[1, 0, 1, 1] = 0.5
    switch_NN = np.full((2, 2), -1)
    switch_NN[0, 1] = 1
    drive_NL = np.zeros((2, 3))
    drive_NL[0, 1] = drive_NL[1, 0] = 1.0
    return ContextModel(("X", "Y"), coefficient_MNNL, switch_NN, drive_NL, 0.0)


def test_a_target_that_drives_the_context_misleads_the_pooled_rule_and_not_the_windows() -> None:
    """The first known limit of the predecessor's rule."""
    model = driven_target()
    assert found_by_oracle(model, rule="pooled and now")[0].graph_NNL[0, 1, 1] == "-->"
    assert found_by_oracle(model)[0].graph_NNL[0, 1, 1] == ""
    assert found_by_oracle(model)[1].graph_NNL[0, 1, 1] == "-->"
    kept = {"windows": 0, "pooled and now": 0}
    for repeat in range(20):
        data_TN, context_T = model.simulate(np.random.default_rng(repeat), 800)
        for rule in kept:
            found = discover(data_TN, context_T, algorithm="A", rule=rule, **SEARCH)
            kept[rule] += found.graphs["0"].graph_NNL[0, 1, 1] != ""
    assert kept["windows"] <= 3 < 15 <= kept["pooled and now"]


def test_a_link_that_changes_its_sign_is_lost_by_pooling_and_found_by_the_windows() -> None:
    """The second known limit: with equal occupancy the two effects cancel in pooled data."""
    found_share = {"windows": 0.0, "pooled and now": 0.0}
    repeats = 20
    for repeat in range(repeats):
        rng = np.random.default_rng(repeat)
        model = collider_example(0.5)
        coefficient_MNNL = model.coefficient_MNNL.copy()
        coefficient_MNNL[0, Z, W, 1] = -0.5
        flipped = ContextModel(model.names, coefficient_MNNL, model.switch_NN, model.drive_NL, 0.5)
        data_TN, context_T = flipped.simulate(rng, 800)
        for rule in found_share:
            found = discover(data_TN, context_T, algorithm="A", rule=rule, **SEARCH)
            links = [graph.graph_NNL[Z, W, 1] != "" for graph in found.graphs.values()]
            found_share[rule] += np.mean(links) / repeats
    assert found_share["windows"] > 0.9
    assert found_share["pooled and now"] < 0.3


@pytest.mark.parametrize("algorithm", ["A", "masked", "intersection", "pooled"])
def test_a_context_that_never_changes_gives_the_graph_of_pcmci_plus(algorithm: str) -> None:
    model = random_context_model(np.random.default_rng(3), variables=5, persistence=0.5)
    data_TN, _ = model.simulate(np.random.default_rng(4), 400)
    plain = run_pcmci_plus(data_TN, **SEARCH)
    found = discover(data_TN, np.zeros(400, np.int64), algorithm=algorithm, **SEARCH)
    graph = found.graphs["0"]
    np.testing.assert_array_equal(graph.graph_NNL, plain.graph_NNL)
    np.testing.assert_allclose(graph.p_NNL, plain.p_NNL, rtol=0, atol=1e-12)
    np.testing.assert_allclose(graph.value_NNL, plain.value_NNL, rtol=0, atol=1e-12)


@pytest.mark.parametrize("algorithm", ["A", "B"])
def test_other_labels_of_the_contexts_permute_the_graphs_and_the_union_holds_each(algorithm: str) -> None:
    model = random_context_model(np.random.default_rng(5), variables=5, persistence=0.5)
    data_TN, context_T = model.simulate(np.random.default_rng(6), 600)
    found = discover(data_TN, context_T, algorithm=algorithm, **SEARCH)
    swapped = discover(data_TN, 1 - context_T, algorithm=algorithm, **SEARCH)
    for level in ("0", "1"):
        np.testing.assert_array_equal(found.graphs[level].graph_NNL, swapped.graphs[str(1 - int(level))].graph_NNL)
        assert found.union_NNL[found.graphs[level].graph_NNL != ""].all()


@pytest.mark.parametrize("persistence", [0.0, 0.5, 0.8, 0.95])
def test_the_causes_of_the_context_stay_apart_at_every_persistence(persistence: float) -> None:
    """False X - Y at most alpha + 2 %, and Z -> W in its own context only."""
    repeats, false, own, other = 60, 0, 0, 0
    for repeat in range(repeats):
        data_TN, context_T = collider_example(persistence).simulate(np.random.default_rng(repeat), 500)
        found = discover(data_TN, context_T, algorithm="A", min_samples=20, **SEARCH)
        false += sum(graph.graph_NNL[X, Y, 0] != "" for graph in found.graphs.values())
        own += found.graphs["1"].graph_NNL[Z, W, 1] != ""
        other += found.graphs["0"].graph_NNL[Z, W, 1] != ""
    assert false / (2 * repeats) <= 0.07
    assert own / repeats > 0.85
    assert other / repeats < 0.15


def test_a_thresholded_proxy_misleads_masking_and_not_a() -> None:
    repeats, false = 40, {"A": 0, "masked": 0}
    for repeat in range(repeats):
        data_TN, context_T = proxy_example(np.random.default_rng(repeat), 500, memory=0.8)
        for algorithm in false:
            found = discover(data_TN, context_T, algorithm=algorithm, **SEARCH)
            false[algorithm] += sum(graph.graph_NNL[X, Y, 0] != "" for graph in found.graphs.values())
    assert false["A"] / (2 * repeats) <= 0.07
    assert false["masked"] / (2 * repeats) > 0.4


def test_three_contexts_and_combinations_of_two() -> None:
    rng = np.random.default_rng(8)
    data_TN, _ = proxy_example(rng, 1500, memory=0.9)
    context_T = np.digitize(data_TN[:, 4], np.quantile(data_TN[:, 4], [0.33, 0.67]))
    found = discover(data_TN, context_T, algorithm="A", levels=("dry", "medium", "wet"), **SEARCH)
    assert set(found.graphs) == {"dry", "medium", "wet"} == set(found.samples)
    assert found.graphs["wet"].graph_NNL[Z, W, 1] == "-->"
    assert found.graphs["dry"].graph_NNL[Z, W, 1] == ""
    season_T = (np.arange(1500) // 300) % 2
    level_T, names = combined_context({"soil": (context_T > 1).astype(int), "season": season_T})
    assert names == ("soil=0 season=0", "soil=0 season=1", "soil=1 season=0", "soil=1 season=1")
    assert level_T[0] == 2 * (context_T[0] > 1)
    unknown_T, _ = combined_context({"soil": np.where(season_T > 0, -1, 0), "season": season_T})
    assert ((unknown_T >= 0) == (season_T == 0)).all()


def test_unknown_contexts_belong_to_none() -> None:
    data_TN, context_T = collider_example(0.8).simulate(np.random.default_rng(9), 600)
    context_T[300:400] = -1
    found = discover(data_TN, context_T, algorithm="A", **SEARCH)
    window_T = np.ones(600, bool)
    for lag in range(3):
        window_T[lag:] &= context_T[: 600 - lag] == 1
    window_T[:4] = False
    assert found.samples["1"] == window_T.sum()
    assert found.kept["1"] == pytest.approx(window_T.sum() / (context_T[4:] == 1).sum())


def test_a_context_without_samples_is_an_error_that_names_it() -> None:
    data_TN, context_T = collider_example(0.0).simulate(np.random.default_rng(10), 200)
    context_T[:] = 0
    context_T[::10] = 1
    with pytest.raises(TooFewSamples, match=r"where soil = wet: 0 samples"):
        discover(data_TN, context_T, algorithm="A", levels=("dry", "wet"), context_name="soil", **SEARCH)


def test_a_variable_that_is_constant_within_a_context_is_named_with_it() -> None:
    data_TN, context_T = collider_example(0.8).simulate(np.random.default_rng(11), 500)
    data_TN[context_T == 1, Z] = 2.0
    with pytest.raises(ConstantVariable, match=r"where R = 1: .*Z.* is constant"):
        discover(data_TN, context_T, algorithm="A", names=("X", "Y", "Z", "W"), **SEARCH)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (np.zeros(10, np.int64), "shape"),
        (np.zeros(100), "integer levels"),
    ],
)
def test_a_context_of_another_shape_or_kind_is_refused(context: np.ndarray, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        discover(np.random.default_rng(0).standard_normal((100, 2)), context, algorithm="A", **SEARCH)
