"""Small sets in REFER's layout, ingested and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml
from PIL import Image

from stages import artifacts
from stages.ingest.refcoco import stage as ingest
from stages.validate.refcoco import stage
from tests.ingest.refcoco.refer_files import HEIGHT, IMAGES, WIDTH, annotation, encoded, instances, name, ref, write


def content(count: int) -> dict[str, Any]:
    """instances.json: so many images with an object each, of 8 by 6 pixels."""
    found = instances()
    found["images"] = [{"id": i, "file_name": name(i), "height": HEIGHT, "width": WIDTH} for i in range(1, count + 1)]
    found["annotations"] = [annotation(10 * i + 1, i) for i in range(1, count + 1)]
    return found


def photographs(root: Path, count: int) -> None:
    """An image of noise for each, no two the same."""
    for i in range(1, count + 1):
        image = Image.fromarray(np.random.default_rng(i).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8))
        (root / IMAGES / name(i)).write_bytes(encoded(image))


def twelve(folder: Path) -> Path:
    """Twelve images with a ref each: nine train, and one each of val, testA and testAB."""
    splits = ["train"] * 9 + ["val", "testA", "testAB"]
    listed = [ref(i, 10 * i + 1, i, f"thing {i}", split=split) for i, split in enumerate(splits, start=1)]
    root = write(folder, content=content(12), listed=listed)
    photographs(root, 12)
    return root


def validate(path: Path, **gate: Any) -> dict[str, Any]:
    """Ingest and judge the folder as the set ``mine``; summary.json."""
    block = {
        "sets": {"mine": {"path": str(path), "format": "refer", "gate": {}}},
        "images": {"longest": 640},
        "gate": {"small_mask": 0, **gate},
        "labelled": {"shares": [0.01, 0.5, 1.0], "draws": 2},
    }
    Path("params.yaml").write_text(yaml.safe_dump({"refcoco": block}))
    ingest.run(ingest.Params.read(name="refcoco", key="mine"), name="refcoco", key="mine")
    stage.run(stage.Params.read(name="refcoco", key="0"), name="refcoco", key="0")
    found: dict[str, Any] = artifacts.read_json(artifacts.validated("refcoco") / "summary.json")
    return found
