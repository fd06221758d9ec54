"""Masks decoded to one size beside pycocotools, and their equality.

    python benchmarks/refcoco_masks.py --peers FOLDER    a virtual environment with pycocotools, numpy and pillow

2,000 masks of polygons in 640 x 480 pixels, as COCO's packed text. Both sides give all masks at one size by the nearest
pixel: ours in one call that never builds a mask at its own size, the peer by `decode` of each, then numpy's indexing or
Pillow's resize, whichever is faster. Seconds are processor time for a thousand masks, the least of five turns in each
side's own process. `equal` compares every pixel with numpy's (Pillow rounds ties either way); `areas` compares
pycocotools' areas of the same polygons with ours.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

COUNT, HEIGHT, WIDTH, TURNS = 2_000, 480, 640, 5
SIZES = (48, 224, 480)

PEER = """
import hashlib, json, sys, time
import numpy as np
from PIL import Image
from pycocotools import mask
polygons, texts, height, width, sizes, turns = json.load(sys.stdin)
areas = [int(mask.area(mask.frPyObjects([polygon], height, width)[0])) for polygon in polygons]
found = {"areas": areas}
def by_pillow(full, size):
    return np.asarray(Image.fromarray(full).resize((size, size), 0))
def by_numpy(full, size):
    rows, columns = ((2 * np.arange(size) + 1) * side // (2 * size) for side in full.shape)
    return full[np.ix_(rows, columns)]
for size in sizes:
    least = 1e9
    for way in (by_pillow, by_numpy):
        for _ in range(turns):
            begun = time.process_time()
            small = np.stack([way(mask.decode({"size": [height, width], "counts": text}), size) for text in texts])
            least = min(least, time.process_time() - begun)
    found[str(size)] = [least, hashlib.sha256(np.ascontiguousarray(small).tobytes()).hexdigest()]
print(json.dumps(found))
"""


def polygons() -> list[list[float]]:
    """Star-shaped outlines; equal on every machine."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(COUNT):
        points = rng.integers(6, 60)
        angle = np.sort(rng.uniform(0, 2 * np.pi, points))
        radius = rng.uniform(10, 200, points)
        middle = rng.uniform(0, [[WIDTH], [HEIGHT]])
        xy_P2 = (middle + radius * np.array([np.cos(angle), np.sin(angle)])).T
        found.append(np.round(xy_P2, 2).reshape(-1).tolist())
    return found


def main() -> None:
    import hashlib

    from stages.refcoco import masks

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    outlines = polygons()
    runs = [masks.from_polygons([outline], HEIGHT, WIDTH) for outline in outlines]
    texts = [masks.to_packed(run_R) for run_R in runs]
    size_M2 = np.tile([HEIGHT, WIDTH], (COUNT, 1))
    theirs: dict[str, Any] = {}
    if options.peers is None:
        print(json.dumps({"name": "refcoco_masks", "skipped": "no --peers FOLDER"}))
    else:
        sent = json.dumps([outlines, texts, HEIGHT, WIDTH, SIZES, TURNS])
        python = options.peers.absolute() / "bin" / "python"
        output = subprocess.run([python, "-c", PEER], input=sent, capture_output=True, text=True, check=True).stdout
        theirs = json.loads(output)
    for size in SIZES:
        seconds = []
        for _ in range(TURNS):
            begun = time.process_time()
            run_F, start_M = masks.flat([masks.from_packed(text, HEIGHT, WIDTH) for text in texts])
            small = masks.decode_small(run_F, start_M, size_M2, size, size)
            seconds.append(time.process_time() - begun)
        line: dict[str, Any] = {"name": "refcoco_masks", "work": f"1,000 masks of 480 x 640 to {size} x {size}"}
        line["ours_s"] = round(1000 * min(seconds) / COUNT, 4)
        if theirs:
            peer_s, digest = theirs[str(size)]
            line |= {
                "peer": "pycocotools",
                "peer_s": round(1000 * peer_s / COUNT, 4),
                "ratio": round(peer_s / min(seconds), 2),
                "equal": digest == hashlib.sha256(small.tobytes()).hexdigest(),
                "areas": theirs["areas"] == [masks.area(run_R) for run_R in runs],
            }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
