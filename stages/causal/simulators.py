"""Series whose causal graph is known: a chain, random linear systems, and a soil-moisture bucket.

Shape suffixes: T time, N variable, L lag 0 to tau_max. truth_NNL[i, j, lag] is True where variable i, lag steps
before, stands in the structural equation of j; lag 0 is the adjacency, symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from stages.causal.covariance import Booleans
from stages.causal.ranks import Floats

BURN_IN = 500
# Water evaporated by 1 W/m2 over a day, mm: 86400 s / (2.45 MJ/kg).
MM_PER_DAY_PER_WATT = 86400.0 / 2.45e6


@dataclass(frozen=True)
class Simulation:
    """A simulated series and the graph behind it.

    Attributes
    ----------
    data_TN
        The series.
    names, units
        Name and unit of each variable.
    truth_NNL
        The true graph.
    """

    data_TN: Floats
    names: tuple[str, ...]
    units: tuple[str, ...]
    truth_NNL: Booleans


@dataclass(frozen=True)
class SoilBucketSimulation(Simulation):
    """A bucket's series with its two regimes.

    Attributes
    ----------
    wet_T
        True where yesterday's soil moisture was not below the critical one: evaporation follows radiation alone.
    truth_wet_NNL
        The graph while wet; the dry graph is truth_NNL.
    """

    wet_T: Booleans
    truth_wet_NNL: Booleans


def simulate_var_chain(rng: np.random.Generator, *, steps: int, variables: int, tau_max: int = 1) -> Simulation:
    """Simulate x[t, j] = 0.5 x[t-1, j] + 0.3 x[t-1, j-1] + e[t, j], e standard normal.

    Parameters
    ----------
    rng
        Source of randomness.
    steps, variables
        Size of the series.
    tau_max
        Largest lag of the returned graph, at least 1.

    Returns
    -------
    Simulation
        Chain X0 -> X1 -> ... at lag 1, every variable on its own past.
    """
    noise_TN = rng.standard_normal((steps + BURN_IN, variables))
    data_TN = np.empty_like(noise_TN)
    for j in range(variables):
        drive_T = noise_TN[:, j].copy()
        if j:
            drive_T[1:] += 0.3 * data_TN[:-1, j - 1]
        data_TN[:, j] = lfilter([1.0], [1.0, -0.5], drive_T)
    truth_NNL = np.zeros((variables, variables, tau_max + 1), np.bool_)
    truth_NNL[np.arange(variables), np.arange(variables), 1] = True
    truth_NNL[np.arange(variables - 1), np.arange(1, variables), 1] = True
    names = tuple(f"X{j}" for j in range(variables))
    return Simulation(np.ascontiguousarray(data_TN[BURN_IN:]), names, ("1",) * variables, truth_NNL)


def spectral_radius(coefficient_NNL: Floats) -> float:
    """Largest modulus of the eigenvalues of a VAR's companion matrix; below 1 the process is stationary.

    Parameters
    ----------
    coefficient_NNL
        Effect of x[t - lag, i] on x[t, j]; lag 0 must be empty.

    Returns
    -------
    float
        The spectral radius.
    """
    n, _, lags = coefficient_NNL.shape
    order = lags - 1
    companion = np.zeros((n * order, n * order))
    for lag in range(1, lags):
        companion[:n, (lag - 1) * n : lag * n] = coefficient_NNL[:, :, lag].T
    companion[n:, : n * (order - 1)] = np.eye(n * (order - 1))
    return float(np.abs(np.linalg.eigvals(companion)).max())


def simulate_random_var(
    rng: np.random.Generator,
    *,
    steps: int,
    variables: int,
    density: float = 0.3,
    tau_max: int = 2,
    coefficient: tuple[float, float] = (0.2, 0.5),
    autocorrelation: tuple[float, float] = (0.2, 0.7),
    max_radius: float = 0.95,
    attempts: int = 1000,
) -> Simulation:
    """Simulate a random stationary linear VAR with standard normal noise.

    Parameters
    ----------
    rng
        Source of randomness.
    steps, variables
        Size of the series.
    density
        Probability that an ordered pair of different variables is linked, at one lag drawn from 1 to tau_max.
    tau_max
        Largest lag.
    coefficient
        Range of |coefficient| of a link; its sign is drawn.
    autocorrelation
        Range of the coefficient of every variable's own lag 1.
    max_radius
        Systems with a larger spectral radius of the companion matrix are drawn again.
    attempts
        Draws before giving up.

    Returns
    -------
    Simulation
        The series and its graph.

    Raises
    ------
    ValueError
        When no draw is stationary.
    """
    for _ in range(attempts):
        coefficient_NNL = np.zeros((variables, variables, tau_max + 1))
        for i, j in np.argwhere(rng.random((variables, variables)) < density):
            if i != j:
                size = rng.uniform(*coefficient) * rng.choice([-1.0, 1.0])
                coefficient_NNL[i, j, rng.integers(1, tau_max + 1)] = size
        own = np.arange(variables)
        coefficient_NNL[own, own, 1] = rng.uniform(*autocorrelation, size=variables)
        if spectral_radius(coefficient_NNL) <= max_radius:
            break
    else:
        raise ValueError(
            f"none of {attempts} random systems has a spectral radius up to {max_radius}: use a smaller density"
            f" ({density}), coefficients {coefficient} or autocorrelations {autocorrelation}"
        )
    data_TN = rng.standard_normal((steps + BURN_IN, variables))
    # The past is stacked nearest lag first, as the rows of the reshaped coefficients.
    flat = np.ascontiguousarray(coefficient_NNL[:, :, :0:-1].transpose(2, 0, 1).reshape(tau_max * variables, variables))
    for t in range(tau_max, steps + BURN_IN):
        data_TN[t] += data_TN[t - tau_max : t].ravel() @ flat
    names = tuple(f"X{j}" for j in range(variables))
    return Simulation(data_TN[BURN_IN:].copy(), names, ("1",) * variables, coefficient_NNL != 0.0)


def simulate_soil_bucket(
    rng: np.random.Generator,
    *,
    steps: int,
    season: bool = False,
    tau_max: int = 1,
    capacity: float = 150.0,
    critical: float = 80.0,
    wet_day_probability: float = 0.25,
    wet_day_amount: float = 14.0,
    flux_noise: float = 8.0,
) -> SoilBucketSimulation:
    """Simulate a daily water bucket whose evaporation radiation limits when wet, and soil moisture when dry.

    SW_t = 120 + s_t + a_t, a_t = 0.6 a_{t-1} + noise of 20 W/m2, not below 5; s_t = 60 sin(2 pi t / 365) with season;
    P_t = gamma(shape 0.7) amounts on wet days, independent from day to day;
    LE_t = SW_t min(1, SWC_{t-1} / critical) + noise;  H_t = SW_t - LE_t + noise;
    SWC_t = SWC_{t-1} + P_t - LE_t in mm, drained above capacity, not below 0;
    TA_t = 15 + d_t, d_t = 0.7 d_{t-1} + 0.04 (SW_t - 120) + noise of 1.2 degC;
    VPD_t = 1.2 + 0.08 (TA_t - 15) + 0.004 (SW_t - 120) + noise of 0.15 kPa, not below 0.01.

    Parameters
    ----------
    rng
        Source of randomness.
    steps
        Days.
    season
        Add a yearly cycle to radiation; without it the series is as after removing the mean cycle.
    tau_max
        Largest lag of the returned graph, at least 1.
    capacity, critical
        Field capacity, and the soil moisture SWC* below which evaporation falls, mm of water.
    wet_day_probability, wet_day_amount
        Share of wet days, and their mean rain, mm.
    flux_noise
        Standard deviation of the noise of LE and H, W/m2.

    Returns
    -------
    SoilBucketSimulation
        P (mm/day), SWC (mm), LE and H (W/m2), VPD (kPa), SW_IN (W/m2, all of it available energy), TA (degC).
    """
    days = steps + BURN_IN
    sunny_T = lfilter([1.0], [1.0, -0.6], 20.0 * rng.standard_normal(days))
    if season:
        sunny_T += 60.0 * np.sin(2.0 * np.pi * (np.arange(days) - BURN_IN) / 365.0)
    sw_T = np.maximum(120.0 + sunny_T, 5.0)
    rain_T = (rng.random(days) < wet_day_probability) * rng.gamma(0.7, wet_day_amount / 0.7, days)
    warm_T = lfilter([1.0], [1.0, -0.7], 0.04 * (sw_T - 120.0) + 1.2 * rng.standard_normal(days))
    vpd_T = 1.2 + 0.08 * warm_T + 0.004 * (sw_T - 120.0) + 0.15 * rng.standard_normal(days)
    le_noise_T, h_noise_T = flux_noise * rng.standard_normal((2, days))
    le_T, soil_T = np.empty(days), np.empty(days)
    wet_T = np.empty(days, np.bool_)
    soil = critical
    for t in range(days):
        wet_T[t] = soil >= critical
        le_T[t] = sw_T[t] * min(1.0, soil / critical) + le_noise_T[t]
        soil = min(capacity, max(0.0, soil + rain_T[t] - MM_PER_DAY_PER_WATT * le_T[t]))
        soil_T[t] = soil
    h_T = sw_T - le_T + h_noise_T
    data_TN = np.column_stack([rain_T, soil_T, le_T, h_T, np.maximum(vpd_T, 0.01), sw_T, 15.0 + warm_T])[BURN_IN:]
    names = ("P", "SWC", "LE", "H", "VPD", "SW_IN", "TA")
    truth_NNL = _bucket_truth(names, tau_max)
    truth_wet_NNL = truth_NNL.copy()
    truth_wet_NNL[names.index("SWC"), names.index("LE"), 1] = False
    units = ("mm/day", "mm", "W/m2", "W/m2", "kPa", "W/m2", "degC")
    return SoilBucketSimulation(data_TN, names, units, truth_NNL, wet_T[BURN_IN:].copy(), truth_wet_NNL)


def _bucket_truth(names: tuple[str, ...], tau_max: int) -> Booleans:
    """Read the graph off the bucket's equations."""
    truth_NNL = np.zeros((len(names), len(names), tau_max + 1), np.bool_)
    lagged = [("SW_IN", "SW_IN"), ("SWC", "SWC"), ("SWC", "LE"), ("TA", "TA")]
    same_day = [
        ("P", "SWC"),
        ("LE", "SWC"),
        ("SW_IN", "LE"),
        ("SW_IN", "H"),
        ("LE", "H"),
        ("SW_IN", "TA"),
        ("SW_IN", "VPD"),
        ("TA", "VPD"),
    ]
    for source, target in lagged:
        truth_NNL[names.index(source), names.index(target), 1] = True
    for source, target in same_day:
        i, j = names.index(source), names.index(target)
        truth_NNL[i, j, 0] = truth_NNL[j, i, 0] = True
    return truth_NNL
