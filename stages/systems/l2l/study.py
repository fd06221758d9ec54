"""All arms of one set, share and seed: shared burn-ins, policies, self-training, and what each predicts."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from stages.accepted.refcoco import Accepted
from stages.errors import UsageError
from stages.runtime import random_numbers
from stages.systems.l2l import checkpoints
from stages.systems.l2l.experience import Taught, experience, judged_candidates
from stages.systems.l2l.fitting import Budget, Fitted, Judge, Source, Weights, fit
from stages.systems.l2l.model import L2l, device, initialise
from stages.systems.l2l.pictures import TRAIN, VALIDATION, Pictures
from stages.systems.l2l.policy import greedy_reward, learn
from stages.systems.l2l.predictions import prediction_rows
from stages.systems.l2l.priors import Priors, no_priors
from stages.systems.l2l.proposals import CANDIDATES, answers
from stages.systems.l2l.selection import TEACHER, Agreement, Fixed, Learned, Oracle, Rule, Threshold, best_threshold
from stages.systems.l2l.selftraining import SelfTrained, Supervised
from stages.systems.l2l.settings import FORMS, Base, Train, base_of
from stages.systems.l2l.views import Loaded


class Parts(NamedTuple):
    """Sentences of each use."""

    labelled: NDArray[np.int64]
    unlabelled: NDArray[np.int64]
    validation: NDArray[np.int64]
    predicted: dict[str, NDArray[np.int64]]


def parts_of(accepted: Accepted, share: float, seed: int, looks: int) -> Parts:
    """Divide the sentences of a set; labels are drawn by image, draw ``seed`` of the gate.

    Raises
    ------
    UsageError
        Fewer than two images are labelled, or none is left without labels.
    """
    trained = accepted.part(TRAIN)
    image_S = accepted.image_O[accepted.object_S]
    known = accepted.labelled(share, seed)[image_S[trained]]
    if len(np.unique(image_S[trained[known]])) < 2 or known.all():
        raise UsageError(
            f"A share of {share:g} of the training images of {accepted.key} labels "
            f"{len(np.unique(image_S[trained[known]]))} of {len(np.unique(image_S[trained]))}; the two half-label "
            "burn-ins need two, and self-training needs one without labels. Change systems.l2l.train.shares."
        )
    validation = accepted.part(VALIDATION)
    spread = np.unique(np.linspace(0, len(validation) - 1, min(looks, len(validation))).astype(np.int64))
    named = dict.fromkeys(name for name in accepted.part_S.tolist() if name != TRAIN)
    predicted = {name: accepted.part(name) for name in sorted(named)}
    return Parts(trained[known], trained[~known], validation[spread], predicted)


class Study:
    """One set, share and seed."""

    def __init__(
        self,
        accepted: Accepted,
        pictures: Pictures,
        priors: Priors,
        train: Train,
        share: float,
        seed: int,
        scratch: Path | None,
    ) -> None:
        self.accepted, self.pictures, self.train, self.share, self.seed = accepted, pictures, train, share, seed
        self._data = [pictures.digest, priors.digest]
        self.parts = parts_of(accepted, share, seed, train.validation)
        self.scratch, self.place = scratch, device()
        side, sentences = train.network.side, len(accepted.sentence_S)
        self._loaded = {
            True: Loaded(pictures, priors, self.place),
            False: Loaded(pictures, no_priors(sentences, side), self.place),
        }
        self._fitted: dict[tuple[Base, str], Fitted] = {}
        self.weights: dict[str, Weights] = {}
        self.history: list[dict[str, Any]] = []
        self.rounds: list[dict[str, Any]] = []
        self.policy: list[dict[str, Any]] = []
        self.predictions: list[dict[str, Any]] = []
        self.learnt: dict[str, Any] = {"offline": {}, "thresholds": {}, "parameters": {}}

    def arm(self, arm: str) -> None:
        """Train an arm and predict with it."""
        base = base_of(arm, self.train.network)
        if arm == "prior":
            for part, sentence_N in self.parts.predicted.items():
                self._predict(arm, part, sentence_N, self._prior(sentence_N))
            return
        fitted = self._burn_in(base) if arm.startswith("burn_in") else self._self_trained(arm, base)
        about = self._about(arm)
        self.history += [about | row for row in fitted.history]
        self.rounds += [about | row for row in fitted.rounds]
        self.weights[arm] = fitted.weights
        network = self._network(base, fitted.weights)
        self.learnt["parameters"][arm] = sum(weight.numel() for weight in network.parameters())
        for part, sentence_N in self.parts.predicted.items():
            self._predict(arm, part, sentence_N, answers(network, self._loaded[base.prior], sentence_N))

    def _about(self, arm: str) -> dict[str, Any]:
        return {"set": self.accepted.key, "share": self.share, "arm": arm}

    def _prior(self, sentence_N: NDArray[np.int64]) -> torch.Tensor:
        mine = torch.from_numpy(sentence_N).to(self.place)
        return self._loaded[True].prior_SHW[mine].to(torch.float32) / 255

    def _predict(self, arm: str, part: str, sentence_N: NDArray[np.int64], map_NHW: torch.Tensor) -> None:
        self.predictions += prediction_rows(self._about(arm), self.accepted, sentence_N, map_NHW, part)

    def _network(self, base: Base, weights: Mapping[str, torch.Tensor] | None) -> L2l:
        """A network with these weights, or with the seed's first ones."""
        network = L2l(self.train.network, len(self.pictures.vocabulary), base.guidance)
        if weights is None:
            initialise(network, random_numbers(self.seed, "weights"))
        else:
            network.load_state_dict(dict(weights))
        return network.to(self.place)

    def _fit(self, what: str, base: Base, source: Source, budget: Budget, start: Weights | None) -> Fitted:
        described = {
            **{"what": what, "base": list(base), "seed": self.seed, "train": self.train.model_dump(mode="json")},
            **{"set": self.accepted.key, "share": self.share, "data": self._data},
            "labelled": self.parts.labelled.tolist(),
            "looks": self.parts.validation.tolist(),
        }
        file = None if self.scratch is None else self.scratch / f"{checkpoints.run_key(described)}.safetensors"
        judge = Judge(self._loaded[base.prior], self.parts.validation, self.train.empty)
        found = fit(self._network(base, start), source, judge, budget, self.train.optimiser, file)
        print(f"{what}: {found.waited:.1%} of the time went into composing batches", file=sys.stderr)
        return found

    def _burn_in(self, base: Base) -> Fitted:
        """The burn-in of a base, which its arms share."""
        if (base, "whole") not in self._fitted:
            settings = self.train.burn_in
            source = self._supervised(base, self.parts.labelled, settings.steps)
            budget = self._burn_in_budget(settings.steps, settings.check)
            self._fitted[base, "whole"] = self._fit("burn-in", base, source, budget, None)
        return self._fitted[base, "whole"]

    def _burn_in_budget(self, steps: int, check: int) -> Budget:
        train = self.train
        return Budget(steps, check, train.optimiser.learning_rate, train.burn_in.decay, ramped=True)

    def _supervised(self, base: Base, sentences: NDArray[np.int64], steps: int) -> Supervised:
        return Supervised(
            self._loaded[base.prior], sentences, self.train.burn_in.batch, steps, self.train.views, self.seed
        )

    def _halves(self, base: Base) -> list[Taught]:
        """Two burn-ins with half of the labelled images each, and the labelled sentences of the other half."""
        labelled, steps = self.parts.labelled, self.train.burn_in.half_steps
        image_N = self.accepted.image_O[self.accepted.object_S[labelled]]
        images = random_numbers(self.seed, "halves").permutation(np.unique(image_N))
        first_N = np.isin(image_N, images[: len(images) // 2])
        taught = []
        for name, mine_N in (("first", first_N), ("second", ~first_N)):
            if (base, name) not in self._fitted:
                source = self._supervised(base, labelled[mine_N], steps)
                # Only the last weights are looked at: the validation part chooses nothing here.
                budget = self._burn_in_budget(steps, steps)
                self._fitted[base, name] = self._fit(f"{name} half", base, source, budget, None)
            teacher = self._network(base, self._fitted[base, name].weights)
            taught.append(Taught(teacher, labelled[~mine_N]))
        return taught

    def _self_trained(self, arm: str, base: Base) -> Fitted:
        start, settings, train = self._burn_in(base), self.train.self_training, self.train
        steps = settings.rounds * settings.steps
        loaded = self._loaded[base.prior]
        rule = self._rule(arm, base)
        source: Source = (
            Supervised(loaded, self.parts.labelled, settings.labelled, steps, train.views, self.seed)
            if rule is None
            else SelfTrained(
                loaded,
                self.parts.labelled,
                self.parts.unlabelled,
                settings,
                train.views,
                self.seed,
                rule,
                train.fusion,
                train.selection.words,
            )
        )
        budget = Budget(steps, settings.steps, settings.learning_rate, train.decay, ramped=False)
        return self._fit(arm, base, source, budget, start.weights)

    def _rule(self, arm: str, base: Base) -> Rule | None:
        """What an arm does with pseudo-labels; None where it makes none."""
        settings = self.train.selection
        if arm == "supervised":
            return None
        if arm in FORMS:
            return self._learned(arm, base)
        rules: dict[str, Rule] = {
            "accept_all": Fixed(TEACHER),
            "agreement": Agreement(settings.agreement),
            "oracle": Oracle(settings.cost),
        }
        return rules[arm] if arm in rules else Threshold(self._threshold(base))

    def _threshold(self, base: Base) -> float:
        """The threshold that earns most on the validation part, under the burn-in's teacher."""
        name = "/".join((base.guidance, "prior" if base.prior else "no prior"))
        if name not in self.learnt["thresholds"]:
            cost = self.train.selection.cost
            judged = judged_candidates(self._validated(base), self._loaded[base.prior], self.train)
            reward_NM = judged["iou"] - cost
            place = CANDIDATES.index("fusion")
            threshold, earned = best_threshold(
                judged["confidence"], reward_NM[:, place], self.train.selection.thresholds
            )
            self.learnt["thresholds"][name] = threshold
            self.learnt["offline"][name] = {
                "threshold": earned,
                "oracle": float(reward_NM.amax(dim=1).clamp(min=0).mean()),
                **{f"all_{each}": float(reward_NM[:, m].mean()) for m, each in enumerate(CANDIDATES)},
            }
        return float(self.learnt["thresholds"][name])

    def _validated(self, base: Base) -> Taught:
        return Taught(self._network(base, self._burn_in(base).weights), self.parts.validation)

    def _learned(self, arm: str, base: Base) -> Learned:
        form, settings, loaded = FORMS[arm], self.train.selection, self._loaded[base.prior]
        threshold = self._threshold(base)
        validated = self._validated(base)
        if form.reward == "in_sample":
            taught = [Taught(validated.teacher, self.parts.labelled)]
        elif form.reward == "agreement":
            some = random_numbers(self.seed, "agreement").permutation(self.parts.unlabelled)
            taught = [Taught(validated.teacher, some[: len(self.parts.labelled)])]
        else:
            taught = self._halves(base)
        seen, looked = (
            experience(each, loaded, form, self.train, views=views, threshold=threshold, seed=self.seed)
            for each, views in ((taught, settings.views), ([validated], 1))
        )
        policy, history = learn(seen, looked, settings, self.seed, f"policy {form.state} {form.reward}")
        self.policy += [self._about(arm) | row for row in history]
        self.learnt["offline"].setdefault("policies", {})[arm] = greedy_reward(
            policy.actions(looked.state_NF).detach(), looked.reward_NA
        )
        return Learned(policy, form.state)
