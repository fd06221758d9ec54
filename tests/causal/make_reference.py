"""Write reference.json: what tigramite 5.2.10.1 returns for small series that the file itself holds.

Run from the repository root, with the peers installed: python -m tests.causal.make_reference
(or python tests/causal/make_reference.py). Only returned numbers are kept; the tests then need no peer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

try:
    from causal_peer import run_peer
except ImportError:
    from tests.causal.causal_peer import run_peer

REFERENCE = Path(__file__).parent / "reference.json"

CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "robust": {"test": "robust_parcorr"},
    "ties, robust": {"test": "robust_parcorr", "decimals": 0},
    "missing": {"missing": 0.05},
    "missing, robust": {"missing": 0.05, "test": "robust_parcorr"},
    "mask per target": {"mask": 0.2},
    "missing and common mask": {"missing": 0.05, "mask": 0.2, "common": True},
    "strict selection, capped": {"pc_alpha": 0.4, "max_conds_dim": 2, "max_conds_py": 2, "max_conds_px": 1},
    "lagged only": {"tau_min": 1, "pc_alpha": 0.01},
}


def series(rng: np.random.Generator, decimals: int) -> np.ndarray:
    data_TN = rng.standard_normal((90, 3))
    for t in range(2, 90):
        data_TN[t] += 0.5 * data_TN[t - 1]
        data_TN[t, 1] += 0.5 * data_TN[t - 2, 0]
        data_TN[t, 2] += 0.4 * data_TN[t, 1] - 0.4 * data_TN[t - 1, 0]
    return np.round(data_TN, decimals)


def main() -> None:
    cases = {}
    for seed, (name, settings) in enumerate(CASES.items()):
        rng = np.random.default_rng(seed)
        options = {"tau_max": 2, "pc_alpha": 0.2, **settings}
        data_TN = series(rng, options.pop("decimals", 3))
        data_TN[rng.random(data_TN.shape) < options.pop("missing", 0.0)] = np.nan
        share = options.pop("mask", 0.0)
        mask_TN = rng.random(data_TN.shape) < share if share else None
        if options.pop("common", False) and mask_TN is not None:
            mask_TN = np.repeat(mask_TN[:, :1], 3, axis=1)
        peer = run_peer(data_TN, mask_TN=mask_TN, **options)
        cases[name] = {
            "options": options,
            "data": [[None if np.isnan(v) else v for v in row] for row in data_TN.tolist()],
            "mask": None if mask_TN is None else mask_TN.astype(int).tolist(),
            "value": peer.value_NNL.tolist(),
            "p": peer.p_NNL.tolist(),
            "parents": peer.parents,
        }
    body = ",\n".join(f"{json.dumps(name)}: {json.dumps(case, allow_nan=False)}" for name, case in cases.items())
    REFERENCE.write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
