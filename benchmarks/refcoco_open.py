"""A set of RefCOCO's size: ingest, and opening what it wrote beside building the dicts of a REFER-style reader.

    python benchmarks/refcoco_open.py            19,994 images, 196,771 annotations, 50,000 refs, 142,210 sentences
    python benchmarks/refcoco_open.py --quick    a hundredth of that, a smoke test

The set is made up, with polygons of 6 to 40 points and sentences of 1 to 8 words, and has no photographs: ingest notes
them as missing, so that its figures are those of tables and masks. Each side opens the set in a process of its own,
three times; seconds are processor time, the median; memory is the peak of the process above the peak after its imports.

refcoco_open
    ours: images (without their bytes), objects with boxes and masks, refs and sentences from parquet, and the indexes
    that answer what the dicts answer (refs and objects of an image, sentences of a ref, object of a ref, refs of a
    category). peer: json and pickle, then the twelve dicts that REFER's own class has. `equal`: both answer alike for
    500 refs.
refcoco_open.ingest
    `ingest`, which also rasterises all masks, beside the peer's opening alone.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
RUNS, ASKED, MEBI = 3, 500, 2**20
IMAGES, OBJECTS, REFS, SENTENCES = 19_994, 196_771, 50_000, 142_210
WORDS = [
    "man",
    "woman",
    "left",
    "right",
    "red",
    "blue",
    "shirt",
    "dog",
    "car",
    "the",
    "on",
    "in",
    "front",
    "behind",
    "second",
    "from",
    "with",
    "table",
    "white",
    "black",
]

PEER = """
import json, pickle, sys
from collections import defaultdict
folder, asked = sys.argv[1], json.loads(sys.argv[2])
before = note()
with open(f"{folder}/refcoco/instances.json") as stream:
    instances = json.load(stream)
with open(f"{folder}/refcoco/refs(unc).p", "rb") as stream:
    refs = pickle.load(stream, encoding="latin1")
Imgs = {image["id"]: image for image in instances["images"]}
Cats = {category["id"]: category["name"] for category in instances["categories"]}
Anns, imgToAnns = {}, defaultdict(list)
for ann in instances["annotations"]:
    Anns[ann["id"]] = ann
    imgToAnns[ann["image_id"]].append(ann)
Refs, imgToRefs, refToAnn, annToRef, catToRefs = {}, defaultdict(list), {}, {}, defaultdict(list)
Sents, sentToRef, sentToTokens = {}, {}, {}
for ref in refs:
    Refs[ref["ref_id"]] = ref
    imgToRefs[ref["image_id"]].append(ref)
    catToRefs[ref["category_id"]].append(ref)
    refToAnn[ref["ref_id"]] = Anns[ref["ann_id"]]
    annToRef[ref["ann_id"]] = ref
    for sent in ref["sentences"]:
        Sents[sent["sent_id"]] = sent
        sentToRef[sent["sent_id"]] = ref
        sentToTokens[sent["sent_id"]] = sent["tokens"]
after = note()
answers = [
    [
        [sentToTokens[sent["sent_id"]] for sent in Refs[i]["sentences"]],
        refToAnn[i]["bbox"],
        sorted(ref["ref_id"] for ref in imgToRefs[Refs[i]["image_id"]]),
        sorted(ann["id"] for ann in imgToAnns[Refs[i]["image_id"]]),
        len(catToRefs[Refs[i]["category_id"]]),
    ]
    for i in asked
]
say(before, after, answers)
"""

OURS = """
import json, sys
import numpy as np
import polars as pl
folder, asked = sys.argv[1], json.loads(sys.argv[2])
before = note()
refs = pl.read_parquet(f"{folder}/refs.parquet")
sentences = pl.read_parquet(f"{folder}/sentences.parquet", columns=["sentence_id", "record_id", "sentence", "tokens"])
objects = pl.read_parquet(f"{folder}/objects.parquet")
images = pl.scan_parquet(f"{folder}/images/*.parquet").select("image_id", "file_name", "height", "width").collect()

def index(values):
    values = np.asarray(values)
    order = np.argsort(values, kind="stable")
    return order, values[order]

ref_at, image_of, object_at = index(refs["ref_id"]), index(refs["image_id"]), index(objects["object_id"])
objects_of, category_of = index(objects["image_id"]), index(refs["category_id"])
sentence_start = np.concatenate([[0], np.cumsum(refs["sentences"].to_numpy())])

def rows(found, value):
    order, values = found
    low, high = np.searchsorted(values, [value, value + 1])
    return order[low:high]

after = note()
boxes = objects.select("box_x", "box_y", "box_width", "box_height")
answers = []
for i in asked:
    (row,) = rows(ref_at, i)
    image, one, category = refs["image_id"][int(row)], refs["object_id"][int(row)], refs["category_id"][int(row)]
    low, high = sentence_start[row], sentence_start[row + 1]
    answers.append([
        sentences["tokens"][int(low) : int(high)].to_list(),
        list(boxes.row(int(rows(object_at, one)[0]))),
        sorted(refs["ref_id"].gather(rows(image_of, image)).to_list()),
        sorted(objects["object_id"].gather(rows(objects_of, image)).to_list()),
        len(rows(category_of, category)),
    ])
say(before, after, answers)
"""

FRAME = """
import json, sys, time
def note():
    # Not ru_maxrss: a child inherits its parent's.
    with open("/proc/self/status") as stream:
        peak = next(int(line.split()[1]) for line in stream if line.startswith("VmHWM"))
    return time.process_time(), peak
def say(before, after, answers):
    print(json.dumps([after[0] - before[0], (after[1] - before[1]) / 1024, answers]))
"""


def make(folder: Path, scale: float) -> None:
    """Write the made-up set; equal arguments give equal bytes."""
    rng = np.random.default_rng(0)
    images, objects, refs, sentences = (max(20, int(count * scale)) for count in (IMAGES, OBJECTS, REFS, SENTENCES))
    image_O = np.sort(np.concatenate([np.arange(images), rng.integers(0, images, objects - images)]))
    annotations = []
    for number, image in enumerate(image_O.tolist()):
        left, top = rng.uniform(0, 400, 2)
        points = rng.integers(6, 41)
        angle = np.sort(rng.uniform(0, 2 * np.pi, points))
        radius = rng.uniform(20, 60, points)
        xy_P2 = np.round([left + 80 + radius * np.cos(angle), top + 80 + radius * np.sin(angle)], 2).T
        low, high = xy_P2.min(axis=0), xy_P2.max(axis=0)
        annotations.append(
            {
                "id": number + 1,
                "image_id": image + 1,
                "category_id": int(rng.integers(1, 81)),
                "bbox": [*np.round(low, 2).tolist(), *np.round(high - low, 2).tolist()],
                "area": float(np.prod(high - low)) * 0.6,
                "iscrowd": 0,
                "segmentation": [xy_P2.reshape(-1).tolist()],
            }
        )
    chosen = np.sort(rng.choice(objects, refs, replace=False))
    extra = np.bincount(rng.integers(0, refs, sentences - refs), minlength=refs)
    listed, sentence_id = [], 0
    for number, one in enumerate(chosen.tolist()):
        mine = []
        for _ in range(1 + int(extra[number])):
            tokens = [WORDS[word] for word in rng.integers(0, len(WORDS), rng.integers(1, 9))]
            text = " ".join(tokens)
            mine.append({"tokens": tokens, "raw": text, "sent_id": sentence_id, "sent": text})
            sentence_id += 1
        found = annotations[one]
        listed.append(
            {
                "ref_id": number,
                "ann_id": found["id"],
                "image_id": found["image_id"],
                "category_id": found["category_id"],
                "file_name": f"COCO_train2014_{found['image_id']:012d}_{found['id']}.jpg",
                "split": "train",
                "sent_ids": [sentence["sent_id"] for sentence in mine],
                "sentences": mine,
            }
        )
    data = folder / "refcoco"
    data.mkdir(parents=True)
    table = [
        {"id": i + 1, "file_name": f"COCO_train2014_{i + 1:012d}.jpg", "height": 640, "width": 640}
        for i in range(images)
    ]
    content = {
        "images": table,
        "annotations": annotations,
        "categories": [{"id": i, "name": f"category {i}"} for i in range(1, 81)],
    }
    (data / "instances.json").write_text(json.dumps(content))
    (data / "refs(unc).p").write_bytes(pickle.dumps(listed, protocol=2))


def opened(script: str, folder: Path, asked: list[int]) -> tuple[float, float, Any]:
    """Seconds, MiB and answers of one side, each figure the median of the runs."""
    runs = []
    for _ in range(RUNS):
        output = subprocess.run(
            [sys.executable, "-c", FRAME + script, str(folder), json.dumps(asked)],
            capture_output=True,
            text=True,
            check=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        ).stdout
        runs.append(json.loads(output))
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs), runs[0][2]


def ingest(folder: Path) -> tuple[float, float]:
    """Processor seconds and peak MiB of ``ingest``."""
    script = """
import runpy, sys
sys.argv = ["stages", "ingest", "refcoco@lab"]
before = (0.0, 0)
try:
    runpy.run_module("stages", run_name="__main__")
except SystemExit as end:
    assert not end.code, end.code
say(before, note(), None)
"""
    params = "refcoco: {sets: {lab: {path: raw, format: refer}}, images: {longest: 640}}\n"
    (folder / "params.yaml").write_text(params)
    output = subprocess.run(
        [sys.executable, "-c", FRAME + script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ).stdout
    seconds, mebibytes, _ = json.loads(output.splitlines()[-1])
    return seconds, mebibytes


def say(**line: Any) -> None:
    """One JSON object a line."""
    print(json.dumps({key: round(value, 3) if isinstance(value, float) else value for key, value in line.items()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    scale = 0.01 if options.quick else 1.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "raw", scale)
        refs = max(20, int(REFS * scale))
        asked = np.random.default_rng(1).choice(refs, min(ASKED, refs), replace=False).tolist()
        ingest_s, ingest_mb = ingest(folder)
        ours_s, ours_mb, ours = opened(OURS, folder / "data/ingested/refcoco/lab", asked)
        peer_s, peer_mb, theirs = opened(PEER, folder / "raw", asked)
        work = f"{refs} refs, {max(20, int(SENTENCES * scale))} sentences"
        shared = {"peer": "REFER-style dicts", "peer_s": peer_s, "peer_mb": peer_mb}
        say(
            name="refcoco_open",
            work=work,
            ours_s=ours_s,
            **shared,
            ratio=peer_s / ours_s,
            ours_mb=ours_mb,
            memory=ours_mb / peer_mb,
            equal=ours == theirs,
        )
        say(
            name="refcoco_open.ingest",
            work=work,
            ours_s=ingest_s,
            **shared,
            ratio=peer_s / ingest_s,
            ours_mb=ingest_mb,
        )


if __name__ == "__main__":
    main()
