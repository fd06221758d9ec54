from __future__ import annotations

import numpy as np
import polars as pl

from stages.causal.simulators import simulate_soil_bucket
from stages.systems.endogenous_context import twins
from stages.systems.endogenous_context.twins import CRITICAL, WITHIN_A_DAY, truth_table
from tests.systems.endogenous_context.bucket_towers import TRAIN

BUCKET = simulate_soil_bucket(np.random.default_rng(0), steps=2000, tau_max=2, critical=CRITICAL)


def test_wet_soil_switches_off_one_link() -> None:
    dry, wet = (truth_table(BUCKET, limited=limited).filter("truth") for limited in (True, False))
    key = ["source", "target", "lag"]
    assert dry.join(wet, on=key, how="anti").select(key).rows() == [("SWC", "LE", 1)]
    assert wet.join(dry, on=key, how="anti").is_empty()


def test_the_directions_within_a_day_are_those_of_the_simulator() -> None:
    i, j = np.nonzero(BUCKET.truth_NNL[:, :, 0])
    pairs = {frozenset((BUCKET.names[a], BUCKET.names[b])) for a, b in zip(i, j, strict=True)}
    assert {frozenset(pair) for pair in WITHIN_A_DAY} == pairs
    assert len(WITHIN_A_DAY) == len(pairs)
    backward = truth_table(BUCKET, limited=True).filter(pl.col("truth_mark") == "<--").select("source", "target").rows()
    assert set(backward) == {(b, a) for a, b in WITHIN_A_DAY if BUCKET.names.index(a) > BUCKET.names.index(b)}


def test_the_context_is_the_simulators_own_of_the_next_day() -> None:
    soil_T = BUCKET.data_TN[:, BUCKET.names.index("SWC")]
    np.testing.assert_array_equal(soil_T[:-1] >= CRITICAL, BUCKET.wet_T[1:])


def test_every_method_and_rule_meets_the_same_series() -> None:
    (first, _) = twins.twins(TRAIN, seed=0)
    table = first.run()
    assert table.equals(first.run())
    pooled = table.filter(pl.col("method") == "pooled")
    key = ["source", "target", "lag"]
    parts = [part.select(*key, "value", "mark").sort(key) for _, part in pooled.group_by("rule", "level")]
    assert all(part.equals(parts[0]) for part in parts)  # pooled data do not see the regimes
    assert set(table["rule"]) == {"critical", "quantile"}
    assert table["truth"].null_count() == 0
