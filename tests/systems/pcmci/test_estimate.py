from __future__ import annotations

import numpy as np

from stages.systems.pcmci.estimate import estimate
from tests.accepted.test_tower_series import DAYS, prepared, tower
from tests.systems.pcmci.test_evaluate import TRAIN


def test_a_variable_that_leaves_no_common_day_is_left_out_and_the_rest_estimated() -> None:
    """Two variables were measured in different years, as rain and fluxes at US-Tw3."""
    rng = np.random.default_rng(0)
    early = np.datetime64("2012-01-01") > DAYS
    rain, soil, flux = rng.normal(size=(3, DAYS.size))
    dataset = tower(P=np.where(early, np.nan, rain), SWC=soil, LE=np.where(early, flux, np.nan))
    series = prepared(dataset, min_days=30)
    series.anomalies_TN[:200, 0] = np.nan  # fewest values of all
    used, links, bootstrap = estimate(series, TRAIN, np.random.default_rng(1))
    assert used.names in (["SWC", "LE"], ["P", "SWC"])
    (why,) = used.dropped.values()
    assert "samples are left" in why
    assert links is not None
    assert bootstrap is not None
    assert set(links["source"]) == set(used.names)
