"""Tests that share rows give what each would give alone, and equal input gives equal bytes in every process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import rankdata

from stages.causal.bootstrap import block_bootstrap
from stages.causal.covariance import add_products
from stages.causal.partial_correlation import measure_cells
from stages.causal.pcmci import PCMCIResult, pcmci_on_sample, run_pcmci
from stages.causal.row_sets import RowSets, forget, measure_on_rows, row_sets
from stages.causal.samples import LaggedSample, lagged_sample, resampled
from stages.causal.simulators import simulate_var_chain


def tower(seed: int, steps: int = 260) -> np.ndarray:
    """Four variables: rain with many zeros, one with long gaps, one with single gaps, one complete."""
    rng = np.random.default_rng(seed)
    data_TN = simulate_var_chain(rng, steps=steps, variables=4, tau_max=2).data_TN
    data_TN[:, 0] = np.maximum(data_TN[:, 0].round(1), 0.0)
    for start in rng.integers(0, steps - 15, 3):
        data_TN[start : start + 15, 1] = np.nan
    data_TN[rng.random(steps) < 0.03, 2] = np.nan
    return data_TN


def tower_sample(seed: int, test: Any, *, masked: bool = False, repeats: bool = False) -> LaggedSample:
    rng = np.random.default_rng(seed + 1)
    data_TN = tower(seed)
    mask_TN = rng.random(data_TN.shape) < 0.2 if masked else None
    mask_T = np.arange(260) % 130 < 40
    sample = lagged_sample(data_TN, tau_max=2, test=test, mask_T=mask_T, mask_TN=mask_TN)
    return resampled(sample, rng.integers(4, 260, 256)) if repeats else sample


def random_tests(seed: int, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    tests = []
    for _ in range(count):
        y = int(rng.integers(4))
        others = np.setdiff1d(np.arange(12), [y])
        tests.append(np.append(rng.choice(others, int(rng.integers(1, 6)), replace=False), y))
    return tests


def answers(sample: LaggedSample, memory: RowSets, tests: list[np.ndarray]) -> list[tuple[float, float, int]]:
    forget(memory)
    return [measure_on_rows(sample.moments, memory, cells) for cells in tests]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["parcorr", "robust_parcorr"]), st.booleans(), st.booleans())
def test_sharing_gives_what_each_test_gives_alone(seed: int, test: Any, masked: bool, repeats: bool) -> None:
    sample = tower_sample(seed, test, masked=masked, repeats=repeats)
    tests = random_tests(seed, 60)
    for cells, (value, total, status) in zip(tests, answers(sample, row_sets(sample.moments, 400), tests), strict=True):
        alone = measure_cells(sample.moments, cells)
        assert value == pytest.approx(alone[0], abs=1e-12)
        assert (total, status) == alone[1:]


@pytest.mark.parametrize("test", ["parcorr", "robust_parcorr"])
def test_order_of_the_tests_and_size_of_the_memory_change_no_bit(test: Any) -> None:
    sample = tower_sample(3, test, masked=True, repeats=True)
    tests = random_tests(3, 300)
    memory = row_sets(sample.moments, 400)
    plain = answers(sample, memory, tests)
    assert answers(sample, memory, tests[::-1])[::-1] == plain
    small = memory._replace(
        total_S=memory.total_S[:5].copy(),
        good_S=memory.good_S[:5].copy(),
        column_A=memory.column_A[:2000].copy(),
        pair_H=memory.pair_H[:128].copy(),
        score_A=memory.score_A[:300].copy() if test == "robust_parcorr" else memory.score_A,
    )
    small.head[:] = 0
    small.table_M[:] = -1
    assert answers(sample, small, tests) == plain


def test_tests_larger_than_the_memory_are_done_alone() -> None:
    sample = tower_sample(4, "robust_parcorr")
    tests = random_tests(4, 20)
    memory = row_sets(sample.moments, 400)
    tiny = memory._replace(column_A=memory.column_A[:10].copy())
    assert answers(sample, tiny, tests) == [measure_cells(sample.moments, cells) for cells in tests]


def test_scores_of_resampled_gappy_rows_are_those_of_the_copied_rows() -> None:
    """The robust correlation of two cells, against ranks of the rows copied as often as they were drawn."""
    data_TN = tower(5)
    rows = np.random.default_rng(5).integers(4, 260, 256)
    sample = resampled(lagged_sample(data_TN, tau_max=2, test="robust_parcorr"), rows)
    result = pcmci_on_sample(sample, pc_alpha=1e-300)
    table_R2 = np.column_stack([data_TN[rows - 1, 0], data_TN[rows, 1]])
    table_R2 = table_R2[np.isfinite(table_R2).all(axis=1)]
    u_R2 = rankdata(table_R2, method="max", axis=0) / len(table_R2)
    scores_R2 = ndtri(np.where(u_R2 == 1.0, 0.99999, u_R2))
    assert result.samples_NNL[0, 1, 1] == len(table_R2)
    assert result.value_NNL[0, 1, 1] == pytest.approx(np.corrcoef(scores_R2.T)[0, 1], abs=1e-12)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (5, 4), (7, 7)])
def test_products_of_all_rows(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    a, b = rng.standard_normal((rows, 50)), rng.standard_normal((columns, 50))
    out = np.ones((rows, columns))
    add_products(a, 3, b, 1, 40, False, out)
    np.testing.assert_allclose(out, 1.0 + a[:, 3:43] @ b[:, 1:41].T, rtol=0, atol=1e-12)


def digest(*results: PCMCIResult) -> str:
    parts = (part for r in results for part in (r.value_NNL, r.p_NNL, r.samples_NNL))
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()


def runs(offset: int) -> str:
    """Gappy and complete runs of both tests on series that lie at an odd place of memory, and a bootstrap."""
    found = []
    for data_TN in (tower(6), simulate_var_chain(np.random.default_rng(6), steps=20_000, variables=9).data_TN):
        place = np.empty(data_TN.size + 8)
        placed_TN = place[offset : offset + data_TN.size].reshape(data_TN.shape)
        placed_TN[:] = data_TN
        found += [run_pcmci(placed_TN, tau_max=2, pc_alpha=0.1, test=test) for test in ("parcorr", "robust_parcorr")]
    bootstrap = block_bootstrap(tower(6), tau_max=2, pc_alpha=0.1, rng=np.random.default_rng(0), replicates=8)
    return digest(*found) + hashlib.sha256(bootstrap.low_NNL.tobytes() + bootstrap.high_NNL.tobytes()).hexdigest()


def test_bits_depend_neither_on_the_place_in_memory_nor_on_the_process() -> None:
    """Not on the threads of BLAS either: 20,000 steps are where its products begin to depend on them."""
    here = runs(0)
    assert [runs(offset) for offset in (1, 3)] == [here, here]
    folder = Path(__file__).parent
    code = f"import sys; sys.path[:0] = [{str(folder)!r}]; import test_row_sets; print(test_row_sets.runs(0))"
    for threads in ("1", "2"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads}
        root = folder.parents[1]
        answer = subprocess.run(
            [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True
        )
        assert answer.stdout.strip() == here
