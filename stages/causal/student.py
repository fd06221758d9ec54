"""Tail probabilities inside compiled loops: Student's t for correlations, and the normal quantile.

A partial correlation r with f degrees of freedom has t = r sqrt(f / (1 - r^2)), and its two-sided p-value is the
regularised incomplete beta function I_{1 - r^2}(f / 2, 1 / 2) (Abramowitz and Stegun 26.7.1, 26.5.27).
"""

from __future__ import annotations

import math

from stages.causal.compiled import compiled

_TINY = 1e-300
_EPS = 1e-16


@compiled
def log_beta_half(a: float) -> float:
    """Logarithm of B(a, 1/2).

    Parameters
    ----------
    a
        First argument, above 0.

    Returns
    -------
    float
        ln B(a, 1/2).
    """
    if a < 20.0:
        return math.lgamma(a) + math.lgamma(0.5) - math.lgamma(a + 0.5)
    # Stirling series of ln Gamma(a + 1/2) - ln Gamma(a): no cancellation of two large logarithms.
    u = 1.0 / (a * a)
    tail = (1.0 / 8.0 - u * (1.0 / 192.0 - u * (1.0 / 640.0 - u * (17.0 / 14336.0 - u * 31.0 / 18432.0)))) / a
    return 0.5 * math.log(math.pi) - 0.5 * math.log(a) + tail


@compiled
def _beta_fraction(a: float, b: float, x: float) -> float:
    """Continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method."""
    c = 1.0
    d = 1.0 - (a + b) * x / (a + 1.0)
    if abs(d) < _TINY:
        d = _TINY
    d = 1.0 / d
    h = d
    for m in range(1, 20000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        c = 1.0 + even / c
        if abs(d) < _TINY:
            d = _TINY
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        c = 1.0 + odd / c
        if abs(d) < _TINY:
            d = _TINY
        if abs(c) < _TINY:
            c = _TINY
        d = 1.0 / d
        step = d * c
        h *= step
        if abs(step - 1.0) < _EPS:
            break
    return h


@compiled
def _small_series(a: float, z: float) -> float:
    """Sum of the positive series of I_z(1/2, a) / (z^(1/2) (1-z)^a / (1/2 B)) (Abramowitz and Stegun 26.5.4)."""
    term = 1.0
    total = 1.0
    for n in range(20000):
        term *= (a + 0.5 + n) / (1.5 + n) * z
        total += term
        if term < _EPS * total:
            break
    return total


@compiled
def two_sided_p(r: float, df: float) -> float:
    """Two-sided p-value of a (partial) correlation.

    Parameters
    ----------
    r
        Correlation in [-1, 1].
    df
        Degrees of freedom, n - 2 - number of conditions, at least 1.

    Returns
    -------
    float
        Probability of a value at least as far from 0 under independence.
    """
    z = r * r
    if z == 0.0:
        return 1.0
    if z >= 1.0:
        return 0.0
    a = 0.5 * df
    front = math.exp(a * math.log1p(-z) - log_beta_half(a)) * abs(r)
    if z * (a + 2.5) < 1.5:
        return 1.0 - 2.0 * front * _small_series(a, z)
    return front / a * _beta_fraction(a, 0.5, 1.0 - z)


@compiled
def critical_correlation(alpha: float, df: float) -> float:
    """Find the smallest |r| whose two-sided p-value is not above alpha.

    Parameters
    ----------
    alpha
        Level in (0, 1].
    df
        Degrees of freedom, at least 1.

    Returns
    -------
    float
        |r| with p(|r|) = alpha; 0 for alpha = 1.
    """
    if alpha >= 1.0:
        return 0.0
    low, high = 0.0, 1.0
    z = -normal_quantile(0.5 * alpha)
    t = z + z * (z * z + 1.0) / (4.0 * df)
    r = t / math.sqrt(t * t + df)
    a = 0.5 * df
    scale = 2.0 * math.exp(-log_beta_half(a))
    for _ in range(100):
        gap = two_sided_p(r, df) - alpha
        if gap > 0.0:
            low = r
        else:
            high = r
        slope = scale * math.exp((a - 1.0) * math.log1p(-r * r))
        new = r + gap / slope if slope > 0.0 else 0.5 * (low + high)
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - r) <= 1e-15:
            break
        r = new
    return r


@compiled
def normal_quantile(u: float) -> float:
    """Quantile of the standard normal distribution, to 1e-15 (Wichura 1988, algorithm AS 241, PPND16).

    Parameters
    ----------
    u
        Probability in (0, 1).

    Returns
    -------
    float
        z with Phi(z) = u.
    """
    q = u - 0.5
    if abs(q) <= 0.425:
        s = 0.180625 - q * q
        top = 2.5090809287301226727e3
        top = top * s + 3.3430575583588128105e4
        top = top * s + 6.7265770927008700853e4
        top = top * s + 4.5921953931549871457e4
        top = top * s + 1.3731693765509461125e4
        top = top * s + 1.9715909503065514427e3
        top = top * s + 1.3314166789178437745e2
        top = top * s + 3.3871328727963666080e0
        low = 5.2264952788528545610e3
        low = low * s + 2.8729085735721942674e4
        low = low * s + 3.9307895800092710610e4
        low = low * s + 2.1213794301586595867e4
        low = low * s + 5.3941960214247511077e3
        low = low * s + 6.8718700749205790830e2
        low = low * s + 4.2313330701600911252e1
        low = low * s + 1.0
        return q * top / low
    s = math.sqrt(-math.log(min(u, 1.0 - u)))
    if s <= 5.0:
        s -= 1.6
        top = 7.74545014278341407640e-4
        top = top * s + 2.27238449892691845833e-2
        top = top * s + 2.41780725177450611770e-1
        top = top * s + 1.27045825245236838258e0
        top = top * s + 3.64784832476320460504e0
        top = top * s + 5.76949722146069140550e0
        top = top * s + 4.63033784615654529590e0
        top = top * s + 1.42343711074968357734e0
        low = 1.05075007164441684324e-9
        low = low * s + 5.47593808499534494600e-4
        low = low * s + 1.51986665636164571966e-2
        low = low * s + 1.48103976427480074590e-1
        low = low * s + 6.89767334985100004550e-1
        low = low * s + 1.67638483018380384940e0
        low = low * s + 2.05319162663775882187e0
        low = low * s + 1.0
    else:
        s -= 5.0
        top = 2.01033439929228813265e-7
        top = top * s + 2.71155556874348757815e-5
        top = top * s + 1.24266094738807843860e-3
        top = top * s + 2.65321895265761230930e-2
        top = top * s + 2.96560571828504891230e-1
        top = top * s + 1.78482653991729133580e0
        top = top * s + 5.46378491116411436990e0
        top = top * s + 6.65790464350110377720e0
        low = 2.04426310338993978564e-15
        low = low * s + 1.42151175831644588870e-7
        low = low * s + 1.84631831751005468180e-5
        low = low * s + 7.86869131145613259100e-4
        low = low * s + 1.48753612908506148525e-2
        low = low * s + 1.36929880922735805310e-1
        low = low * s + 5.99832206555887937690e-1
        low = low * s + 1.0
    return math.copysign(top / low, q)
