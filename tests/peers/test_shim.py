"""The shim answers to the peer's names with the engine's numbers, and `make peers` notices every difference."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.peers.run import SHIM, compare, listed, outcomes, summary

CASES = """
import numpy as np
import pytest
import tigramite
from tigramite import data_processing as pp
from tigramite.independence_tests.oracle_conditional_independence import OracleCI
from tigramite.independence_tests.parcorr import ParCorr
from tigramite.pcmci import PCMCI
from tigramite.toymodels import structural_causal_processes as toys

from stages.causal.pcmci import run_pcmci

CHAIN = {0: [((0, -1), 0.5)], 1: [((1, -1), 0.5), ((0, -1), 0.6)]}


def test_numbers_are_those_of_the_engine():
    np.random.seed(7)
    data, parents = toys.var_process(CHAIN, T=300)
    data[40, 1] = 99.0
    found = PCMCI(pp.DataFrame(data, missing_flag=99.0), ParCorr()).run_pcmci(tau_max=2, pc_alpha=0.05)
    ours = run_pcmci(np.where(data == 99.0, np.nan, data), tau_max=2, pc_alpha=0.05)
    assert "shim" in tigramite.__file__
    np.testing.assert_array_equal(found["p_matrix"], ours.p_NNL)


@pytest.mark.parametrize("reset", [False, True])
def test_oracle_returns_the_graph(reset):
    def linear(x):
        return x

    links = {0: [((0, -1), 0.5, linear)], 1: [((0, 0), 0.6, linear)]}
    links[2] = [((1, -2), 0.4, linear), ((0, 0), 0.0, linear)]
    data, left_bounds = toys.structural_causal_process(links, T=60, seed=1)
    assert not left_bounds
    found = PCMCI(pp.DataFrame(data), OracleCI(links)).run_pcmciplus(tau_max=2, reset_lagged_links=reset)
    np.testing.assert_array_equal(found["graph"], toys.links_to_graph(links))


def test_fails():
    raise AssertionError
"""


def _toymodels() -> ModuleType:
    """The shim's module under another name, beside the peer's own."""
    path = SHIM / "tigramite" / "toymodels" / "structural_causal_processes.py"
    spec = importlib.util.spec_from_file_location("shim_toymodels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_cases_run_on_the_engine_and_failures_are_seen(tmp_path: Path) -> None:
    (tmp_path / "test_few.py").write_text(CASES, encoding="utf-8")
    assert outcomes(tmp_path, ["test_few.py"]) == {
        "test_few.py::test_numbers_are_those_of_the_engine": True,
        "test_few.py::test_oracle_returns_the_graph[False]": True,
        "test_few.py::test_oracle_returns_the_graph[True]": True,
        "test_few.py::test_fails": False,
    }


def test_every_difference_from_the_expected_result_is_told() -> None:
    passed = {"a.py::test_one[x]": True, "a.py::test_one[y]": False, "a.py::test_two": False, "b.py::test_three": True}
    assert compare(passed, _expected(3, 1, "test_one[y]", "test_two")) == []
    assert compare(passed, _expected(4, 1, "test_one[y]", "test_two")) == ["a.py: 3 cases, expected 4"]
    assert compare(passed, _expected(3, 1, "test_one[y]")) == [
        "a.py::test_two does not pass, and expected.toml gives no reason"
    ]
    assert compare(passed, _expected(3, 1, "test_one", "test_two")) == [
        "a.py::test_one[x] passes, and stands in expected.toml as not passing: take it out"
    ]
    assert compare(passed, _expected(3, 1, "test_one[y]", "test_two", "test_four")) == [
        "a.py::test_four stands in expected.toml and is no case"
    ]
    assert listed("a.py::test_one[y]", ["a.py::test_on"]) is None


def test_summary_counts_what_runs_the_engine() -> None:
    passed = {"a.py::test_one[x]": True, "a.py::test_two": False, "b.py::test_three": True}
    lines = summary(passed, _expected(2, 1, "test_two") | {"shim_alone": [{"test": "b.py::test_three"}]})
    assert lines == [
        "   1 of   2 pass  a.py",
        "   1 of   1 pass  b.py",
        "   2 of   3 pass; 1 of them run the engine, 1 the shim alone",
        "     not passing: a.py::test_two: because",
    ]


@pytest.mark.peer
def test_series_are_those_of_the_peer() -> None:
    peer = pytest.importorskip("tigramite.toymodels.structural_causal_processes")
    ours = _toymodels()
    links = {0: [((0, -2), 0.4)], 1: [((1, -1), 0.3), ((0, -1), 0.7)], 2: []}
    series = []
    for module in (peer, ours):
        np.random.seed(3)  # noqa: NPY002 - var_process draws from the global state
        series.append(module.var_process(links, T=40)[0])
    np.testing.assert_allclose(series[1], series[0], atol=1e-13)

    additive = {j: [(*cause, np.tanh) for cause in causes] for j, causes in links.items()}
    additive[2] = [((1, 0), 0.5, np.tanh), ((0, -1), 0.0, np.tanh)]
    expected_TN, _ = peer.structural_causal_process(links=additive, T=40, noises=None, seed=5)
    series_TN, _ = ours.structural_causal_process(links=additive, T=40, noises=None, seed=5)
    np.testing.assert_allclose(series_TN, expected_TN, atol=1e-5)  # the peer keeps 32 bits
    assert ours._get_minmax_lag(additive) == peer._get_minmax_lag(additive) == (0, 2)
    np.testing.assert_array_equal(ours.links_to_graph(additive, 3), peer.links_to_graph(additive, tau_max=3))


def _expected(first: int, second: int, *names: str) -> dict[str, Any]:
    return {
        "cases": {"a.py": first, "b.py": second},
        "not_passing": [{"test": f"a.py::{name}", "reason": "because"} for name in names],
    }
