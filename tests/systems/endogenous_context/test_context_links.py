"""What B finds at the context."""

from __future__ import annotations

import numpy as np

from stages.systems.endogenous_context.adaptive import ContextResult, discover
from stages.systems.endogenous_context.context_links import ContextLink
from stages.systems.endogenous_context.models import (
    ContextModel,
    collider_example,
    proxy_example,
    random_context_model,
)

NAMES = ("X", "Y", "Z", "W")


def found_by_b(model: ContextModel, seed: int, steps: int = 800) -> ContextResult:
    data_TN, context_T = model.simulate(np.random.default_rng(seed), steps)
    return discover(data_TN, context_T, algorithm="B", tau_max=2, pc_alpha=0.05, names=model.names)


def links(found: ContextResult) -> tuple[ContextLink, ...]:
    assert found.context_links is not None
    return found.context_links.links


def test_drivers_of_the_context_are_found_and_do_not_point_away_from_it() -> None:
    into = away = 0
    for seed in range(20):
        for link in links(found_by_b(collider_example(0.5), seed)):
            into += link.source in ("X", "Y") and link.target == "R" and link.mark == "-->"
            away += link.source == "R" and link.target in ("X", "Y") and link.mark == "-->"
    assert into > 20  # of 40; the others stay without direction
    assert away <= 2


def test_a_change_of_slope_is_seen_where_the_mean_does_not_change() -> None:
    governed = pointed = 0
    for seed in range(20):
        joined = [link for link in links(found_by_b(collider_example(0.5), seed)) if "W" in (link.source, link.target)]
        governed += bool(joined)
        pointed += any(link.target == "W" and link.mark == "-->" for link in joined)
        assert not any(link.target == "R" and link.mark == "-->" for link in joined)
    assert governed >= 18
    assert pointed > 10  # the others stay without direction


def test_variables_apart_from_the_context_are_seldom_taken_for_adjacent() -> None:
    strangers = apart = 0
    for seed in range(20):
        found = found_by_b(collider_example(0.5), seed)
        assert found.context_links is not None
        strangers += 2 in found.context_links.adjacent  # Z
        apart += 1
    assert strangers / apart <= 0.2


def test_the_variable_that_defines_the_context_is_given_and_not_searched() -> None:
    data_TN, context_T = proxy_example(np.random.default_rng(0), 800, memory=0.8)
    found = discover(data_TN, context_T, algorithm="B", tau_max=2, pc_alpha=0.05, names=(*NAMES, "C"), defined_by="C")
    assert links(found)[0] == ContextLink("C", "R", 0, "-->", 0.0)
    assert any(link.source == "R" and link.target == "W" for link in links(found))


def test_b_takes_pairs_apart_from_the_context_from_pooled_data() -> None:
    model = random_context_model(np.random.default_rng(1), variables=7, persistence=0.5, changed=1, density=0.3)
    found = found_by_b(model, 2)
    assert found.context_links is not None
    apart = [i for i in range(7) if i not in found.context_links.adjacent]
    assert len(apart) >= 2
    for graph in found.graphs.values():
        samples = graph.samples_NNL[np.ix_(apart, apart)]
        assert (samples[samples > 0] == 800 - 4).all()
