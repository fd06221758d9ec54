"""Association of two blocks of columns given a third: Wilks' lambda, the Chow test, and their permutations.

Lambda = det(E_Y given S and X) / det(E_Y given S), the product of 1 - rho^2 over the partial canonical correlations
(Wilks 1932); with one column on each side it is 1 - r^2. The Chow test (Chow 1960) compares a regression inside groups
of rows with one inside finer groups.

Permutations are Freedman and Lane's (1983): residuals of Y given S are permuted, alone or in blocks of consecutive
rows, and S is regressed out again.

Shape suffixes: K columns of S, X, Y in this order, R row, B orthonormal column, Q column of Y, G group of rows, P
permutation, U block of rows.
"""

from __future__ import annotations

import math

import numpy as np

from stages.causal.compiled import compiled
from stages.causal.covariance import Booleans, dot
from stages.causal.partial_correlation import COLLINEAR, SPANNED
from stages.causal.ranks import Floats, Integers


@compiled
def _log_determinant(square_QQ: Floats) -> float:
    """Logarithm of the determinant of a positive semidefinite matrix, overwritten; -inf where it is 0."""
    total = 0.0
    for a in range(square_QQ.shape[0]):
        for b in range(a + 1):
            s = square_QQ[a, b]
            for c in range(b):
                s -= square_QQ[a, c] * square_QQ[b, c]
            if b < a:
                square_QQ[a, b] = s / square_QQ[b, b]
            elif s <= 0.0:
                return -np.inf
            else:
                square_QQ[a, a] = math.sqrt(s)
                total += math.log(s)
    return total


@compiled
def lambda_from_moments(moment_KK: Floats, conditions: int, left: int) -> tuple[float, float, Booleans, bool]:
    """Wilks' lambda of two blocks given a third, from the products of centred columns.

    Parameters
    ----------
    moment_KK
        Products, of which the lower triangle is read; overwritten. Columns with 0 on the diagonal are left out.
    conditions, left
        Number of columns of S and of X.

    Returns
    -------
    tuple
        Logarithm of lambda, correlation of the last column of X with the last of Y given all others, which columns
        count, and False where a pivot is too small.
    """
    k = moment_KK.shape[0]
    kept_K = np.ones(k, np.bool_)
    for a in range(k):
        whole = moment_KK[a, a]
        if whole == 0.0:
            kept_K[a] = False
            moment_KK[a, : a + 1] = 0.0
            continue
        pivot = whole
        for b in range(a):
            if kept_K[b]:
                s = moment_KK[a, b]
                for c in range(b):
                    s -= moment_KK[a, c] * moment_KK[b, c]
                s /= moment_KK[b, b]
                moment_KK[a, b] = s
                pivot -= s * s
            else:
                moment_KK[a, b] = 0.0
        if not pivot > COLLINEAR * whole:
            return 0.0, 0.0, kept_K, False
        moment_KK[a, a] = math.sqrt(pivot)
    start = conditions + left
    rest_QQ, right = np.zeros((k - start, k - start)), 0
    after = 0.0
    for a in range(start, k):
        if kept_K[a]:
            after += 2.0 * math.log(moment_KK[a, a])
            column = 0
            for b in range(start, a + 1):
                if kept_K[b]:
                    s = 0.0
                    for c in range(conditions, b + 1):
                        s += moment_KK[a, c] * moment_KK[b, c]
                    rest_QQ[right, column] = s
                    column += 1
            right += 1
    across, along = moment_KK[k - 1, start - 1], moment_KK[k - 1, k - 1]
    size = math.sqrt(across * across + along * along)
    return after - _log_determinant(rest_QQ[:right, :right]), across / size if size > 0.0 else 0.0, kept_K, True


@compiled
def orthonormal_blocks(columns_KR: Floats, conditions: int, left: int) -> Booleans:
    """Make S orthonormal, then X given S, then Y given S, in place (Gram-Schmidt, each projection done twice).

    Parameters
    ----------
    columns_KR
        Centred columns, overwritten.
    conditions, left
        Number of columns of S and of X.

    Returns
    -------
    ndarray
        Which columns are no combination of those before them in S and in their own block.
    """
    k, rows = columns_KR.shape
    kept_K = np.zeros(k, np.bool_)
    for c in range(k):
        size = math.sqrt(dot(columns_KR[c], columns_KR[c]))
        for _ in range(2):
            for b in range(c):
                if kept_K[b] and (b < conditions or c < conditions + left or b >= conditions + left):
                    share = dot(columns_KR[b], columns_KR[c])
                    for r in range(rows):
                        columns_KR[c, r] -= share * columns_KR[b, r]
        rest = math.sqrt(dot(columns_KR[c], columns_KR[c]))
        if rest > SPANNED * size:
            kept_K[c] = True
            for r in range(rows):
                columns_KR[c, r] /= rest
    return kept_K


@compiled
def lambda_of_blocks(x_BR: Floats, y_QR: Floats) -> tuple[float, float]:
    """Wilks' lambda of two orthonormal blocks.

    Parameters
    ----------
    x_BR, y_QR
        The blocks, residuals given S.

    Returns
    -------
    tuple
        Logarithm of lambda, and the correlation of the last columns.
    """
    right = y_QR.shape[0]
    rest_QQ = np.zeros((right, right))
    r = 0.0
    for a in range(right):
        rest_QQ[a, a] = 1.0
    for b in range(x_BR.shape[0]):
        share_Q = np.array([dot(x_BR[b], y_QR[q]) for q in range(right)])
        r = min(1.0, max(-1.0, share_Q[right - 1]))
        for a in range(right):
            for c in range(a + 1):
                rest_QQ[a, c] -= share_Q[a] * share_Q[c]
    return _log_determinant(rest_QQ), r


@compiled
def _shuffle(uniform_U: Floats, block_length: int, order_U: Integers, place_R: Integers) -> None:
    """Write a permutation of the rows that moves blocks of consecutive rows (Fisher and Yates)."""
    blocks, rows = order_U.size, place_R.size
    for u in range(blocks):
        order_U[u] = u
    for u in range(blocks - 1, 0, -1):
        other = int(uniform_U[u] * (u + 1))
        order_U[u], order_U[other] = order_U[other], order_U[u]
    r = 0
    for u in range(blocks):
        start = order_U[u] * block_length
        for t in range(start, min(start + block_length, rows)):
            place_R[r] = t
            r += 1


@compiled
def count_as_small(
    s_BR: Floats, x_BR: Floats, y_QR: Floats, uniform_PU: Floats, block_length: int, observed: float
) -> int:
    """Count permutations of the residuals of Y whose lambda is not above the observed one.

    Parameters
    ----------
    s_BR, x_BR, y_QR
        Orthonormal blocks of `orthonormal_blocks`, dropped columns left out.
    uniform_PU
        Uniform numbers in [0, 1), a row for each permutation, one for each block of rows.
    block_length
        Rows in a block.
    observed
        Logarithm of lambda of the data.

    Returns
    -------
    int
        The count.
    """
    right, rows = y_QR.shape
    order_U, place_R = np.empty(uniform_PU.shape[1], np.int64), np.empty(rows, np.int64)
    moved_QR, share_Q = np.empty((right, rows)), np.empty(right)
    before_QQ, after_QQ = np.empty((right, right)), np.empty((right, right))
    count = 0
    for uniform_U in uniform_PU:
        _shuffle(uniform_U, block_length, order_U, place_R)
        before_QQ[:] = 0.0
        for q in range(right):
            before_QQ[q, q] = 1.0
            for r in range(rows):
                moved_QR[q, r] = y_QR[q, place_R[r]]
        for b in range(s_BR.shape[0] + x_BR.shape[0]):
            if b == s_BR.shape[0]:
                after_QQ[:] = before_QQ
            base_R = s_BR[b] if b < s_BR.shape[0] else x_BR[b - s_BR.shape[0]]
            into_QQ = before_QQ if b < s_BR.shape[0] else after_QQ
            for q in range(right):
                share_Q[q] = dot(base_R, moved_QR[q])
            for a in range(right):
                for c in range(a + 1):
                    into_QQ[a, c] -= share_Q[a] * share_Q[c]
        if _log_determinant(after_QQ) - _log_determinant(before_QQ) <= observed + 1e-9:
            count += 1
    return count


@compiled
def group_bases(columns_KR: Floats, start_G: Integers) -> tuple[Floats, int]:
    """Make columns orthonormal inside each group of rows.

    Parameters
    ----------
    columns_KR
        Columns, an intercept among them.
    start_G
        First row of each group, and the number of rows at the end.

    Returns
    -------
    tuple
        basis_KR, 0 where a column adds nothing inside a group, and the sum of the ranks.
    """
    basis_KR = columns_KR.copy()
    rank = 0
    for g in range(start_G.size - 1):
        part_KR = basis_KR[:, start_G[g] : start_G[g + 1]]
        kept_K = np.zeros(part_KR.shape[0], np.bool_)
        for c in range(part_KR.shape[0]):
            size = math.sqrt(dot(part_KR[c], part_KR[c]))
            for _ in range(2):
                for b in range(c):
                    if kept_K[b]:
                        share = dot(part_KR[b], part_KR[c])
                        for r in range(part_KR.shape[1]):
                            part_KR[c, r] -= share * part_KR[b, r]
            rest = math.sqrt(dot(part_KR[c], part_KR[c]))
            kept_K[c] = rest > SPANNED * size
            rank += 1 if kept_K[c] else 0
            for r in range(part_KR.shape[1]):
                part_KR[c, r] = part_KR[c, r] / rest if kept_K[c] else 0.0
    return basis_KR, rank


@compiled
def group_residuals(basis_KR: Floats, start_G: Integers, y_R: Floats) -> Floats:
    """Residuals of a regression inside each group.

    Parameters
    ----------
    basis_KR, start_G
        As from and for `group_bases`.
    y_R
        The response.

    Returns
    -------
    ndarray
        rest_R.
    """
    rest_R = y_R.copy()
    for g in range(start_G.size - 1):
        part_R = rest_R[start_G[g] : start_G[g + 1]]
        for _ in range(2):
            for k in range(basis_KR.shape[0]):
                base_R = basis_KR[k, start_G[g] : start_G[g + 1]]
                share = dot(base_R, part_R)
                for r in range(part_R.size):
                    part_R[r] -= share * base_R[r]
    return rest_R


@compiled
def _explained(basis_KR: Floats, start_G: Integers, y_R: Floats) -> float:
    """Sum of squares that a regression inside each group explains."""
    total = 0.0
    for g in range(start_G.size - 1):
        for k in range(basis_KR.shape[0]):
            share = dot(basis_KR[k, start_G[g] : start_G[g + 1]], y_R[start_G[g] : start_G[g + 1]])
            total += share * share
    return total


@compiled
def count_as_split(
    coarse_KR: Floats,
    coarse_G: Integers,
    fine_KR: Floats,
    fine_G: Integers,
    rest_R: Floats,
    time_R: Integers,
    uniform_PU: Floats,
    block_length: int,
    observed: float,
) -> int:
    """Count permutations of the residuals whose Chow ratio is not above the observed one.

    Parameters
    ----------
    coarse_KR, coarse_G, fine_KR, fine_G
        Bases and groups of the two regressions.
    rest_R
        Residuals of the coarse regression, in the order of time.
    time_R
        Place in time of each row of the bases.
    uniform_PU, block_length
        As for `count_as_small`.
    observed
        Residual sum of squares of the fine regression over that of the coarse one.

    Returns
    -------
    int
        The count.
    """
    rows = rest_R.size
    order_U, place_R = np.empty(uniform_PU.shape[1], np.int64), np.empty(rows, np.int64)
    moved_R = np.empty(rows)
    whole = dot(rest_R, rest_R)
    count = 0
    for uniform_U in uniform_PU:
        _shuffle(uniform_U, block_length, order_U, place_R)
        for r in range(rows):
            moved_R[r] = rest_R[place_R[time_R[r]]]
        coarse = whole - _explained(coarse_KR, coarse_G, moved_R)
        fine = whole - _explained(fine_KR, fine_G, moved_R)
        if fine <= observed * coarse * (1.0 + 1e-9):
            count += 1
    return count
