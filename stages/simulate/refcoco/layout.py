"""The files: images, instances.json and refs(unc).p of both data sets as REFER has them, and simulation.json."""

# Shapes: H row, W column.

from __future__ import annotations

import io
import json
import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stages import artifacts
from stages.errors import StageError
from stages.refcoco import masks
from stages.runtime import progress, random_numbers
from stages.simulate.refcoco import choosing, drawing, scenes, shapes, textures, wording
from stages.simulate.refcoco.choosing import Chosen
from stages.simulate.refcoco.meanings import Facts
from stages.simulate.refcoco.options import Design, Simulation
from stages.simulate.refcoco.scenes import Scene
from stages.simulate.refcoco.shapes import CATEGORIES, CATEGORY_IDS, Group, Mask

IMAGES = Path("images/mscoco/images/train2014")
#: Data sets -> whether their sentences have words of place.
DATA_SETS = {"refcoco": True, "refcoco+": False}
REFS = "refs(unc).p"
#: Which group of shapes the sentences of a test part name; other parts name all.
GROUPS: dict[str, Group] = {"testA": "round", "testB": "angular"}
#: Scenes drawn for one image before the options are thought to be at fault.
TRIES = 1000


@dataclass(frozen=True)
class Said:
    """A sentence: what it names and means, its words, and the words as somebody may have typed them."""

    chosen: Chosen
    sentence: str
    raw: str

    @property
    def target(self) -> int:
        """The object that it names."""
        return self.chosen.target


@dataclass(frozen=True)
class Picture:
    """An image with its sentences by data set."""

    number: int
    split: str
    scene: Scene
    said: dict[str, tuple[Said, ...]]


def parts(design: Design) -> Iterator[tuple[str, int]]:
    """The split of each image, and its number in that split."""
    sizes = {"train": design.train, "val": design.validation, "testA": design.test_a, "testB": design.test_b}
    return ((split, number) for split, size in sizes.items() for number in range(size))


def write(folder: Path, simulation: Simulation) -> None:
    """Draw, and write the files; equal options give equal bytes."""
    (folder / IMAGES).mkdir(parents=True)
    photographs = textures.photographs(simulation.look.textures)
    files = Files()
    design = simulation.design
    total = design.train + design.validation + design.test_a + design.test_b
    for number, (split, place) in enumerate(progress(parts(design), "drawing", total=total, unit="images"), start=1):
        rng = random_numbers(simulation.seed, split, f"{place}")
        picture = compose(rng, simulation, number, split)
        image_HWC = drawing.draw(rng, picture.scene, simulation.look, photographs)
        low, high = simulation.look.jpeg_quality
        content = drawing.jpeg(image_HWC, int(rng.integers(low, high + 1)))
        (folder / IMAGES / file_name(number)).write_bytes(content)
        files.add(picture)
    files.write(folder)


def compose(rng: np.random.Generator, simulation: Simulation, number: int, split: str) -> Picture:
    """Draw scenes until one lets all sentences of both data sets be said.

    Raises
    ------
    StageError
        None of many scenes did.
    """
    count = simulation.design.sentences
    for _ in range(TRIES):
        scene = scenes.draw(rng, simulation.scene)
        facts = Facts(scene.shapes, scenes.measure(scene))
        one_object = bool(rng.random() < simulation.design.one_object)
        said = {}
        for name, places in DATA_SETS.items():
            spoken = speak(rng, facts, simulation, count, one_object=one_object, group=GROUPS.get(split), places=places)
            if spoken is None:
                break
            said[name] = spoken
        else:
            return Picture(number, split, scene, said)
    raise StageError(
        f"simulated scenes: none of {TRIES} scenes of split {split} has an object for each of {count} sentences. Under "
        "refcoco.simulated in params.yaml lower design.sentences or scene.same_kind, or raise scene.objects."
    )


def speak(
    rng: np.random.Generator,
    facts: Facts,
    simulation: Simulation,
    count: int,
    *,
    one_object: bool,
    group: Group | None,
    places: bool,
) -> tuple[Said, ...] | None:
    """Sentences of one data set, of one object or each of another, no sentence twice; None where one is missing."""
    allowed = [o for o, shape in enumerate(facts.shapes) if group in (None, CATEGORIES[shape.category].group)]
    if not allowed or (len(allowed) < count and not one_object):
        return None
    found: list[Said] = []
    for _ in range(count):
        chosen = choosing.choose(rng, facts, allowed, simulation.sentences, places=places)
        if chosen is None:
            return None
        sentence = wording.say(rng, chosen.meaning)
        if any(one.sentence == sentence for one in found):
            return None
        found.append(Said(chosen, sentence, wording.typed(rng, sentence)))
        allowed = [chosen.target] if one_object else [o for o in allowed if o != chosen.target]
    return tuple(found)


def file_name(image: int, annotation: int | None = None) -> str:
    """Name of an image's file; a ref's has the number of its annotation after that of the image."""
    return f"COCO_train2014_{image:012d}{'' if annotation is None else f'_{annotation}'}.jpg"


class Files:
    """What instances.json, the refs and simulation.json collect from image to image."""

    def __init__(self) -> None:
        self.images: list[dict[str, Any]] = []
        self.annotations: list[dict[str, Any]] = []
        self.refs: dict[str, list[dict[str, Any]]] = {name: [] for name in DATA_SETS}
        self.sentences = dict.fromkeys(DATA_SETS, 0)
        self.counts: dict[str, Counter[tuple[str, str]]] = {name: Counter() for name in DATA_SETS}

    def add(self, picture: Picture) -> None:
        """Add an image with its objects and sentences."""
        scene, number = picture.scene, picture.number
        self.images.append({"id": number, "file_name": file_name(number), "height": scene.height, "width": scene.width})
        first = len(self.annotations) + 1
        for place in range(len(scene.shapes)):
            self.annotations.append(annotation(scene, place, first + place, number))
        for name, said in picture.said.items():
            for target in dict.fromkeys(one.target for one in said):
                self._add_ref(name, picture, first + target, [one for one in said if one.target == target])
            for one in said:
                self.counts[name]["form", one.chosen.form] += 1
                self.counts[name]["sentences", picture.split] += 1

    def _add_ref(self, name: str, picture: Picture, annotation_id: int, said: list[Said]) -> None:
        numbers = list(range(self.sentences[name], self.sentences[name] + len(said)))
        self.sentences[name] += len(said)
        self.refs[name].append(
            {
                "sent_ids": numbers,
                "file_name": file_name(picture.number, annotation_id),
                "ann_id": annotation_id,
                "ref_id": len(self.refs[name]),
                "image_id": picture.number,
                "split": picture.split,
                "sentences": [
                    {"tokens": wording.tokens(one.sentence), "raw": one.raw, "sent_id": number, "sent": one.sentence}
                    for number, one in zip(numbers, said, strict=True)
                ],
                "category_id": CATEGORY_IDS[picture.scene.shapes[said[0].target].category],
            }
        )

    def write(self, folder: Path) -> None:
        """Write all but the images."""
        instances = {
            "info": {"description": "scenes of shapes, simulated by braid", "simulated": True},
            "licenses": [],
            "images": self.images,
            "annotations": self.annotations,
            "categories": [
                {"supercategory": category.group, "id": CATEGORY_IDS[name], "name": name}
                for name, category in CATEGORIES.items()
            ],
        }
        for name in DATA_SETS:
            (folder / name).mkdir()
            # On one line as COCO's own file; indented, a polygon would take a hundred lines.
            text = json.dumps(instances, sort_keys=True, allow_nan=False)
            (folder / name / "instances.json").write_text(text + "\n", encoding="utf-8")
            (folder / name / REFS).write_bytes(pickled(self.refs[name]))
        artifacts.write_json(folder / "simulation.json", self.description())

    def description(self) -> dict[str, Any]:
        """The content of simulation.json."""
        return {
            "simulated": True,
            "masks": "the pixels of an object that no other hides, exact",
            "images": len(self.images),
            "objects": len(self.annotations),
            "test_parts": GROUPS,
            "data_sets": {
                name: {
                    "refs": len(self.refs[name]),
                    "sentences": self._counted(name, "sentences"),
                    "forms": self._counted(name, "form"),
                }
                for name in DATA_SETS
            },
        }

    def _counted(self, name: str, what: str) -> dict[str, int]:
        return {key[1]: count for key, count in self.counts[name].items() if key[0] == what}


def annotation(scene: Scene, place: int, number: int, image: int) -> dict[str, Any]:
    """An object as instances.json has it: the pixels one sees, their count and their box."""
    visible_HW = scene.visible_OHW[place]
    return {
        "id": number,
        "image_id": image,
        "category_id": CATEGORY_IDS[scene.shapes[place].category],
        "segmentation": segmentation(scene, place, visible_HW, packed=number % 2 == 0),
        "area": int(visible_HW.sum()),
        "bbox": list(scenes.box(visible_HW)),
        "iscrowd": 0,
    }


def segmentation(scene: Scene, place: int, visible_HW: Mask, *, packed: bool) -> list[list[float]] | dict[str, Any]:
    """A polygon where one outline is all there is to see; else run lengths down the columns, packed as text or not."""
    shape = scene.shapes[place]
    outlines = shapes.placed(shape.category, shape.x, shape.y, shape.radius, shape.turn)
    whole = bool((visible_HW == scene.full_OHW[place]).all())
    framed = all((outline >= 0).all() and (outline <= [scene.width, scene.height]).all() for outline in outlines)
    if whole and framed and len(outlines) == 1:
        return [[float(value) for value in outlines[0].ravel()]]
    run_R = masks.from_mask(visible_HW)
    counts = masks.to_packed(run_R) if packed else run_R.tolist()
    return {"size": [scene.height, scene.width], "counts": counts}


def pickled(refs: list[dict[str, Any]]) -> bytes:
    """Refs as the file of REFER has them: a pickle that Python 2 reads, of plain lists, dicts, numbers and ASCII texts.

    The only pickle that Braid writes: readers of REFER's layout know no other file. It names no class and no function.
    """
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=2)
    # Without a memo equal values give equal bytes, whichever of them are one object.
    pickler.fast = True
    pickler.dump(refs)
    return stream.getvalue()
