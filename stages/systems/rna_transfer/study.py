"""All arms of the tasks of one seed: where each starts, how it is trained, what it answers, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from stages.runtime import random_numbers
from stages.systems.rna_transfer import geometry
from stages.systems.rna_transfer.arms import starting_weights
from stages.systems.rna_transfer.corpus import Corpus, mfe_answers
from stages.systems.rna_transfer.encoder import Encoder, device
from stages.systems.rna_transfer.finetuning import Downstream, Parts, Snapshot, Tuned, finetune, new_model
from stages.systems.rna_transfer.heads import OneHot
from stages.systems.rna_transfer.pretraining import new_encoder
from stages.systems.rna_transfer.settings import BASELINE, ENCODERLESS, TRAINED, LocalModel, Run, applies, runs_of
from stages.systems.rna_transfer.tables import prediction_rows
from stages.systems.rna_transfer.tasks import Answer, Task

Weights = dict[str, Tensor]


class Study:
    """What the arms of one seed share, and what they have found so far.

    Parameters
    ----------
    corpus
        The molecules.
    pretrained
        Pre-trained weights by size and length.

    Attributes
    ----------
    history, predictions, geometry
        Rows of the tables of these names.
    """

    def __init__(self, corpus: Corpus, pretrained: Mapping[tuple[str, int], Weights]) -> None:
        self.corpus, self.train, self.seed = corpus, corpus.train, corpus.seed
        self.pretrained = dict(pretrained)
        self.fresh: dict[str, Weights] = {}
        self.local: dict[str, Any] = {}
        self.sizes: dict[str, Any] = {}
        self.tasks: dict[str, Any] = {}
        self.history: list[dict[str, Any]] = []
        self.predictions: list[dict[str, Any]] = []
        self.geometry: list[dict[str, Any]] = []
        for name, size in self.train.sizes.items():
            encoder = new_encoder(size, self.seed)
            self.fresh[name] = encoder.state_dict()
            self.sizes[name] = {"parameters": sum(weight.numel() for weight in encoder.parameters())}
        for model in self.train.local_models:
            self._open(model)

    def _open(self, model: LocalModel) -> None:
        from stages.systems.rna_transfer import local_models

        opened = local_models.open_local(model.path)
        self.pretrained[model.name, -1] = opened.state_dict()
        self.fresh[model.name] = local_models.renewed(opened, self.seed)
        self.local[model.name] = local_models.described(opened, model.path)

    def encoder(self, run: Run) -> tuple[nn.Module, int]:
        """The encoder that a run starts from, and the units of its embeddings."""
        if run.arm in ENCODERLESS:
            return OneHot(), OneHot.width
        encoder, width = self._structure(run.model)
        weights = starting_weights(
            run.arm,
            self.fresh[run.model],
            self.pretrained.get((run.model, run.tokens)),
            lower_share=self.train.lower,
            rng=random_numbers(self.seed, "shuffled weights", run.model, str(run.tokens)),
        )
        encoder.load_state_dict(weights)
        return encoder, width

    def _structure(self, model: str) -> tuple[nn.Module, int]:
        if model in self.train.sizes:
            size = self.train.sizes[model]
            return Encoder(size).to(device()), size.width
        from stages.systems.rna_transfer.local_models import open_local

        path = next(local.path for local in self.train.local_models if local.name == model)
        opened = open_local(path)
        return opened.to(device()), opened.width

    def task(self, name: str) -> None:
        """Every arm of one task."""
        task, parts, described = self.corpus.examples(name)
        self.tasks[name] = described | {"head_parameters": {}}
        trails: dict[str, dict[Run, list[Snapshot]]] = {}
        twins: dict[str, dict[Run, list[Snapshot]]] = {}
        models: dict[str, Downstream] = {}
        for run in runs_of(self.train):
            if not applies(run.arm, name):
                continue
            if run.arm == "mfe":
                self._answered(run, name, parts, mfe_answers(self.corpus, name, parts.test))
                continue
            measured = name in self.train.geometry.tasks and run.arm in self.train.geometry.arms
            model, tuned = self._tuned(run, task, parts, "order", measured)
            self._note(run, model, tuned, task, parts)
            if measured:
                models[run.model] = model
                trails.setdefault(run.model, {})[run] = tuned.trail
            if measured and self.train.geometry.twins:
                twins.setdefault(run.model, {})[run] = self._tuned(run, task, parts, "other order", True)[1].trail
        for model_name, trail in trails.items():
            found = geometry.compared(
                trail,
                twins.get(model_name, {}),
                models[model_name],
                parts.probe,
                self.train.geometry,
                baseline=Run(model_name, 0, BASELINE),
                seed=self.seed,
            )
            self.geometry += [run._asdict() | {"task": name} | row for run, row in found]

    def _tuned(self, run: Run, task: Task, parts: Parts, order: str, trail: bool) -> tuple[Downstream, Tuned]:
        encoder, width = self.encoder(run)
        model = new_model(encoder, task, width, self.seed)
        trained = run.arm in TRAINED
        return model, finetune(
            model, parts, self.train.finetuning, trained=trained, seed=self.seed, order=order, trail=trail
        )

    def _note(self, run: Run, model: Downstream, tuned: Tuned, task: Task, parts: Parts) -> None:
        """Keep the rows of one arm."""
        heads = self.tasks[task.name]["head_parameters"]
        heads[run.model or run.arm] = sum(weight.numel() for weight in model.head.parameters())
        self.history += [run._asdict() | {"task": task.name} | row for row in tuned.history]
        self._answered(run, task.name, parts, tuned.answers)
        if run.arm in TRAINED:
            begun = dict(self.encoder(run)[0].named_parameters())
            # The head of language modelling has no part in a task.
            changed = [place for place in begun if not place.startswith("predict.")]
            rows = geometry.distances(
                {place: tuned.weights[f"encoder.{place}"] for place in changed},
                {place: begun[place].detach() for place in changed},
            )
            self._measured(run, task.name, rows)
        if run.model in self.train.sizes and (run.arm in TRAINED or run.arm == "frozen"):
            self._similar(run, model, task.name, parts)

    def _similar(self, run: Run, model: Downstream, task: str, parts: Parts) -> None:
        """Layers before and after training; for the frozen arm, pre-trained and random ones."""
        examples, bases = parts.validation or parts.probe, self.train.geometry.bases
        arms = (run, run) if run.arm != "frozen" else (run, Run(run.model, 0, BASELINE))
        first = model.encoder if run.arm != "frozen" else self.encoder(arms[0])[0]
        second = self.encoder(arms[1])[0]
        measure = "cka_start" if run.arm != "frozen" else "cka_pretrained_random"
        if not isinstance(first, Encoder) or not isinstance(second, Encoder):
            return
        features = [geometry.layer_features(encoder, examples, bases) for encoder in (first, second)]
        self._measured(run, task, geometry.similarities(measure, *features))

    def _measured(self, run: Run, task: str, rows: list[dict[str, Any]]) -> None:
        self.geometry += [run._asdict() | {"task": task} | row for row in rows]

    def _answered(self, run: Run, task: str, parts: Parts, answers: Sequence[Answer | None]) -> None:
        self.predictions += prediction_rows(run, task, parts.test, answers)

    def described(self) -> dict[str, Any]:
        """What config.json says of what was learnt."""
        return {
            "corpus": self.corpus.described(),
            "sizes": self.sizes,
            "local": self.local,
            "tasks": self.tasks,
            "simulated": self.corpus.accepted.simulated,
        }
