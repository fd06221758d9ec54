"""Settings of the RNA transfer study; the names of its arms and tasks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, field_validator, model_validator

from stages.params import Config

DOMAIN = "rna"
#: Arm -> how the report names it. All arms of a task have the same head, start of the head, molecules and schedule.
ARMS = {
    "random": "random initialisation, all weights trained",
    "fine_tuned": "pre-trained, all weights trained",
    "frozen": "pre-trained and frozen, head trained",
    "random_frozen": "random initialisation, frozen, head trained",
    "lower": "lower layers pre-trained, the rest random, all weights trained",
    "upper": "upper layers pre-trained, the rest random, all weights trained",
    "shuffled": "pre-trained weights shuffled within each tensor, all weights trained",
    "one_hot": "no encoder: one-hot bases, head trained",
    "mfe": "minimum free energy by ViennaRNA, no training",
}
BASELINE = "random"
#: Arms that start from pre-trained weights, and those whose encoder is trained.
PRETRAINED = ("fine_tuned", "frozen", "lower", "upper", "shuffled")
TRAINED = ("random", "fine_tuned", "lower", "upper", "shuffled")
#: Arms that have no encoder, and so neither size nor pre-training length.
ENCODERLESS = ("one_hot", "mfe")

#: Task -> how the report names it, in order of alignment with pre-training and folding.
TASKS = {
    "base_pairs": "base pairs",
    "paired": "paired or unpaired bases",
    "rna_type": "RNA type of the molecule",
    "gc_shuffled": "GC share around each base of shuffled molecules",
}
ALIGNMENT = {"base_pairs": "aligned", "paired": "aligned", "rna_type": "functional", "gc_shuffled": "misaligned"}
#: Task -> the metric of its history: its name, and what a prediction without knowledge has.
METRICS = {
    "base_pairs": ("mean F1 of the molecules", 0.0),
    "paired": ("AUROC of the bases", 0.5),
    "rna_type": ("mean recall of the types", None),
    "gc_shuffled": ("R2 of the bases", 0.0),
}

Arm = Literal[
    "random", "fine_tuned", "frozen", "random_frozen", "lower", "upper", "shuffled", "one_hot", "mfe"
]  # fmt: skip
Task = Literal["base_pairs", "paired", "rna_type", "gc_shuffled"]
Positive = Annotated[int, Field(ge=1)]


class Size(Config):
    """One size of the encoder, and how long it is pre-trained."""

    width: int = Field(ge=8, description="units of a base")
    layers: int = Field(ge=1, description="transformer layers")
    heads: int = Field(ge=1, description="attention heads of a layer; width is an even multiple of it")
    tokens: list[Positive] = Field(
        description="pre-training lengths in bases, each a run of its own whose learning rate ends at 0; none: left out"
    )

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(f"width is {self.width}, and should be an even multiple of heads, {self.heads}")
        if len(set(self.tokens)) < len(self.tokens):
            raise ValueError("one of the tokens stands twice")
        return self


class LocalModel(Config):
    """An encoder of the multimolecule library in a local folder, as its ``save_pretrained`` writes it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="how tables name it")
    path: Path = Field(description="folder with config.json, weights and the tokenizer's files")


class Pretraining(Config):
    """Masked language modelling on the families of the pre-training split."""

    batch: int = Field(ge=16, description="bases in an update, about; molecules are never padded")
    piece: int = Field(ge=8, description="longer molecules are read in pieces of this many bases")
    mask: float = Field(gt=0, lt=1, description="share of the bases to predict: 80 % masked, 10 % replaced, 10 % kept")
    learning_rate: float = Field(gt=0, description="AdamW's largest learning rate; it falls to 0 along a cosine")
    warmup: float = Field(ge=0, lt=1, description="share of the updates in which the learning rate rises")
    weight_decay: float = Field(ge=0, description="AdamW's decoupled weight decay")
    check: int = Field(ge=1, description="updates between rows of the history")
    checkpoint: int = Field(ge=1, description="updates between checkpoints, from which a killed run goes on")


class Molecules(Config):
    """How many molecules of a task are drawn from a part of the split: families take turns."""

    train: int = Field(ge=1, description="training molecules at most")
    validation: int = Field(ge=1, description="validation molecules at most; they choose the checked step")
    test: int = Field(ge=1, description="test molecules at most; the same for every seed of a split")
    external: int = Field(ge=0, description="molecules without a family, such as PDB structures, tested beside them")
    per_family: int = Field(ge=1, description="molecules of one family at most")
    length: dict[Task, Positive] = Field(
        description="longest molecule of each task in bases; longer ones are left out and counted"
    )


class PairHead(Config):
    """The head of base pairs: every two bases joined, then two convolutions over pairs."""

    joined: Literal["product", "concatenation"] = Field(
        description="how two bases are joined: projections multiplied, or concatenated before a dense layer"
    )
    channels: int = Field(ge=1, description="channels of a pair of bases")
    kernel: int = Field(ge=1, description="width of the convolutions over pairs, odd")
    canonical: bool = Field(description="whether decoding allows AU, GC and GU only")

    @model_validator(mode="after")
    def _odd(self) -> Self:
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel is {self.kernel}, and should be odd")
        return self


class Finetuning(Config):
    """The schedule that every arm of a task has."""

    epochs: dict[Task, Positive] = Field(description="passes over the training molecules of each task")
    frozen_epochs: dict[Task, Positive] = Field(description="the same for arms whose encoder is not trained")
    batch: int = Field(ge=1, description="molecules in an update")
    learning_rate: float = Field(gt=0, description="AdamW's largest learning rate of the encoder")
    head_learning_rate: float = Field(gt=0, description="that of the head")
    weight_decay: float = Field(ge=0, description="AdamW's decoupled weight decay")
    checks: int = Field(ge=1, description="looks at the validation molecules after step 0, evenly spread")


class Geometry(Config):
    """Similarity of layers, distance from the start, and sharpness at matched training loss."""

    tasks: list[Task] = Field(description="tasks whose arms' sharpness is measured; [] for none")
    arms: list[Arm] = Field(description="arms whose sharpness is measured: such as train all weights")
    molecules: int = Field(ge=1, description="training molecules that the loss is taken over")
    products: int = Field(ge=1, description="Hessian-vector products of the eigenvalue at most")
    probes: int = Field(ge=2, description="random vectors of the trace")
    radius: float = Field(gt=0, description="epsilon-ball: radius relative to the weights")
    ascents: int = Field(ge=1, description="epsilon-ball: ascents from random points")
    points: int = Field(ge=3, description="places on the line between two solutions")
    twins: bool = Field(description="train each arm a second time from its start, in another order, for the barrier")
    bases: int = Field(ge=4, description="bases of validation molecules that layers are compared on (CKA)")

    @model_validator(mode="after")
    def _all_trained(self) -> Self:
        odd = [arm for arm in self.arms if arm not in TRAINED]
        if odd:
            raise ValueError(f"{', '.join(odd)} should not be among the arms: their encoder is not trained")
        return self


class Train(Config):
    """The transfer study: sizes, lengths, tasks, arms, and their settings."""

    sets: Literal["all"] | Annotated[list[str], Field(min_length=1)] = Field(
        "all", description="sets to learn from, keys of rna.sets; `all`: whatever was ingested"
    )
    splits: list[str] = Field(
        min_length=1, description="splits with a pre-training part, such as transfer-0; seed s takes number s, in turns"
    )
    sizes: dict[str, Size] = Field(description="encoders by name, without those that have no tokens; the first leads")
    local_models: list[LocalModel] = Field([], description="further encoders of multimolecule, from local folders")
    tasks: list[Task] = Field(min_length=1, description="downstream tasks; the first leads")
    arms: list[Arm] = Field(min_length=1, description="arms of every task, size and pre-training length")
    lower: float = Field(gt=0, lt=1, description="share of the layers that count as lower ones, rounded to at least 1")
    window: int = Field(ge=1, description="gc_shuffled: bases on each side that the GC share is taken over")
    families: int = Field(ge=1, description="rna_type: training families that a type has at least")
    pretraining: Pretraining
    molecules: Molecules
    pair_head: PairHead
    finetuning: Finetuning
    geometry: Geometry

    @field_validator("sizes")
    @classmethod
    def _in_use(cls, sizes: dict[str, Size]) -> dict[str, Size]:
        used = {name: size for name, size in sizes.items() if size.tokens}
        if not used:
            raise ValueError("one of the sizes should have tokens")
        return used

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _once("tasks", self.tasks)
        _once("arms", self.arms)
        _once("names of models", [*self.sizes, *(model.name for model in self.local_models)])
        missing = [arm for arm in (BASELINE, "random_frozen") if arm not in self.arms]
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} should be among the arms: without them a head that learns reads as transfer"
            )
        by_task = {
            "finetuning.epochs": self.finetuning.epochs,
            "finetuning.frozen_epochs": self.finetuning.frozen_epochs,
            "molecules.length": self.molecules.length,
        }
        for name, known in by_task.items():
            without = [task for task in self.tasks if task not in known]
            if without:
                raise ValueError(f"{name} should name {', '.join(without)}")
        strange = [arm for arm in self.geometry.arms if arm not in self.arms]
        if strange and self.geometry.tasks:
            raise ValueError(f"geometry.arms: {', '.join(strange)} should be among the arms")
        return self


class Run(NamedTuple):
    """One arm of one encoder.

    Attributes
    ----------
    model
        Name of the size or of the local model; empty where the arm has no encoder.
    tokens
        Bases that the encoder was pre-trained on; 0 for random weights and without an encoder, -1 for a local model.
    arm
        A key of ``ARMS``.
    """

    model: str
    tokens: int
    arm: str


def runs_of(train: Train) -> list[Run]:
    """Every arm of every encoder: random ones once a size, pre-trained ones once a size and length."""
    found = []
    for name, size in train.sizes.items():
        found += [Run(name, 0, arm) for arm in train.arms if arm in ("random", "random_frozen")]
        found += [Run(name, tokens, arm) for tokens in size.tokens for arm in train.arms if arm in PRETRAINED]
    for local in train.local_models:
        found += [
            Run(local.name, 0 if arm in ("random", "random_frozen") else -1, arm)
            for arm in train.arms
            if arm in ("random", "random_frozen", "fine_tuned", "frozen", "shuffled")
        ]
    return found + [Run("", 0, arm) for arm in train.arms if arm in ENCODERLESS]


def applies(arm: str, task: str) -> bool:
    """Whether an arm can answer a task: folding says nothing of types and shares."""
    return arm != "mfe" or task in ("base_pairs", "paired")


def weights_name(model: str, tokens: int) -> str:
    """Stem of the file of pre-trained weights."""
    return f"pretrained_{model}_{tokens}"


def _once(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"one of the {what} stands twice")
