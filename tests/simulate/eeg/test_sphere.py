"""Potentials of dipoles on spheres: closed forms, symmetries and mne's answer."""

from __future__ import annotations

import mne
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from stages.simulate.eeg import electrodes
from stages.simulate.eeg.sphere import Head, lead_field, transfer

Floats = NDArray[np.float64]
SIGMA = 0.33
HOMOGENEOUS = Head(radii=(0.080, 0.086, 0.092), conductivities=(SIGMA, SIGMA, SIGMA), degrees=200)


def closed_form(electrode: Floats, position: Floats, radius: float) -> Floats:
    """Potential (3,) of unit dipoles on a homogeneous sphere: the gradient of 2/d + ln(2R / (R - x·r0 + d)) / R."""
    difference = radius * electrode - position
    distance = np.linalg.norm(difference)
    potential: Floats = 2 * difference / distance**3
    potential += (electrode + difference / distance) / (radius * (radius - electrode @ position + distance))
    return potential / (4 * np.pi * SIGMA)


def directions(count: int, seed: int = 0) -> Floats:
    vectors = np.random.default_rng(seed).normal(size=(count, 3))
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_equal_conductivities_are_the_homogeneous_sphere() -> None:
    electrode_C3, position_D3 = directions(7), directions(5, 1) * [[0.01], [0.03], [0.05], [0.06], [0.07]]
    expected = [[closed_form(e, p, HOMOGENEOUS.radius) for p in position_D3] for e in electrode_C3]
    np.testing.assert_allclose(lead_field(electrode_C3, position_D3, HOMOGENEOUS), expected, rtol=1e-9)


def test_one_sphere_has_the_factors_of_its_series() -> None:
    n = np.arange(1, 201)
    np.testing.assert_allclose(transfer(HOMOGENEOUS), (2 * n + 1) / n, rtol=1e-12)
    np.testing.assert_allclose(transfer(Head((0.092,), (SIGMA,), 200)), (2 * n + 1) / n, rtol=1e-12)


def test_a_dipole_at_the_centre() -> None:
    """3 p cos / (4 π σ R²): three times the potential in an infinite medium."""
    field = lead_field(np.eye(3), np.zeros((1, 3)), HOMOGENEOUS)[:, 0]
    np.testing.assert_allclose(field, 3 / (4 * np.pi * SIGMA * 0.092**2) * np.eye(3), atol=1e-9)


def test_the_mean_over_the_whole_surface_is_zero() -> None:
    node, weight = np.polynomial.legendre.leggauss(60)
    longitude = np.arange(120) * np.pi / 60
    ring = np.sqrt(1 - node**2)[:, None] * np.stack([np.cos(longitude), np.sin(longitude)])[:, None, :]
    surface = np.stack([*ring, np.broadcast_to(node[:, None], ring[0].shape)], axis=-1)
    field = lead_field(surface.reshape(-1, 3), np.array([[0.02, -0.03, 0.05]]), Head()).reshape(60, 120, 3)
    mean = np.einsum("n,nli->i", weight, field) / 240
    np.testing.assert_allclose(mean, 0, atol=1e-9 * np.abs(field).max())


def test_a_turned_head_with_turned_dipoles_shows_the_same() -> None:
    turn = Rotation.from_rotvec([0.3, -1.1, 0.7]).as_matrix()
    electrode_C3, position_D3 = directions(6), 0.06 * directions(4, 1)
    turned = lead_field(electrode_C3 @ turn.T, position_D3 @ turn.T, Head())
    np.testing.assert_allclose(turned, lead_field(electrode_C3, position_D3, Head()) @ turn.T, rtol=1e-8, atol=1e-9)


def test_the_skull_weakens_and_blurs() -> None:
    angle = np.linspace(0, np.pi / 2, 181)
    arc = np.stack([np.sin(angle), 0 * angle, np.cos(angle)], axis=1)
    below = np.array([[0, 0, 0.072]])
    real, open_head = (lead_field(arc, below, head)[:, 0, 2] for head in (Head(), HOMOGENEOUS))
    assert real[0] < open_head[0] / 3

    def half_width(curve: Floats) -> float:
        return float(angle[np.argmax(curve < curve[0] / 2)])

    assert half_width(real) > 1.5 * half_width(open_head)


def test_the_same_as_mne() -> None:
    """mne approximates the shells by three dipoles in one sphere (Berg and Scherg 1994): equal within 2 %."""
    head = Head(radii=(0.081, 0.085, 0.090), conductivities=(0.33, 0.0042, 0.33))
    names = [name for name in electrodes.CHANNELS if name not in electrodes.NEAREST]
    place_C3 = electrodes.directions()[[electrodes.CHANNELS.index(name) for name in names]]
    info = mne.create_info(names, 200.0, "eeg")
    montage = dict(zip(names, 0.090 * place_C3, strict=True))
    info.set_montage(mne.channels.make_dig_montage(montage, coord_frame="head"))
    sphere = mne.make_sphere_model(
        (0, 0, 0), 0.090, info, relative_radii=(0.9, 85 / 90, 1.0), sigmas=head.conductivities, verbose="ERROR"
    )
    position_D3 = np.array([[0.0, 0.0, 0.06], [0.03, 0.02, 0.04], [-0.05, 0.0, 0.01]])
    source = mne.setup_volume_source_space(
        pos={"rr": position_D3, "nn": np.tile([0.0, 0.0, 1.0], (3, 1))}, sphere=sphere, verbose="ERROR"
    )
    forward = mne.make_forward_solution(info, None, source, sphere, meg=False, verbose="ERROR")
    found = forward["sol"]["data"].reshape(len(names), 3, 3)
    expected = lead_field(place_C3, position_D3, head)
    centred = expected - expected.mean(axis=0)
    difference = found - found.mean(axis=0) - centred
    assert np.linalg.norm(difference) < 0.02 * np.linalg.norm(centred)


def test_a_dipole_outside_the_brain_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a dipole at 0\.0810 m lies outside the brain of 0\.0800 m"):
        lead_field(np.eye(3), np.array([[0.081, 0, 0]]), Head())


def test_the_electrodes_lie_where_their_names_say() -> None:
    place = dict(zip(electrodes.CHANNELS, electrodes.directions(), strict=True))
    assert len(place) == 62
    assert place["T7"][0] < -0.9 < 0.9 < place["T8"][0]
    assert place["CZ"][2] > 0.95
    assert place["FPZ"][1] > 0.85
    assert place["OZ"][1] < -0.85
    mirrored = {"FP1": "FP2", "C3": "C4", "PO7": "PO8", "CB1": "CB2"}
    for left, right in mirrored.items():
        np.testing.assert_allclose(place[left] * [-1, 1, 1], place[right], atol=0.1)


def test_the_centre_of_a_sphere_through_points() -> None:
    points = [0.01, -0.02, 0.03] + 0.09 * directions(20)
    np.testing.assert_allclose(electrodes.sphere_centre(points), [0.01, -0.02, 0.03], atol=1e-12)
