"""Settings of MiniTraffic and its baselines; the names of the arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stages.params import Config

DOMAIN = "traffic"
#: Arm -> how the report names it. Every one learns from the same few steps and chooses by the same validation part.
BASELINES = {
    "last_value": "last value",
    "historical_average": "historical average by time of day",
    "ridge": "ridge on own lags",
    "road_ridge": "ridge shrunk to the roads' weights, with their profile",
    "dlinear": "DLinear",
}
NETWORKS = {
    "scratch": "same network from scratch",
    "minitraffic": "MiniTraffic (pre-trained and fine-tuned)",
    "zero_shot": "MiniTraffic without fine-tuning",
}
ABLATIONS = {
    "no_fda": "MiniTraffic without FDA",
    "no_clustering": "MiniTraffic without clustering and graph",
    "reconstruction_only": "MiniTraffic, pre-trained by reconstruction alone (literal reading)",
    "other_roads": "MiniTraffic, pre-trained without this set's own roads",
}
ARMS = BASELINES | NETWORKS | ABLATIONS
MAIN, REFERENCE, BAR = "minitraffic", "last_value", "scratch"
#: Arms that start from a pre-trained network -> what is left out of its pre-training.
PRETRAINED = {
    "minitraffic": "nothing",
    "zero_shot": "nothing",
    "no_fda": "fda",
    "no_clustering": "clustering",
    "reconstruction_only": "forecast",
    "other_roads": "nothing",
}

Arm = Literal[
    "last_value",
    "historical_average",
    "ridge",
    "road_ridge",
    "dlinear",
    "scratch",
    "minitraffic",
    "zero_shot",
    "no_fda",
    "no_clustering",
    "reconstruction_only",
    "other_roads",
]
Share = Annotated[float, Field(gt=0, le=1)]
Rate = Annotated[float, Field(gt=0)]


class Goal(Config):
    """A data set to forecast with little of its own data."""

    set: str = Field(description="a key of traffic.sets")
    mode: Literal["lane", "road"] = Field(
        description="lane: FDA stays, two heads are trained; road: extension and pooling, all weights are trained"
    )
    variable: Literal["speed", "flow", "occupancy"] | None = Field(
        None, description="what is forecast; by default the first of speed, flow, occupancy that the set has"
    )


class Network(Config):
    """Sizes of the network; none of its weights depends on the number of sensors."""

    patch: int = Field(ge=2, description="steps of a patch")
    stride: int = Field(ge=1, description="steps from one patch to the next; below patch, masked steps leak")
    width: int = Field(ge=4, description="units of a token")
    layers: int = Field(ge=1, description="transformer layers")
    heads: int = Field(ge=1, description="attention heads of a layer; divides width")

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"heads is {self.heads}, and should divide width, {self.width}")
        return self


class Fda(Config):
    """Frequency-domain stability augmentation: bounded noise on some frequencies of a window."""

    strength: float = Field(ge=0, description="bound of the noise, a share of the window's largest amplitude")
    frequencies: float = Field(ge=0, le=1, description="share of the frequencies above the mean that get noise")


class Clustering(Config):
    """The graph: nearest neighbours inside clusters of the series' projections."""

    clusters: int = Field(ge=1, description="clusters of series")
    neighbours: int = Field(ge=1, description="neighbours of a series, all of its cluster (k)")
    temperature: float = Field(gt=0, description="InfoNCE: divisor of the cosine similarities")
    weight: float = Field(ge=0, description="InfoNCE: weight in the loss")


class Pretraining(Config):
    """Pre-training on roads."""

    roads: list[str] = Field(
        min_length=1, description="keys of traffic.sets; a lane set gives its roads. A road target leaves itself out"
    )
    steps: int = Field(ge=2, description="updates; the graph joins after the first third")
    batch: int = Field(ge=8, description="series in an update, whole windows of all roads of one set")
    learning_rate: float = Field(gt=0, description="AdamW's learning rate, falling along a cosine")
    mask: float = Field(gt=0, lt=1, description="share of the patches of a series that are masked")
    check: int = Field(ge=1, description="updates between rows of the history")


class Finetuning(Config):
    """Fine-tuning and the search that every arm has: the same number of looks at the validation part."""

    steps: int = Field(ge=1, description="updates for each learning rate")
    batch: int = Field(ge=8, description="series in an update")
    learning_rates: list[Rate] = Field(min_length=1, description="rates that are tried, by every network")
    scratch_rates: list[Rate] | None = Field(
        None, description="rates of the network from scratch, as many; by default learning_rates"
    )
    dlinear_rates: list[Rate] = Field(min_length=1, description="DLinear's rates, as many as learning_rates")
    longer: int = Field(
        1,
        ge=1,
        description="arms that train all weights (scratch, DLinear, road targets) have so many times the updates",
    )
    check: int = Field(ge=1, description="updates between looks at the validation part; step 0 is one look")
    validation: int = Field(ge=1, description="windows of a look, spread evenly over the validation part; fewer if all")
    windows: int = Field(ge=1, description="a share that holds fewer windows is lengthened to this many")
    extension: int = Field(ge=1, description="road mode: copies of a series, the n-th averaged over n steps, pooled")

    @model_validator(mode="after")
    def _same_looks(self) -> Self:
        for name, rates in (("dlinear_rates", self.dlinear_rates), ("scratch_rates", self.scratch_rates)):
            if rates is not None and len(rates) != len(self.learning_rates):
                raise ValueError(
                    f"{name} are {len(rates)}, and should be as many as learning_rates, {len(self.learning_rates)}: "
                    "every arm has the same number of looks"
                )
        return self

    def rates(self, arm: str) -> list[float]:
        """Learning rates that an arm tries."""
        own = {"dlinear": self.dlinear_rates, "scratch": self.scratch_rates}
        return own.get(arm) or self.learning_rates

    def budget(self, arm: str, mode: str) -> tuple[int, int]:
        """Updates for each learning rate, and between looks: more where all weights are trained, not two heads."""
        times = self.longer if mode == "road" or arm in ("scratch", "dlinear") else 1
        return times * self.steps, times * self.check

    @property
    def looks(self) -> int:
        """Candidates that every arm may compare on the validation part."""
        return len(self.learning_rates) * len(range(0, self.steps, self.check)) + 1


class Train(Config):
    """MiniTraffic and its baselines: targets, shares of their training steps, arms, and settings."""

    targets: list[Goal] = Field(min_length=1, description="sets to forecast; the first leads")
    shares: list[Share] = Field(min_length=1, description="shares of a target's training steps that may be learnt from")
    arms: list[Arm] = Field(min_length=1, description="arms of every target and share")
    context: int = Field(ge=2, description="steps that a forecast sees")
    horizon: int = Field(ge=1, description="steps that are forecast")
    network: Network
    fda: Fda
    clustering: Clustering
    pretraining: Pretraining
    finetuning: Finetuning

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _once("arms", self.arms)
        _once("shares", [f"{share:g}" for share in self.shares])
        _once("targets", [goal.set for goal in self.targets])
        missing = [name for name in (REFERENCE, MAIN) if name not in self.arms]
        if missing:
            raise ValueError(f"{' and '.join(missing)} should be among the arms: the others are compared with them")
        left = self.context - self.network.patch
        if left < 0 or left % self.network.stride:
            raise ValueError(
                f"context is {self.context}; patches of {self.network.patch} steps every {self.network.stride} "
                "should cover it exactly"
            )
        for goal in self.targets:
            if goal.mode == "road" and not sources(self, goal, own=False):
                raise ValueError(
                    f"target {goal.set} should have other roads to pre-train on than its own: a road target leaves "
                    "itself out"
                )
        return self


def _once(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"one of the {what} stands twice")


def sources(train: Train, goal: Goal, *, own: bool) -> tuple[str, ...]:
    """Sets whose roads a target's network is pre-trained on.

    A road target never pre-trains on itself: its training part would no longer be few data.

    Parameters
    ----------
    train
        Settings.
    goal
        The target.
    own
        Whether a lane target may use the roads of its own set.
    """
    keep = own and goal.mode == "lane"
    return tuple(name for name in train.pretraining.roads if keep or name != goal.set)


def arms_of(train: Train, goal: Goal) -> list[Arm]:
    """Arms that a target has: ``other_roads`` only where it differs from ``minitraffic``, and has roads left."""
    other = sources(train, goal, own=False)
    differs = bool(other) and other != sources(train, goal, own=True)
    return [arm for arm in train.arms if arm != "other_roads" or differs]


def file_stem(arm: str, share: float) -> str:
    """Name of the weights of an arm and share."""
    return f"{arm}_{share:g}"
