"""Linear centred kernel alignment (CKA) between representations of the same samples.

Kornblith et al. 2019, equation 4. The debiased form has the unbiased estimate of HSIC (Song et al. 2012)
in its three places; it is near 0 for unrelated features even where features are as many as samples.

Shape suffixes: N sample; D feature of one representation, E of the other; F, S layer of the first and second model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def linear_cka(x_ND: ArrayLike, y_NE: ArrayLike, *, debiased: bool = False) -> float:
    """Similarity of two representations, from 0 to 1 (debiased: about 0 to 1, at times below 0).

    Parameters
    ----------
    x_ND, y_NE
        Features of the same samples, shapes (sample, feature); centred here, in float64.
    debiased
        Whether HSIC is estimated without bias, which takes at least 4 samples.

    Returns
    -------
    float
        NaN where a representation does not vary. No rotation, scaling or shift of either side changes it.

    Raises
    ------
    ValueError
        Where shapes do not fit, numbers are not finite, or samples are too few.

    Notes
    -----
    Where features are fewer than samples nothing of shape (sample, sample) is formed, else nothing of shape
    (feature, feature).
    """
    x, y = _checked("x", x_ND), _checked("y", y_NE)
    if len(x) != len(y):
        raise ValueError(f"x has {len(x)} samples and y {len(y)}; expected the same samples in both")
    _enough(len(x), debiased)
    x, y = _centred(x), _centred(y)
    if max(x.shape[1], y.shape[1]) <= len(x):
        dots = [float(np.square(a.T @ b).sum()) for a, b in ((x, y), (x, x), (y, y))]
    else:
        gram_x, gram_y = x @ x.T, y @ y.T
        dots = [float((a * b).sum()) for a, b in ((gram_x, gram_y), (gram_x, gram_x), (gram_y, gram_y))]
    if debiased:
        length_x, length_y = np.square(x).sum(axis=1), np.square(y).sum(axis=1)
        lengths = ((length_x, length_y), (length_x, length_x), (length_y, length_y))
        dots = [
            _unbiased(dot, float(a @ b), float(a.sum()), float(b.sum()), len(x))
            for dot, (a, b) in zip(dots, lengths, strict=True)
        ]
    return _ratio(*dots)


class LinearCKA:
    """Linear CKA between all layers of two models, over batches of samples.

    Memory does not depend on the number of samples; it is the sum of the layers' features times itself.

    Examples
    --------
    >>> cka = LinearCKA()
    >>> for batch in batches:
    ...     cka.update(first_model(batch), second_model(batch))
    >>> similarity_FS = cka.matrix()
    """

    def __init__(self) -> None:
        self.samples = 0
        self._first: dict[str, _Moments] = {}
        self._second: dict[str, _Moments] = {}
        self._cross: dict[tuple[str, str], _Cross] = {}

    def update(self, first: Mapping[str, ArrayLike], second: Mapping[str, ArrayLike]) -> None:
        """Take in one batch: features by layer of each model, shapes (sample, feature), the same samples throughout.

        Raises
        ------
        ValueError
            Where layers or their features are not those of the first batch, or numbers of samples differ.
        """
        x = {name: _checked(name, values) for name, values in first.items()}
        y = {name: _checked(name, values) for name, values in second.items()}
        counts = {len(values) for values in (*x.values(), *y.values())}
        if len(counts) != 1:
            raise ValueError(f"layers of one batch have {sorted(counts)} samples; expected the same samples in all")
        if self.samples == 0:
            self._first = {name: _Moments(values) for name, values in x.items()}
            self._second = {name: _Moments(values) for name, values in y.items()}
            self._cross = {(a, b): _Cross(x[a].shape[1], y[b].shape[1]) for a, b in product(self._first, self._second)}
        shifted_x = _shifted(self._first, x)
        shifted_y = _shifted(self._second, y)
        self.samples += counts.pop()
        for moments, shifted in ((self._first, shifted_x), (self._second, shifted_y)):
            for name, values in shifted.items():
                moments[name].own.update(values, values)
        for (a, b), cross in self._cross.items():
            cross.update(shifted_x[a], shifted_y[b])

    def matrix(self, *, debiased: bool = False) -> Floats:
        """The similarity of each pair of layers, in the order of the first batch, shape (first, second).

        Raises
        ------
        ValueError
            Where samples are fewer than 2, or than 4 for the debiased form.
        """
        _enough(self.samples, debiased)
        own_F = [layer.own.hsic(self.samples, debiased) for layer in self._first.values()]
        own_S = [layer.own.hsic(self.samples, debiased) for layer in self._second.values()]
        similarity_FS = np.empty((len(own_F), len(own_S)))
        for (f, a), (s, b) in product(enumerate(self._first), enumerate(self._second)):
            similarity_FS[f, s] = _ratio(self._cross[a, b].hsic(self.samples, debiased), own_F[f], own_S[s])
        return similarity_FS


class _Cross:
    """Sums over samples from which HSIC of two layers follows, centred or not."""

    def __init__(self, features_x: int, features_y: int) -> None:
        self.xy_DE = np.zeros((features_x, features_y))
        self.x_D, self.y_E = np.zeros(features_x), np.zeros(features_y)
        self.short_x_D, self.short_y_E = np.zeros(features_x), np.zeros(features_y)
        self.length_x = self.length_y = self.lengths = 0.0

    def update(self, x_ND: Floats, y_NE: Floats) -> None:
        """Add samples: products, and squared lengths times features."""
        length_x_N, length_y_N = np.square(x_ND).sum(axis=1), np.square(y_NE).sum(axis=1)
        self.xy_DE += x_ND.T @ y_NE
        self.x_D += x_ND.sum(axis=0)
        self.y_E += y_NE.sum(axis=0)
        self.short_x_D += length_y_N @ x_ND
        self.short_y_E += length_x_N @ y_NE
        self.length_x += float(length_x_N.sum())
        self.length_y += float(length_y_N.sum())
        self.lengths += float(length_x_N @ length_y_N)

    def hsic(self, samples: int, debiased: bool) -> float:
        """HSIC times (samples - 1)^2, or its unbiased estimate times samples (samples - 3)."""
        mean_x_D, mean_y_E = self.x_D / samples, self.y_E / samples
        dot = float(np.square(self.xy_DE - np.outer(self.x_D, mean_y_E)).sum())
        if not debiased:
            return dot
        offset_x, offset_y = float(mean_x_D @ mean_x_D), float(mean_y_E @ mean_y_E)
        # The sum of the products of the squared lengths of the centred samples, from that of the uncentred ones.
        lengths = (
            self.lengths
            - 2 * float(mean_y_E @ self.short_y_E)
            - 2 * float(mean_x_D @ self.short_x_D)
            + 4 * float(mean_x_D @ self.xy_DE @ mean_y_E)
            + offset_y * self.length_x
            + offset_x * self.length_y
            - 3 * samples * offset_x * offset_y
        )
        total_x, total_y = self.length_x - samples * offset_x, self.length_y - samples * offset_y
        return _unbiased(dot, lengths, total_x, total_y, samples)


@dataclass
class _Moments:
    """One layer: where its features are shifted to, and its sums with itself."""

    first_batch: Floats
    shift_D: Floats = field(init=False)
    own: _Cross = field(init=False)

    def __post_init__(self) -> None:
        # Sums of squares lose digits where the mean is far from 0; a sample is near enough, and equal samples give 0.
        self.shift_D = self.first_batch[0].copy()
        self.own = _Cross(self.shift_D.size, self.shift_D.size)
        del self.first_batch


def _shifted(moments: Mapping[str, _Moments], batch: Mapping[str, Floats]) -> dict[str, Floats]:
    expected = {name: layer.shift_D.size for name, layer in moments.items()}
    found = {name: values.shape[1] for name, values in batch.items()}
    if found != expected:
        raise ValueError(f"features by layer {found}; expected those of the first batch, {expected}")
    return {name: values - moments[name].shift_D for name, values in batch.items()}


def _unbiased(dot: float, lengths: float, total_x: float, total_y: float, samples: int) -> float:
    """Unbiased HSIC times n (n - 3) of centred linear kernels; the diagonals are the squared lengths of the samples."""
    return dot - samples / (samples - 2) * lengths + total_x * total_y / ((samples - 1) * (samples - 2))


def _centred(x_ND: Floats) -> Floats:
    """Features minus their means; exactly 0 where all samples are equal."""
    x_ND = x_ND - x_ND[0]
    centred: Floats = x_ND - x_ND.mean(axis=0)
    return centred


def _ratio(cross: float, own_x: float, own_y: float) -> float:
    return cross / float(np.sqrt(own_x * own_y)) if own_x > 0 and own_y > 0 else float("nan")


def _checked(name: str, values: ArrayLike) -> Floats:
    features: Floats = np.asarray(values, dtype=np.float64)
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"{name} has shape {features.shape}; expected (sample, feature), none of them 0")
    if not np.isfinite(features).all():
        raise ValueError(f"{name} holds numbers that are not finite")
    return features


def _enough(samples: int, debiased: bool) -> None:
    least = 4 if debiased else 2
    if samples < least:
        raise ValueError(f"{samples} samples; expected at least {least}")
