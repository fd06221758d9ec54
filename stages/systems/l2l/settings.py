"""Settings of L2L and what it is compared with; the names of the arms."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from stages.params import Config

DOMAIN = "refcoco"
#: Arm -> how the report names it. The arms of one base share its burn-in; each makes as many updates after it.
COMPARED = {
    "prior": "prior alone",
    "burn_in": "burn-in (supervised)",
    "supervised": "supervised, trained longer",
    "accept_all": "self-training, every pseudo-label accepted",
    "threshold": "self-training, fixed threshold on the fusion's confidence",
    "agreement": "self-training where teacher and prior agree",
}
LEARNED = {
    "learned": "L2L: learned selection",
    "learned_statistics": "L2L, state of statistics alone",
    "learned_agreement": "L2L, rewarded by agreement",
    "learned_gain": "L2L, rewarded by the gain over the fixed threshold",
    "learned_in_sample": "L2L, rewarded on labels the teacher has seen",
}
CEILING = {"oracle": "oracle selection (sees the true masks)"}
ABLATIONS = {
    "burn_in_no_sesm": "burn-in without SESM",
    "no_sesm": "L2L without SESM",
    "burn_in_no_prior": "burn-in without a prior",
    "no_prior": "L2L without a prior",
}
ARMS = COMPARED | LEARNED | CEILING | ABLATIONS
MAIN, START = "learned", "burn_in"

Arm = Literal[
    "prior",
    "burn_in",
    "supervised",
    "accept_all",
    "threshold",
    "agreement",
    "learned",
    "learned_statistics",
    "learned_agreement",
    "learned_gain",
    "learned_in_sample",
    "oracle",
    "burn_in_no_sesm",
    "no_sesm",
    "burn_in_no_prior",
    "no_prior",
]
Guidance = Literal["maps", "tokens", "none"]
State = Literal["embeddings", "statistics"]
Reward = Literal["cross_fitted", "in_sample", "agreement", "gain"]
Share = Annotated[float, Field(gt=0, le=1)]


class Form(NamedTuple):
    """A form of the learned selection: what it sees, and what it is rewarded by."""

    state: State
    reward: Reward


#: Arm -> its form. The ablations take that of the main arm.
FORMS = {
    "learned": Form("embeddings", "cross_fitted"),
    "learned_statistics": Form("statistics", "cross_fitted"),
    "learned_agreement": Form("statistics", "agreement"),
    "learned_gain": Form("embeddings", "gain"),
    "learned_in_sample": Form("embeddings", "in_sample"),
    "no_sesm": Form("embeddings", "cross_fitted"),
    "no_prior": Form("embeddings", "cross_fitted"),
}


class Base(NamedTuple):
    """What a burn-in is made with: its guidance, and whether there is a prior."""

    guidance: Guidance
    prior: bool


def base_of(arm: str, network: Network) -> Base:
    """Base of an arm: arms of equal base share one burn-in."""
    if arm.endswith("no_sesm"):
        return Base("none", True)
    return Base(network.guidance, not arm.endswith("no_prior"))


class Network(Config):
    """Sizes of the network."""

    side: int = Field(ge=16, le=512, description="height and width that images are brought to, px; a multiple of 8")
    widths: tuple[int, int, int] = Field(description="channels at 1/2, 1/4 and 1/8 of the side; multiples of groups")
    words: int = Field(ge=4, description="units of a word; even")
    groups: int = Field(ge=1, description="groups of channels that are normalised together")
    tokens: int = Field(ge=2, description="words of a sentence that are read; the rest is counted and reported")
    guidance: Guidance = Field(
        description="SESM: maps (guidance tokens, and the map at each level), tokens (guidance tokens), or none"
    )
    rho: float = Field(ge=0, le=1, description="SESM: share of the guidance map that stays at each level")

    @model_validator(mode="after")
    def _divides(self) -> Self:
        if self.side % 8:
            raise ValueError(f"side is {self.side}, and should be a multiple of 8")
        if any(width % self.groups for width in self.widths):
            raise ValueError(f"widths are {list(self.widths)}, and should be multiples of groups, {self.groups}")
        if self.words % 2:
            raise ValueError(f"words is {self.words}, and should be even")
        return self


class Grounder(Config):
    """The offline prior: words for colour, size, shape and category against what an image shows."""

    provider: Literal["grounder"] = "grounder"
    side: int = Field(96, ge=32, le=512, description="side at which regions are sought, px")


class ProposalFile(Config):
    """Proposals made elsewhere, a JSON object a line; docs/systems/l2l.md has the format."""

    provider: Literal["file"]
    path: Path = Field(description="a JSON-lines file with a box or an RLE for each sentence")
    missing: Literal["error", "nothing"] = Field("error", description="what a sentence without a proposal is")


class Endpoint(Config):
    """A vision model behind an OpenAI-compatible endpoint, asked for a box for each sentence."""

    provider: Literal["endpoint"]
    base_url: str = Field(pattern="^https?://", description="address up to and with /v1")
    model: str = Field(description="name of the model")
    key: str = Field("OPENAI_API_KEY", description="environment variable that holds the key; unset sends none")
    retries: int = Field(4, ge=0, description="further attempts after no answer, 429 or 5xx")
    timeout_s: float = Field(60, gt=0, description="longest wait for an answer, s")
    scale: float = Field(1000, gt=0, description="boxes are answered on a scale from 0 to this in x and y")
    confidence: float = Field(0.8, ge=0, le=1, description="confidence of a box, which the answer does not tell")


Prior = Annotated[Grounder | ProposalFile | Endpoint, Field(discriminator="provider")]


class Views(Config):
    """Strong views; they leave colours and sides what they are called."""

    shift: float = Field(ge=0, lt=0.5, description="farthest shift, a share of the side")
    zoom: float = Field(ge=0, lt=0.5, description="largest change of the scale")
    light: float = Field(ge=0, lt=1, description="largest change of brightness and of contrast")
    noise: float = Field(ge=0, le=1, description="standard deviation of the noise, 1 is white")
    words: float = Field(ge=0, lt=1, description="share of the words that are left out")
    prior: float = Field(ge=0, le=1, description="share of the samples whose prior is left out")


class Optimiser(Config):
    """AdamW, the learning rate falling along a cosine to a twentieth."""

    learning_rate: float = Field(gt=0, description="learning rate at the start")
    weight_decay: float = Field(ge=0, description="AdamW's weight decay")
    warmup: int = Field(ge=0, description="updates in which the learning rate rises from 0")
    dice: float = Field(ge=0, description="weight of the Dice loss beside cross-entropy")
    levels: float = Field(ge=0, description="weight of the losses of the coarser levels")


class BurnIn(Config):
    """Supervised training that all arms start from."""

    steps: int = Field(ge=1, description="updates")
    half_steps: int = Field(ge=1, description="updates of each of the two half-label burn-ins, for the reward")
    batch: int = Field(ge=1, description="sentences in an update")
    check: int = Field(ge=1, description="updates between looks at the validation part")
    decay: float = Field(ge=0, lt=1, description="decay of the averaged weights, which are what is kept")


class SelfTraining(Config):
    """What every arm has after the burn-in."""

    rounds: int = Field(ge=1, description="rounds; the teacher labels anew at the start of each")
    steps: int = Field(ge=1, description="updates of a round")
    labelled: int = Field(ge=1, description="labelled sentences in an update")
    unlabelled: int = Field(ge=1, description="unlabelled sentences in an update")
    weight: float = Field(ge=0, description="weight of the pseudo-label loss (lambda_u)")
    learning_rate: float = Field(gt=0, description="learning rate at the start of the first round")


class Selection(Config):
    """RPLE and the fixed rules that it is compared with."""

    width: int = Field(ge=2, description="units of the policy's hidden layer")
    steps: int = Field(ge=1, description="updates of the policy")
    batch: int = Field(ge=1, description="samples in an update")
    learning_rate: float = Field(gt=0, description="Adam's learning rate")
    weight_decay: float = Field(ge=0, description="AdamW's weight decay")
    entropy: float = Field(ge=0, description="weight of the entropy bonus")
    baseline: float = Field(ge=0, lt=1, description="decay of the moving baseline")
    views: int = Field(
        ge=1, description="views of each labelled sentence that are rewarded; the first is the plain one"
    )
    words: int = Field(ge=0, description="most frequent words whose presence is part of the state")
    cost: float = Field(ge=0, le=1, description="what accepting costs: reward = IoU less this")
    pixel_cost: float = Field(ge=0, le=1, description="what keeping a pixel costs: reward = right less this")
    check: int = Field(ge=1, description="updates between looks at the reward on the validation part")
    agreement: float = Field(ge=0, le=1, description="least IoU of teacher and prior for the agreement rule")
    thresholds: list[float] = Field(min_length=1, description="grid of the fixed threshold on the fusion's confidence")


class Train(Config):
    """L2L and what it is compared with: sets, shares of labels, arms, and settings."""

    sets: list[str] = Field(min_length=1, description="keys of refcoco.sets; the first leads")
    shares: list[Share] = Field(min_length=1, description="labelled shares of the training images; the first leads")
    arms: list[Arm] = Field(min_length=1, description="arms of every set and share")
    prior: Prior
    fusion: float = Field(ge=0, le=1, description="weight of the teacher in the fusion with the prior")
    decay: float = Field(ge=0, le=1, description="decay of the EMA teacher; 1 freezes it")
    network: Network
    views: Views
    optimiser: Optimiser
    burn_in: BurnIn
    self_training: SelfTraining
    selection: Selection
    validation: int = Field(ge=1, description="sentences of a look at the validation part; fewer if all")
    empty: float = Field(ge=0, le=1, description="IoU of an empty prediction and an empty mask: 0 as in LAVT, or 1")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _once("sets", self.sets)
        _once("shares", [f"{share:g}" for share in self.shares])
        _once("arms", self.arms)
        missing = [name for name in (START, MAIN) if name not in self.arms]
        if missing:
            raise ValueError(f"{' and '.join(missing)} should be among the arms: the others are compared with them")
        if "no_sesm" in self.arms and self.network.guidance == "none":
            raise ValueError("network.guidance is none, so that there is no SESM for the arm no_sesm to leave out")
        return self


def _once(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise ValueError(f"one of the {what} stands twice")
