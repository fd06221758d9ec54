"""Predictions of sentences in the frame of their image, as intersections and unions in pixels.

Shape suffixes: S sentence of a set, N sentence predicted, H W pixels at the network's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stages.accepted.refcoco import Accepted
from stages.refcoco.masks import decode, from_mask

RUN: dict[str, Any] = {"set": pl.String, "share": pl.Float64, "arm": pl.String}
PREDICTIONS: dict[str, Any] = RUN | {
    "part": pl.String,
    "sentence_id": pl.Int64,
    "record_id": pl.String,
    "image_id": pl.Int64,
    "intersection": pl.Int64,
    "union": pl.Int64,
    "small_runs": pl.List(pl.UInt32),
}
HISTORY: dict[str, Any] = RUN | {
    "step": pl.Int64,
    "loss": pl.Float64,
    "validation_miou": pl.Float64,
    "validation_oiou": pl.Float64,
    "chosen": pl.Boolean,
}
ROUNDS: dict[str, Any] = RUN | {
    "round": pl.Int64,
    **dict.fromkeys(("pool", "accepted", "accepted_teacher", "accepted_prior", "accepted_fusion"), pl.Int64),
    **dict.fromkeys(("precision", "recall", "iou", "pixel_precision", "pixel_recall", "weight"), pl.Float64),
}
POLICY: dict[str, Any] = RUN | {
    "step": pl.Int64,
    "reward": pl.Float64,
    "validation_reward": pl.Float64,
    "entropy": pl.Float64,
    "accepted": pl.Float64,
    "chosen": pl.Boolean,
}


def prediction_rows(
    run: dict[str, Any], accepted: Accepted, sentence_N: NDArray[np.int64], map_NHW: Tensor, part: str
) -> list[dict[str, Any]]:
    """Rows of predictions.parquet: a map is brought to the image's own size before it is compared with the mask."""
    rows = []
    for s, map_HW in zip(sentence_N.tolist(), map_NHW.cpu(), strict=True):
        o = int(accepted.object_S[s])
        i = int(accepted.image_O[o])
        height, width = accepted.size_I2[i].tolist()
        predicted = enlarged(map_HW, height, width)
        truth = decode(accepted.run_F[accepted.start_O1[o] : accepted.start_O1[o + 1]], height, width)
        rows.append(
            run
            | {
                "part": part,
                "sentence_id": int(accepted.sentence_id_S[s]),
                "record_id": accepted.record_S[s],
                "image_id": int(accepted.image_id_I[i]),
                "intersection": int((predicted & truth).sum()),
                "union": int((predicted | truth).sum()),
                "small_runs": from_mask(map_HW.numpy() > 0.5).tolist(),
            }
        )
    return rows


def enlarged(map_HW: Tensor, height: int, width: int) -> NDArray[np.bool_]:
    """Pixels of an image of this size where a map, interpolated bilinearly, is above a half."""
    found = functional.interpolate(map_HW[None, None], size=(height, width), mode="bilinear", align_corners=False)
    return np.asarray(found[0, 0].numpy() > 0.5)


def table(rows: Sequence[dict[str, Any]], schema: dict[str, Any]) -> pl.DataFrame:
    """Rows as a table; NaN becomes null."""
    frame = pl.DataFrame(rows, schema=schema)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))
