"""``train minitraffic@SEED``: pre-train on roads, then fit every arm on few steps of every target."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.errors import DataError
from stages.params import StageParams, bound
from stages.runtime import progress
from stages.systems.minitraffic.notes import (
    describe,
    graph_rows,
    graph_table,
    history_table,
    learnt_numbers,
    trained_numbers,
)
from stages.systems.minitraffic.settings import BASELINES, DOMAIN, MAIN, PRETRAINED, Goal, Train, arms_of, sources

if TYPE_CHECKING:
    from torch import Tensor

    from stages.systems.minitraffic.problem import Panel, Target
    from stages.systems.minitraffic.search import Chosen, Judge


class Params(StageParams):
    """Params of ``train-minitraffic``."""

    train: Train = bound("systems.minitraffic.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Train and write weights, what was chosen, history and graphs."""
    seed, train = int(key), params.train
    with artifacts.atomic(artifacts.model(name, seed)) as draft:
        draft.mkdir()
        session = Session(train, seed, draft)
        fits = [(goal, share, arm) for goal in train.targets for share in train.shares for arm in arms_of(train, goal)]
        for goal, share, arm in progress(fits, "minitraffic", unit="fits"):
            session.fit(goal, share, arm)
        artifacts.write_json(draft / "config.json", train.model_dump() | {"learnt": session.learnt})
        artifacts.write_table(draft / "history.parquet", history_table(session.history))
        artifacts.write_table(draft / "graph.parquet", graph_table(session.graphs))


class Session:
    """What the arms of one seed share: opened sets, pre-trained networks, and what they have found so far."""

    def __init__(self, train: Train, seed: int, draft: Path) -> None:
        self.train, self.seed, self.draft = train, seed, draft
        self.learnt: dict[str, Any] = {}
        self._targets: dict[str, Target] = {}
        self._roads: dict[str, tuple[Panel, bool]] = {}
        self._pretrained: dict[tuple[tuple[str, ...], str], dict[str, Tensor]] = {}
        self.history: list[dict[str, Any]] = []
        self.graphs: list[dict[str, Any]] = []

    def target(self, goal: Goal) -> Target:
        """Open a target once, and describe it."""
        from stages.systems.minitraffic.problem import open_target

        if goal.set not in self._targets:
            target, known = open_target(goal, self.train), sources(self.train, goal, own=True)
            if goal.set in known and target.own_roads is None:
                raise DataError(
                    artifacts.ingested(DOMAIN, goal.set) / "data.zarr",
                    found="lanes without roads",
                    expected="roads to pre-train on: the lanes themselves would no longer be few data",
                    remedy=f"Take {goal.set} out of systems.minitraffic.train.pretraining.roads.",
                )
            self._targets[goal.set] = target
            simulated = [self.roads(key)[1] for key in known]
            self.learnt[goal.set] = describe(self._targets[goal.set], self.train, simulated)
        return self._targets[goal.set]

    def roads(self, key: str) -> tuple[Panel, bool]:
        """Open a source of roads once."""
        from stages.systems.minitraffic.problem import open_source

        if key not in self._roads:
            self._roads[key] = open_source(key, self.train)
        return self._roads[key]

    def fit(self, goal: Goal, share: float, arm: str) -> None:
        """Fit one arm and write its weights."""
        import numpy as np
        from safetensors.numpy import save

        from stages.systems.minitraffic.forecasts import weights_file
        from stages.systems.minitraffic.problem import few_shot_block
        from stages.systems.minitraffic.search import Judge, choose

        target = self.target(goal)
        train, settings = self.train, self.train.finetuning
        length = train.context + train.horizon
        block = few_shot_block(
            target.accepted.part("train"), share, length=length, windows=settings.windows, seed=self.seed, key=goal.set
        )
        panel = target.panel(block)
        judge = Judge(target.windows("validation"), settings.validation)
        if arm in BASELINES:
            from stages.systems.minitraffic.fits import FewShot, candidates

            roads = [self.roads(key)[0] for key in sources(train, goal, own=True)]
            chosen = choose(candidates(arm, FewShot(target, panel, roads, settings, self.seed)), judge)
        else:
            chosen = self._fit_network(goal, share, arm, panel, judge)
        file = weights_file(self.draft, goal.set, arm, share)
        file.parent.mkdir(parents=True, exist_ok=True)
        # The writer takes the bytes as they lie, so every array has to be contiguous.
        stored = chosen.tensors | {"level": panel.level_S}
        file.write_bytes(save({place: np.array(value, order="C") for place, value in stored.items()}))
        self.history += [{"target": goal.set, "share": share, "arm": arm, **row} for row in chosen.history]
        self._note(target, share, arm, panel, chosen)

    def _fit_network(self, goal: Goal, share: float, arm: str, panel: Panel, judge: Judge) -> Chosen:
        import numpy as np

        from stages.systems.minitraffic.batches import loaded
        from stages.systems.minitraffic.finetuning import finetune, restored
        from stages.systems.minitraffic.model import device
        from stages.systems.minitraffic.pretraining import graph_of

        train = self.train
        source = loaded(panel, train.context, train.horizon, device())
        weights = self._start(goal, arm)
        stored: dict[str, Any] = {
            "scale": np.array(panel.scale, np.float32),
            "centre": np.array(panel.level, np.float32),
        }
        neighbours = None
        if arm != "no_clustering":
            network = restored(weights, train, source.values_TS.device)
            graph, neighbours = graph_of(network, source, panel.train, train, self.seed)
            stored |= {"graph.neighbours": graph.neighbour_SK, "graph.there": graph.there_SK}
            if arm == MAIN:
                self.graphs += graph_rows(graph, self.target(goal), share)
        chosen = finetune(
            weights, source, neighbours, arm=arm, mode=goal.mode, train=train, judge=judge, seed=self.seed
        )
        return replace(chosen, tensors=chosen.tensors | stored)

    def _start(self, goal: Goal, arm: str) -> dict[str, Tensor]:
        """Weights that an arm starts from: new ones, or those of its pre-training, which is done once."""
        from stages.runtime import random_numbers
        from stages.systems.minitraffic.batches import loaded
        from stages.systems.minitraffic.model import MiniTraffic, device, initialise
        from stages.systems.minitraffic.pretraining import pretrain

        train = self.train
        if arm not in PRETRAINED:
            network = MiniTraffic(train.network, train.context, train.horizon)
            initialise(network, random_numbers(self.seed, "weights"))
            return network.state_dict()
        known = sources(train, goal, own=arm != "other_roads"), PRETRAINED[arm]
        if known not in self._pretrained:
            panels = [loaded(self.roads(key)[0], train.context, train.horizon, device()) for key in known[0]]
            found = pretrain(panels, train, without=known[1], seed=self.seed)
            self._pretrained[known] = found.weights
            about = {"target": "+".join(known[0]), "share": None, "arm": arm, "stage": "pretraining"}
            self.history += [about | row for row in found.history]
        return self._pretrained[known]

    def _note(self, target: Target, share: float, arm: str, panel: Panel, chosen: Chosen) -> None:
        """Keep what config.json says of an arm."""
        about = self.learnt[target.key]
        start, stop = panel.train
        whole = target.accepted.part("train")
        about["blocks"][f"{share:g}"] = {
            "start": start,
            "stop": stop,
            "steps": stop - start,
            "windows": stop - start - self.train.context - self.train.horizon + 1,
            "share": (stop - start) / (whole[1] - whole[0]),
            "level": panel.level,
            "scale": panel.scale,
        }
        known = {"looks": chosen.looks, "validation_mae": chosen.validation_mae}
        about["chosen"].setdefault(f"{share:g}", {})[arm] = chosen.choice | known
        about["parameters"][arm] = learnt_numbers(chosen.tensors)
        about["trained"][arm] = trained_numbers(arm, target.goal.mode, chosen.tensors)
