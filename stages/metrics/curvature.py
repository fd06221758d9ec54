"""Leading eigenvalues and trace of the Hessian of a loss, from Hessian-vector products alone.

Shape suffixes: P weight; J Lanczos step; K vector or probe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from stages.metrics.objectives import Hessian

TOLERANCE = 1e-3
PRODUCTS = 200
PROBES_AT_ONCE = 16


@dataclass(frozen=True)
class Eigenpair:
    """An eigenvalue of the Hessian and what is known of its error.

    Attributes
    ----------
    value
        v' H v of the unit vector v.
    residual
        Norm of H v - value v, measured with a product of its own. Some eigenvalue lies within it of `value`.
    converged
        Whether the residual is at most the tolerance times the largest absolute eigenvalue seen.
    vector
        v by name.
    """

    value: float
    residual: float
    converged: bool
    vector: dict[str, Tensor]


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenpairs, the largest eigenvalue first, and the Hessian-vector products that they cost."""

    pairs: tuple[Eigenpair, ...]
    products: int
    method: str

    @property
    def values(self) -> list[float]:
        """The eigenvalues, largest first."""
        return [pair.value for pair in self.pairs]

    @property
    def converged(self) -> bool:
        """Whether all pairs are."""
        return all(pair.converged for pair in self.pairs)


@dataclass(frozen=True)
class Trace:
    """Hutchinson's estimate of the trace.

    Attributes
    ----------
    value, standard_error
        Mean over the probes, and their standard deviation divided by the root of their number.
    probes
        Number of probes, one product each.
    by_tensor
        What each named tensor contributes: the trace of its block on the diagonal. They sum to `value`.
    """

    value: float
    standard_error: float
    probes: int
    by_tensor: dict[str, float]


def leading_eigenvalues(
    hessian: Hessian,
    count: int = 1,
    *,
    seed: int,
    method: Literal["lanczos", "power"] = "lanczos",
    tolerance: float = TOLERANCE,
    max_products: int = PRODUCTS,
) -> Spectrum:
    """The algebraically largest eigenvalues of a Hessian; the first one is the sharpness of a minimum.

    Parameters
    ----------
    hessian
        From ``Objective.hessian``.
    count
        How many.
    seed
        Of the random first vector.
    method
        `lanczos`, with full reorthogonalisation (keeps one vector of all weights a product); `power`, power
        iteration, one eigenvalue after the other (keeps `count` + 2 vectors).
    tolerance
        A pair has converged when its residual is at most this share of the largest absolute eigenvalue seen. The
        error of an eigenvalue is then at most this, and of the order of its square where eigenvalues lie apart.
    max_products
        Products after which the search ends, for all pairs together; what has not converged says so.

    Returns
    -------
    Spectrum
        `count` pairs, fewer where `max_products` is less than that.

    Raises
    ------
    ValueError
        Where there are fewer weights than `count`, or no product is allowed.

    Notes
    -----
    Golub and Van Loan 2013, Matrix Computations, sections 8.2 and 10.3. Both start from one random vector: of an
    eigenvalue that occurs several times, Lanczos finds one copy unless its Krylov space is exhausted.
    """
    if not 1 <= count <= hessian.space.size or max_products < 1:
        raise ValueError(
            f"{count} eigenvalues of {hessian.space.size} weights in {max_products} products; expected at least one"
            " product, and at least one eigenvalue but no more than weights"
        )
    generator = torch.Generator().manual_seed(seed)
    before = hessian.products
    search = _lanczos if method == "lanczos" else _power_iteration
    v_KP, scale = search(hessian, count, generator, tolerance, max_products)
    pairs = [_measured(hessian, v_P, tolerance, scale) for v_P in v_KP]
    pairs.sort(key=lambda pair: -pair.value)
    return Spectrum(tuple(pairs), hessian.products - before, method)


def _measured(hessian: Hessian, v_P: Tensor, tolerance: float, scale: float) -> Eigenpair:
    """A pair with its residual; the product is exact where the search's own estimate may have drifted."""
    product_P = hessian.product(v_P)
    value = _dot(v_P, product_P)
    residual = _norm(product_P - value * v_P)
    bound = tolerance * max(scale, abs(value))
    return Eigenpair(value, residual, residual <= bound, hessian.space.named(v_P))


def _lanczos(
    hessian: Hessian, count: int, generator: torch.Generator, tolerance: float, max_products: int
) -> tuple[list[Tensor], float]:
    """Ritz vectors of the largest Ritz values, and the largest absolute Ritz value."""
    space = hessian.space
    q_P = _unit(space.normal(generator))
    basis_JP = q_P.new_empty(0, space.size)
    diagonal: list[float] = []
    beside: list[float] = []
    rounding = float(torch.finfo(space.dtype).eps)
    steps = min(max_products, space.size)
    while True:
        basis_JP = _with_row(basis_JP, len(diagonal), q_P)
        product_P = hessian.product(q_P)
        diagonal.append(_dot(q_P, product_P))
        done = len(diagonal)
        product_P = _orthogonal(product_P, basis_JP[:done])
        length = _norm(product_P)
        value_J, vector_JJ = _tridiagonal(diagonal, beside)
        scale = float(np.abs(value_J).max())
        wanted = slice(None, -count - 1, -1)
        exhausted = length <= 10 * rounding * scale * done**0.5
        residual = 0.0 if exhausted else length * np.abs(vector_JJ[-1, wanted]).max()
        enough = done >= count and residual <= tolerance * scale
        # One vector cannot show how often an eigenvalue occurs: an exhausted Krylov space goes on from a new one.
        if done == steps or (enough and not (exhausted and count > 1)):
            break
        fresh_P = _orthogonal(space.normal(generator), basis_JP[:done]) if exhausted else product_P
        beside.append(0.0 if exhausted else length)
        q_P = _unit(fresh_P)
    share_KJ = torch.from_numpy(vector_JJ[:, wanted].T.copy()).to(space.device, space.dtype)
    return [_unit(v_P) for v_P in share_KJ @ basis_JP[:done]], scale


def _with_row(basis_JP: Tensor, rows: int, q_P: Tensor) -> Tensor:
    """The basis with a vector in its next row, in twice the room where it is full."""
    if rows == len(basis_JP):
        room_JP = basis_JP.new_empty(max(8, 2 * rows), basis_JP.shape[1])
        room_JP[:rows] = basis_JP
        basis_JP = room_JP
    basis_JP[rows] = q_P
    return basis_JP


def _tridiagonal(diagonal: list[float], beside: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues, ascending, and eigenvectors in the columns."""
    matrix_JJ = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
    value_J, vector_JJ = np.linalg.eigh(matrix_JJ)
    return value_J, vector_JJ


def _power_iteration(
    hessian: Hessian, count: int, generator: torch.Generator, tolerance: float, max_products: int
) -> tuple[list[Tensor], float]:
    """Vectors of the largest eigenvalues, each orthogonal to those before, and the largest absolute eigenvalue seen.

    Power iteration finds the eigenvalue of largest magnitude. Where that is negative, it goes on with H plus its
    magnitude times the identity, whose dominant eigenvalue is the largest of H.
    """
    space = hessian.space
    found_KP = torch.empty(0, space.size, dtype=space.dtype, device=space.device)
    left, scale, shift = max_products, 0.0, 0.0
    while len(found_KP) < count and left > 0:
        v_P = _unit(_orthogonal(space.normal(generator), found_KP))
        while left > 0:
            left -= 1
            product_P = _orthogonal(hessian.product(v_P), found_KP)
            value = _dot(v_P, product_P)
            scale = max(scale, abs(value))
            # What the vectors before lack in convergence adds to the residual of this one.
            settled = _norm(product_P - value * v_P) <= tolerance / count * scale
            if settled and value + shift < 0:
                shift = -value
                v_P = _unit(_orthogonal(space.normal(generator), found_KP))
                continue
            if settled:
                break
            v_P = _unit(product_P + shift * v_P)
        found_KP = torch.cat([found_KP, v_P[None]])
    return list(found_KP), scale


def hutchinson_trace(hessian: Hessian, *, seed: int, probes: int = 100) -> Trace:
    """The trace as the mean of v' H v over random signs v (Hutchinson 1990).

    Parameters
    ----------
    hessian
        From ``Objective.hessian``.
    seed
        Of the signs.
    probes
        Number of random vectors, at least 2. The variance of one is 2 times the sum of the squared off-diagonal
        entries of H: a diagonal Hessian needs one probe.

    Returns
    -------
    Trace
        With its standard error.

    Raises
    ------
    ValueError
        Where `probes` is less than 2: one probe has no standard error.
    """
    if probes < 2:
        raise ValueError(f"{probes} probes; expected at least 2, for a standard error")
    space = hessian.space
    generator = torch.Generator().manual_seed(seed)
    forms = []
    for first in range(0, probes, PROBES_AT_ONCE):
        there = min(PROBES_AT_ONCE, probes - first)
        sign_KP = torch.randint(0, 2, (there, space.size), generator=generator, dtype=torch.int8) * 2 - 1
        forms.append(hessian.quadratic_forms(sign_KP.to(space.device, space.dtype)).numpy())
    form_KT = np.concatenate(forms)
    error = float(form_KT.sum(axis=1).std(ddof=1)) / probes**0.5
    share = dict(zip(space.shapes, form_KT.mean(axis=0).tolist(), strict=True))
    return Trace(sum(share.values()), error, probes, share)


def _dot(a_P: Tensor, b_P: Tensor) -> float:
    return float((a_P * b_P).sum(dtype=torch.float64))


def _norm(a_P: Tensor) -> float:
    return math.sqrt(_dot(a_P, a_P))


def _unit(a_P: Tensor) -> Tensor:
    """A vector divided by its norm; zero stays zero."""
    length = _norm(a_P)
    return a_P / length if length > 0 else a_P


def _orthogonal(a_P: Tensor, basis_JP: Tensor) -> Tensor:
    """What is left of a vector outside the span of orthonormal ones; twice, as once leaves rounding errors."""
    for _ in range(2):
        a_P = a_P - basis_JP.T @ (basis_JP @ a_P)
    return a_P
