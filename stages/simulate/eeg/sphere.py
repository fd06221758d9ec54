"""Potentials of current dipoles on a head of concentric spheres.

In the innermost sphere a dipole's potential is that in an infinite medium plus a harmonic function; in each shell the
potential of degree n is a r^n + b r^-(n+1). Potential and radial current are continuous at each boundary and no current
leaves the outermost, which fixes all coefficients degree by degree (e.g. de Munck and Peters 1993, IEEE Trans. Biomed.
Eng. 40, 1166). With equal conductivities the series sums to the closed form of the homogeneous sphere.
"""

# Shapes: C channel, D dipole, N degree of the Legendre polynomial.

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """Radii in metres and conductivities in S/m of concentric shells, from the inside out."""

    radii: tuple[float, ...] = (0.080, 0.086, 0.092)
    conductivities: tuple[float, ...] = (0.33, 0.33 / 40, 0.33)
    degrees: int = 100

    @property
    def radius(self) -> float:
        """Radius of the scalp in metres."""
        return self.radii[-1]


def lead_field(electrode_C3: Floats, position_D3: Floats, head: Head) -> Floats:
    """Potentials (C, D, 3) in volts at the scalp, of dipoles of 1 A m along x, y and z.

    The potential's mean over the sphere is zero: the reference is the whole surface.

    Parameters
    ----------
    electrode_C3
        Unit vectors to the electrodes.
    position_D3
        Positions of the dipoles in metres, inside the innermost sphere.

    Raises
    ------
    ValueError
        A dipole lies outside the innermost sphere.
    """
    distance_D = np.linalg.norm(position_D3, axis=1)
    if (distance_D >= head.radii[0]).any():
        raise ValueError(f"a dipole at {distance_D.max():.4f} m lies outside the brain of {head.radii[0]:.4f} m")
    # At the centre itself the direction does not matter: only degree 1 remains there, which is the same for all.
    inward_D3 = np.where(distance_D[:, None] > 0, position_D3, [0.0, 0.0, 1.0])
    inward_D3 = inward_D3 / np.linalg.norm(inward_D3, axis=1, keepdims=True)
    cosine_CD = np.clip(electrode_C3 @ inward_D3.T, -1, 1)
    across_CD3 = electrode_C3[:, None, :] - cosine_CD[..., None] * inward_D3
    weight_N = transfer(head)
    radial_CD = np.zeros_like(cosine_CD)
    tangential_CD = np.zeros_like(cosine_CD)
    below, value = np.ones_like(cosine_CD), cosine_CD.copy()
    slope_below, slope = np.zeros_like(cosine_CD), np.ones_like(cosine_CD)
    depth_D = np.ones_like(distance_D)
    for n in range(1, head.degrees + 1):
        radial_CD += weight_N[n - 1] * depth_D * n * value
        tangential_CD += weight_N[n - 1] * depth_D * slope
        depth_D = depth_D * distance_D / head.radius
        # P'(n+1) = P'(n-1) + (2n+1) P(n); (n+1) P(n+1) = (2n+1) x P(n) - n P(n-1)
        slope_below, slope = slope, slope_below + (2 * n + 1) * value
        below, value = value, ((2 * n + 1) * cosine_CD * value - n * below) / (n + 1)
    scale = 1 / (4 * np.pi * head.conductivities[0] * head.radius**2)
    field_CD3: Floats = scale * (radial_CD[..., None] * inward_D3 + tangential_CD[..., None] * across_CD3)
    return field_CD3


def transfer(head: Head) -> Floats:
    """Factor (N,) of each degree between the potential in an infinite medium and that on the scalp.

    For one conductivity it is (2n+1)/n.
    """
    n_N = np.arange(1, head.degrees + 1, dtype=np.float64)
    # Columns: the answer to the harmonic part (a = 1) and to the dipole's own part (b = 1), both scaled to radius R.
    a_2N, b_2N = np.stack([np.ones_like(n_N), 0 * n_N]), np.stack([0 * n_N, np.ones_like(n_N)])
    for inner, (radius, next_radius) in enumerate(zip(head.radii[:-1], head.radii[1:], strict=True)):
        ratio = head.conductivities[inner] / head.conductivities[inner + 1]
        if inner == 0:
            a_2N, b_2N = _moved(a_2N, b_2N, n_N, radius / head.radius)
        potential, current = a_2N + b_2N, ratio * (n_N * a_2N - (n_N + 1) * b_2N)
        a_2N = ((n_N + 1) * potential + current) / (2 * n_N + 1)
        b_2N = (n_N * potential - current) / (2 * n_N + 1)
        a_2N, b_2N = _moved(a_2N, b_2N, n_N, next_radius / radius)
    # No current leaves the scalp: n a = (n + 1) b, with a = c a[0] + a[1] and b = c b[0] + b[1].
    harmonic = ((n_N + 1) * b_2N[1] - n_N * a_2N[1]) / (n_N * a_2N[0] - (n_N + 1) * b_2N[0])
    surface: Floats = harmonic * (a_2N[0] + b_2N[0]) + a_2N[1] + b_2N[1]
    return surface


def _moved(a: Floats, b: Floats, n_N: Floats, ratio: float) -> tuple[Floats, Floats]:
    """Both parts of the potential at a radius ``ratio`` times as large."""
    return a * ratio**n_N, b * ratio ** -(n_N + 1)
