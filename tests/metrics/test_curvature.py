"""The Hessian's eigenvalues and trace beside the exact Hessian of small models."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from stages.metrics.curvature import hutchinson_trace, leading_eigenvalues
from stages.metrics.objectives import Loss, Objective, Weights

METHODS = ["lanczos", "power"]


def network(dtype: torch.dtype = torch.float64) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """A net of 50 weights, 3 inputs, 8 hidden units, 2 classes; inputs and labels of 40 samples."""
    draw = torch.Generator().manual_seed(0)
    shapes = {"first.weight": (8, 3), "first.bias": (8,), "second.weight": (2, 8), "second.bias": (2,)}
    weights = {name: torch.randn(shape, generator=draw, dtype=torch.float64) for name, shape in shapes.items()}
    x_NI = torch.randn(40, 3, generator=draw, dtype=torch.float64)
    label_N = torch.randint(0, 2, (40,), generator=draw)
    return {name: w.to(dtype) for name, w in weights.items()}, x_NI.to(dtype), label_N


def cross_entropy(weights: Weights, x_NI: Tensor, label_N: Tensor) -> Tensor:
    hidden = torch.tanh(x_NI @ weights["first.weight"].T + weights["first.bias"])
    return functional.cross_entropy(hidden @ weights["second.weight"].T + weights["second.bias"], label_N)


def exact_hessian(loss: Loss, at: Weights) -> Tensor:
    """The whole Hessian, by torch.func."""
    names, sizes = list(at), [tensor.numel() for tensor in at.values()]

    def of_vector(x_P: Tensor) -> Tensor:
        parts = dict(zip(names, x_P.split(sizes), strict=True))
        return loss({name: parts[name].reshape(at[name].shape) for name in names})

    hessian: Callable[[Tensor], Tensor] = torch.func.jacrev(torch.func.jacrev(of_vector))
    return hessian(torch.cat([tensor.reshape(-1) for tensor in at.values()]))


def quadratic(*matrix: list[float]) -> tuple[Objective, dict[str, Tensor]]:
    """Half of w' A w, whose Hessian is A everywhere."""
    a = torch.tensor(matrix, dtype=torch.float64)
    return Objective(lambda at: at["w"] @ a @ at["w"] / 2), {"w": torch.ones(len(matrix), dtype=torch.float64)}


@pytest.mark.parametrize("method", METHODS)
def test_eigenvalues_of_a_net_of_50_weights_are_those_of_its_exact_hessian(method: str) -> None:
    at, x, label = network()
    loss = partial(cross_entropy, x_NI=x, label_N=label)
    exact = torch.linalg.eigvalsh(exact_hessian(loss, at)).flip(0)
    found = leading_eigenvalues(
        Objective(loss).hessian(at), 4, seed=1, method=method, tolerance=1e-6, max_products=5000
    )
    assert exact.numel() == 50
    assert found.converged
    assert found.values == pytest.approx(exact[:4].tolist(), abs=1e-9)
    assert all(pair.residual <= 1e-6 * float(exact.abs().max()) for pair in found.pairs)


def test_vectors_are_eigenvectors_by_name() -> None:
    at, x, label = network()
    loss = partial(cross_entropy, x_NI=x, label_N=label)
    pair = leading_eigenvalues(Objective(loss).hessian(at), seed=0, tolerance=1e-8).pairs[0]
    assert {name: v.shape for name, v in pair.vector.items()} == {name: w.shape for name, w in at.items()}
    v_P = torch.cat([v.reshape(-1) for v in pair.vector.values()])
    torch.testing.assert_close(exact_hessian(loss, at) @ v_P, pair.value * v_P, rtol=0, atol=1e-7)


def test_the_trace_of_a_net_lies_within_its_standard_error() -> None:
    """400 probes; the error itself is that of the known variance, 2 times the squared off-diagonal entries."""
    at, x, label = network()
    loss = partial(cross_entropy, x_NI=x, label_N=label)
    exact = exact_hessian(loss, at)
    found = hutchinson_trace(Objective(loss).hessian(at), seed=0, probes=400)
    beside = exact - torch.diag(exact.diagonal())
    assert found.standard_error == pytest.approx(math.sqrt(2 * float(beside.square().sum()) / 400), rel=0.15)
    assert abs(found.value - float(exact.trace())) < 3 * found.standard_error
    assert sum(found.by_tensor.values()) == pytest.approx(found.value)
    assert found.by_tensor["second.bias"] == pytest.approx(float(exact.diagonal()[-2:].sum()), abs=0.05)


def test_a_diagonal_hessian_needs_one_probe() -> None:
    objective, at = quadratic([3, 0, 0], [0, -1, 0], [0, 0, 0.5])
    found = hutchinson_trace(objective.hessian(at), seed=0, probes=2)
    assert (found.value, found.standard_error) == (2.5, 0.0)


@pytest.mark.parametrize("method", METHODS)
def test_least_squares_has_the_norm_of_its_design(method: str) -> None:
    """Mean of half squared errors: the Hessian is X'X / n, so the eigenvalue is its spectral norm over n."""
    draw = torch.Generator().manual_seed(0)
    x_NI = torch.randn(60, 7, generator=draw, dtype=torch.float64)
    y_N = torch.randn(60, generator=draw, dtype=torch.float64)
    objective = Objective(lambda at: (x_NI @ at["w"] - y_N).square().mean() / 2)
    found = leading_eigenvalues(
        objective.hessian({"w": torch.zeros(7, dtype=torch.float64)}), seed=0, method=method, tolerance=1e-9
    )
    assert found.values[0] == pytest.approx(float(torch.linalg.matrix_norm(x_NI.T @ x_NI, 2)) / 60, rel=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_largest_eigenvalue_is_not_the_most_negative_one(method: str) -> None:
    objective, at = quadratic([-5, 0, 0], [0, 2, 0], [0, 0, 1])
    found = leading_eigenvalues(objective.hessian(at), 2, seed=0, method=method, tolerance=1e-7, max_products=500)
    assert found.values == pytest.approx([2, 1])
    all_negative, at = quadratic([-5, 0], [0, -2])
    found = leading_eigenvalues(all_negative.hessian(at), seed=0, method=method, tolerance=1e-7, max_products=500)
    assert found.values == pytest.approx([-2])


@pytest.mark.parametrize("method", METHODS)
def test_an_eigenvalue_that_occurs_twice_in_a_small_space_is_found_twice(method: str) -> None:
    objective, at = quadratic([2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1])
    found = leading_eigenvalues(objective.hessian(at), 3, seed=0, method=method, tolerance=1e-6)
    assert found.values == pytest.approx([2, 2, 1])


def test_batches_give_the_curvature_of_the_whole_whatever_their_sizes() -> None:
    at, x, label = network()
    whole = Objective(partial(cross_entropy, x_NI=x, label_N=label))
    cuts = [slice(0, 5), slice(5, 29), slice(29, 40)]
    parts = Objective([partial(cross_entropy, x_NI=x[cut], label_N=label[cut]) for cut in cuts], weights=[5, 24, 11])
    assert parts.value(at) == pytest.approx(whole.value(at), rel=1e-14)
    torch.testing.assert_close(parts.gradient(at)[1], whole.gradient(at)[1])
    by_parts, by_whole = (leading_eigenvalues(o.hessian(at), 2, seed=3) for o in (parts, whole))
    assert by_parts.values == pytest.approx(by_whole.values, rel=1e-9)
    traces = [hutchinson_trace(o.hessian(at), seed=3, probes=20) for o in (parts, whole)]
    assert traces[0].value == pytest.approx(traces[1].value, rel=1e-12)


def test_single_precision_gives_the_same_to_single_precision() -> None:
    values = []
    for dtype in (torch.float32, torch.float64):
        at, x, label = network(dtype)
        hessian = Objective(partial(cross_entropy, x_NI=x, label_N=label)).hessian(at)
        values.append([*leading_eigenvalues(hessian, 2, seed=0).values, hutchinson_trace(hessian, seed=0).value])
    assert values[0] == pytest.approx(values[1], rel=1e-4)


def test_equal_seeds_give_equal_numbers_and_products_are_counted() -> None:
    at, x, label = network()
    objective = Objective(partial(cross_entropy, x_NI=x, label_N=label))
    runs = [leading_eigenvalues(objective.hessian(at), 2, seed=7) for _ in range(2)]
    assert (runs[0].values, runs[0].products) == (runs[1].values, runs[1].products)
    hessian = objective.hessian(at)
    leading_eigenvalues(hessian, seed=0, max_products=3)
    assert hessian.products == 3 + 1


@pytest.mark.parametrize("method", METHODS)
def test_a_search_that_ends_early_says_so(method: str) -> None:
    at, x, label = network()
    hessian = Objective(partial(cross_entropy, x_NI=x, label_N=label)).hessian(at)
    found = leading_eigenvalues(hessian, seed=0, method=method, tolerance=1e-9, max_products=2)
    assert not found.converged
    assert found.pairs[0].residual > 1e-9


def test_attention_is_differentiated_twice() -> None:
    """torch's fast attention kernels have no second derivative; outside, the choice of kernel is as before."""
    draw = torch.Generator().manual_seed(0)
    x_BTD = torch.randn(2, 5, 4, generator=draw, dtype=torch.float64)
    at = {name: torch.randn(4, 4, generator=draw, dtype=torch.float64) / 2 for name in ("query", "key", "value")}

    def loss(weights: Weights) -> Tensor:
        q, k, v = (x_BTD @ weights[name] for name in ("query", "key", "value"))
        return functional.scaled_dot_product_attention(q, k, v).square().mean()

    flash = torch.backends.cuda.flash_sdp_enabled()
    found = leading_eigenvalues(Objective(loss).hessian(at), seed=0, tolerance=1e-8)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        exact = torch.linalg.eigvalsh(exact_hessian(loss, at))
    assert found.values[0] == pytest.approx(float(exact[-1]), rel=1e-9)
    assert torch.backends.cuda.flash_sdp_enabled() == flash


def test_a_loss_without_curvature_has_none() -> None:
    """Linear in one tensor, independent of the other."""
    at = {"used": torch.ones(3), "unused": torch.ones(2)}
    for loss in (lambda w: w["used"].sum(), lambda w: torch.tensor(1.0)):
        hessian = Objective(loss).hessian(at)
        assert leading_eigenvalues(hessian, 2, seed=0).values == [0, 0]
        assert hutchinson_trace(hessian, seed=0).value == 0


def test_the_weights_are_left_as_they_are() -> None:
    at, x, label = network()
    before = {name: tensor.clone() for name, tensor in at.items()}
    hessian = Objective(partial(cross_entropy, x_NI=x, label_N=label)).hessian(at)
    leading_eigenvalues(hessian, seed=0)
    for name, tensor in at.items():
        assert torch.equal(tensor, before[name])
        assert not tensor.requires_grad


ONE = {"w": torch.ones(2)}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Objective([]), "0 losses with 0 weights; expected as many, at least one"),
        (lambda: Objective([abs], weights=[1, 2]), "1 losses with 2 weights"),
        (lambda: Objective([abs], weights=[0]), r"weights of the losses: \[0.0\]; expected positive numbers"),
        (lambda: Objective(lambda w: w["w"]).value(ONE), r"the loss of batch 0 has shape \(2,\); expected a scalar"),
        (lambda: Objective(lambda w: w["w"].sum() / 0).value(ONE), "the loss of batch 0 is inf; expected a finite"),
        (lambda: Objective(lambda w: w["w"].sum()).hessian({}), "weights: 0 numbers, no tensor; expected some"),
        (
            lambda: Objective(lambda w: w["w"].sum()).hessian({"w": torch.ones(2), "b": torch.ones(2).double()}),
            "weights: 4 numbers, torch.float32 on cpu, torch.float64 on cpu; expected some, of one dtype",
        ),
        (lambda: Objective(lambda w: w["w"].sum()).hessian({"w": torch.ones(2).long()}), "weights are torch.int64"),
        (
            lambda: leading_eigenvalues(Objective(lambda w: w["w"].sum()).hessian(ONE), 3, seed=0),
            "3 eigenvalues of 2 weights in 200 products; expected at least one product",
        ),
        (
            lambda: hutchinson_trace(Objective(lambda w: w["w"].sum()).hessian(ONE), seed=0, probes=1),
            "1 probes; expected at least 2, for a standard error",
        ),
    ],
)
def test_what_cannot_be_answered_is_refused(call: Callable[[], object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
