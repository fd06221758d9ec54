"""Write pcmci_plus_reference.json: what tigramite 5.2.10.1 returns for small series that the file itself holds.

Run from the repository root, with the peers installed: python tests/causal/make_pcmci_plus_reference.py
Only returned numbers are kept; the tests then need no peer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2]), str(Path(__file__).resolve().parent)]

from contemporaneous import random_system  # noqa: E402
from pcmci_plus_peer import run_peer_plus  # noqa: E402

from stages.causal.assumptions import LinkAssumptions  # noqa: E402

REFERENCE = Path(__file__).parent / "pcmci_plus_reference.json"

CASES: dict[str, dict[str, Any]] = {
    "majority": {},
    "conservative": {"collider_rule": "conservative"},
    "no rule": {"collider_rule": "none", "conflict_resolution": False},
    "robust": {"test": "robust_parcorr"},
    "missing": {"missing": 0.03},
    "limits": {"max_conds_dim": 2, "max_conds_py": 2, "max_conds_px": 1},
    "assumptions": {
        "assumptions": {"forbidden": [[0, 1, 1], [2, 3, 0]], "required": [[1, 0, 2]], "oriented": [[0, 1, 0]]}
    },
}


def main() -> None:
    cases = {}
    for seed, (name, settings) in enumerate(CASES.items()):
        rng = np.random.default_rng(seed)
        options = {"tau_max": 2, "pc_alpha": 0.1, **settings}
        data_TN = np.round(random_system(rng, steps=100, variables=5, contemporaneous=0.6), 3)
        data_TN[rng.random(data_TN.shape) < options.pop("missing", 0.0)] = np.nan
        links = options.get("assumptions")
        assumed = None if links is None else LinkAssumptions(**links)
        peer = run_peer_plus(data_TN, **{**options, "assumptions": assumed})
        cases[name] = {
            "options": options,
            "data": [[None if np.isnan(v) else v for v in row] for row in data_TN.tolist()],
            "value": peer.value_NNL.tolist(),
            "p": peer.p_NNL.tolist(),
            "graph": peer.graph_NNL.tolist(),
            "ambiguous": peer.ambiguous,
        }
    body = ",\n".join(f"{json.dumps(name)}: {json.dumps(case, allow_nan=False)}" for name, case in cases.items())
    REFERENCE.write_text("{\n" + body + "\n}\n")


if __name__ == "__main__":
    main()
