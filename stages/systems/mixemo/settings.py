"""Settings of MixEmo, its baselines and its study; the names of the methods."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from stages.params import Config

DOMAIN = "eeg"
#: Method -> how the report names it. Every one has the same backbone and the same budget.
BASELINES = {
    "erm": "ERM",
    "mixup": "mixup",
    "mixstyle": "MixStyle",
    "group_dro": "GroupDRO by subject",
    "coral": "CORAL",
}
READINGS = {
    "mixemo": "MixEmo",
    "mixemo_literal": "MixEmo, literal reading",
    "mixemo_heads": "MixEmo, a head for each subset",
    "mixemo_extrapolated": "MixEmo, extrapolated mixtures",
    "mixemo_first_layer": "MixEmo, subsets of the first layer",
}
ABLATIONS = {
    "no_augmentation": "MixEmo without augmentation",
    "no_collaboration": "MixEmo without collaboration",
    "iid_prototypes": "MixEmo, i.i.d. prototypes (random subsets)",
    "subject_prototypes": "MixEmo, subjects as subsets",
    "tested_prototypes": "MixEmo, subsets split until a normality test passes",
}
TRANSDUCTIVE = {"erm_standardised": "ERM, each subject standardised (transductive)"}
METHODS = BASELINES | READINGS | ABLATIONS | TRANSDUCTIVE
MAIN, REFERENCE, BAR = "mixemo", "erm", "mixup"

Method = Literal[
    "erm",
    "mixup",
    "mixstyle",
    "group_dro",
    "coral",
    "mixemo",
    "mixemo_literal",
    "mixemo_heads",
    "mixemo_extrapolated",
    "mixemo_first_layer",
    "no_augmentation",
    "no_collaboration",
    "iid_prototypes",
    "subject_prototypes",
    "tested_prototypes",
    "erm_standardised",
]
Kind = Literal["coupled", "uncoupled", "shifts", "control"]
Positive = Annotated[int, Field(ge=1)]


class Backbone(Config):
    """The network that every method shares: two dense layers, behind filters where it reads signals."""

    kind: Literal["mlp", "conv"] = Field(
        description="mlp: differential entropies through dense layers; conv: log power of learned filters first"
    )
    hidden: tuple[Positive, Positive] = Field(
        description="units of the two dense layers; the second is what is clustered"
    )
    filters: int = Field(ge=1, description="conv: learned spatial filters, each with its own temporal filter")
    kernel: int = Field(ge=3, description="conv: length of a temporal filter, samples")
    pools: int = Field(ge=1, description="conv: parts of a window whose power is taken apart")


class Training(Config):
    """The budget, the same for every method: it counts the samples that pass through the network in training."""

    steps: int = Field(ge=2, description="updates of ERM; steps x batch is the budget in forward samples")
    batch: int = Field(ge=4, description="samples that pass through the network in one update, moved ones included")
    learning_rate: float = Field(gt=0, description="AdamW's learning rate")
    weight_decay: float = Field(ge=0, description="AdamW's decoupled weight decay")
    warmup: int = Field(ge=1, description="updates of plain cross-entropy before MixEmo partitions the windows")
    counted: Literal["forward", "real"] = Field(
        "forward",
        description="what the budget counts: forward: every sample that passes; real: windows, moved ones come on top",
    )
    check: int = Field(ge=1, description="updates between looks at the validation subjects, which choose the weights")

    @model_validator(mode="after")
    def _warm_up_ends(self) -> Self:
        if self.warmup >= self.steps:
            raise ValueError(f"warmup is {self.warmup}, and should be less than steps, {self.steps}")
        return self


class Baselines(Config):
    """What the baselines leave open, at their papers' values."""

    mixup_alpha: float = Field(gt=0, description="mixup: Beta(alpha, alpha) of the weight of a pair")
    mixstyle_alpha: float = Field(gt=0, description="MixStyle: Beta(alpha, alpha) of the weight of a pair of styles")
    mixstyle_share: float = Field(ge=0, le=1, description="MixStyle: share of the updates that mix")
    group_dro_step: float = Field(gt=0, description="GroupDRO: step of the subjects' weights")
    coral_weight: float = Field(ge=0, description="CORAL: weight of the distance between subjects")


class Mixing(Config):
    """MixEmo's subsets, mixtures and collaboration."""

    subsets: int = Field(ge=1, description="subsets of the training windows (K)")
    components: int = Field(ge=1, description="principal components of the representation that are clustered")
    restarts: int = Field(ge=1, description="starts of k-means; the tightest clusters stay")
    prototypes: list[Positive] = Field(min_length=1, description="how many prototypes a mixture has, drawn evenly")
    concentration: float = Field(gt=0, description="Dirichlet concentration of a mixture's weights")
    clip: tuple[float, float] = Field(description="bounds of the ratio of the standard deviations in a move")
    consistency: float = Field(ge=0, description="weight of the divergence between predictions that should agree")
    refresh: int = Field(
        ge=1, description="updates between new estimates of prototypes that live in a learned layer; counted as samples"
    )
    variance: float = Field(ge=0, description="literal reading: weight of the variance of the subsets' losses")
    extrapolation: float = Field(ge=0, description="extrapolated reading: how far weights leave the simplex")

    @field_validator("clip")
    @classmethod
    def _around_one(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not 0 < value[0] <= 1 <= value[1]:
            raise ValueError("the bounds should enclose 1 and be positive")
        return value


class Study(Config):
    """Simulated populations of subjects whose hidden states are known (differential entropies, no signals)."""

    populations: int = Field(ge=1, description="populations of each kind for each seed")
    kinds: list[Kind] = Field(min_length=1, description="how hidden states depend on subject and class")
    methods: list[Method] = Field(description="methods compared on every population")
    subsets: list[Positive] = Field(description="numbers of subsets of the curve, on coupled populations; [] for none")
    subjects: int = Field(ge=4, description="subjects of a population")
    trials: int = Field(ge=3, description="trials of a subject")
    windows: int = Field(ge=2, description="windows of a trial")

    @field_validator("methods")
    @classmethod
    def _compared(cls, value: list[Any]) -> list[Any]:
        return compared(value)


def compared(methods: list[Any]) -> list[Any]:
    """Check a list of methods: each once, and the one that the others are measured by among them."""
    if len(set(methods)) < len(methods):
        raise ValueError("the same method stands twice")
    missing = [name for name in (REFERENCE, MAIN) if name not in methods]
    if missing:
        raise ValueError(f"{' and '.join(missing)} should be among the methods: all others are compared with them")
    return methods


class Train(Config):
    """MixEmo and its baselines: corpora, methods, and the settings they share."""

    corpora: Literal["labelled"] | Annotated[list[str], Field(min_length=1)] = Field(
        "labelled",
        description="corpora to learn from, keys of eeg.corpora, the first leads; `labelled`: all with labels and "
        "subjects enough, real ones that name their subjects first",
    )
    methods: list[Method] = Field(description="methods trained on every corpus")
    backbone: Backbone
    training: Training
    baselines: Baselines
    mixing: Mixing
    study: Study

    @field_validator("methods")
    @classmethod
    def _compared(cls, value: list[Any]) -> list[Any]:
        return compared(value)
