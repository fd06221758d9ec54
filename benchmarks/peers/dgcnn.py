"""DGCNN (Song et al. 2018) of torcheeg, trained as MixEmo's baselines are: the same folds, batches, budget and choice.

Only the file that holds the model is loaded: importing `torcheeg.models` also asks for compiled graph libraries, and
its metadata for an old scipy, neither of which DGCNN uses.

Shape suffixes: F fold, S sample, C channel, T band, Y class.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stages.systems.mixemo.fitting import one_thread
from stages.systems.mixemo.model import Layout
from stages.systems.mixemo.problem import Draws, Problem, fold_generators, make_problem
from stages.systems.mixemo.settings import Training
from stages.systems.mixemo.windows import Fold, Windows, standardise

CPU = torch.device("cpu")


def load(folder: Path | None) -> tuple[str, Any] | str:
    """Name with version, and the class of the model; why not, where there is none."""
    if folder is None:
        return "no --peers FOLDER with torcheeg in it"
    file = folder / "torcheeg" / "models" / "gnn" / "dgcnn.py"
    specification = importlib.util.spec_from_file_location("torcheeg_dgcnn", file)
    if not file.is_file() or specification is None or specification.loader is None:
        return f"torcheeg is not installed: no {file}"
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    versions = [one.version for one in distributions(path=[str(folder)]) if one.metadata["Name"] == "torcheeg"]
    return f"DGCNN of torcheeg {versions[0] if versions else '(version unknown)'}", module.DGCNN


@one_thread()
def fit_predict(
    kind: Any, windows: Windows, folds: Sequence[Fold], layout: Layout, training: Training, seed: int, rate: float
) -> list[NDArray[np.float32]]:
    """Log class probabilities of each fold's test windows, shape (window, class) each.

    Parameters
    ----------
    kind
        Class of the model.
    training
        Budget, batch, looks and decay of all methods.
    rate
        Learning rate of AdamW, in place of ``training.learning_rate``.
    """
    found = []
    for fold in folds:
        problem = make_problem(windows, [fold], layout, CPU)
        model = _started(kind, layout, *fold_generators(seed, "dgcnn", windows.corpus, [fold]))
        _train(model, problem, Draws(fold_generators(seed, "batches", windows.corpus, [fold]), CPU), training, rate)
        mean, std = problem.mean_FCT[0].numpy(), problem.std_FCT[0].numpy()
        tested = torch.from_numpy(standardise(windows.x_ND[fold.test], mean, std))
        with torch.no_grad():
            found.append(functional.log_softmax(model(tested), dim=1).numpy())
    return found


def _started(kind: Any, layout: Layout, rng: np.random.Generator) -> nn.Module:
    channels, bands = layout.shape
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(rng.integers(2**31)))
        model: nn.Module = kind(in_channels=bands, num_electrodes=channels, num_classes=layout.classes)
    return model


def _train(model: nn.Module, problem: Problem, draws: Draws, training: Training, rate: float) -> None:
    """Spend the budget, and leave the model as it was at the look after the warm-up with the least loss."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=training.weight_decay)
    validation = problem.standardised(problem.validation_FM)[0]
    label = problem.label_N[problem.validation_FM][0]
    best, least = _copy(model), torch.inf
    for step in range(1, training.steps + 1):
        model.train()
        batch = problem.batch(problem.drawn_evenly(draws.uniform(training.batch)))
        loss = functional.cross_entropy(model(batch.x_FSCT[0]), batch.label_FS[0])
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if step > training.warmup and (step % training.check == 0 or step == training.steps):
            model.eval()
            with torch.no_grad():
                seen = float(functional.cross_entropy(model(validation), label))
            if seen < least:
                best, least = _copy(model), seen
    model.load_state_dict(best)
    model.eval()


def _copy(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
