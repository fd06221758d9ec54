"""Where SEED's 62 electrodes lie on the sphere."""

# Shapes: C channel.

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: SEED's channels in the order of its files.
CHANNELS = (
    *("FP1", "FPZ", "FP2", "AF3", "AF4"),
    *("F7", "F5", "F3", "F1", "FZ", "F2", "F4", "F6", "F8"),
    *("FT7", "FC5", "FC3", "FC1", "FCZ", "FC2", "FC4", "FC6", "FT8"),
    *("T7", "C5", "C3", "C1", "CZ", "C2", "C4", "C6", "T8"),
    *("TP7", "CP5", "CP3", "CP1", "CPZ", "CP2", "CP4", "CP6", "TP8"),
    *("P7", "P5", "P3", "P1", "PZ", "P2", "P4", "P6", "P8"),
    *("PO7", "PO5", "PO3", "POZ", "PO4", "PO6", "PO8"),
    *("CB1", "O1", "OZ", "O2", "CB2"),
)
#: The cerebellar electrodes are no part of the 10-05 system; these positions lie nearest.
NEAREST = {"CB1": "PO9", "CB2": "PO10"}
#: The 10-05 positions on the Colin 27 head, which mne called standard_1005 up to version 1.12.
MONTAGE = "colin27_1005"


def directions() -> NDArray[np.float64]:
    """Unit vectors (C, 3) from the centre of the head to SEED's electrodes: right, front, top.

    The centre is that of the sphere that fits the 62 electrodes best in the least-squares sense.
    """
    import mne  # type: ignore[import-untyped]

    standard = mne.channels.make_standard_montage(MONTAGE).get_positions()["ch_pos"]
    positions = {name.upper(): place for name, place in standard.items()}
    place_C3 = np.array([positions[NEAREST.get(name, name)] for name in CHANNELS])
    from_centre_C3 = place_C3 - sphere_centre(place_C3)
    unit_C3: NDArray[np.float64] = from_centre_C3 / np.linalg.norm(from_centre_C3, axis=1, keepdims=True)
    return unit_C3


def sphere_centre(place_C3: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre (3,) of the sphere through points: |x|² = 2 x·c + (R² - |c|²) is linear in c."""
    design_C4 = np.column_stack([2 * place_C3, np.ones(len(place_C3))])
    solution, *_ = np.linalg.lstsq(design_C4, np.square(place_C3).sum(axis=1), rcond=None)
    return np.asarray(solution[:3], dtype=np.float64)
