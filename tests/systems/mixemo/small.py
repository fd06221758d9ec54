"""A small population and settings under which a training takes a fraction of a second."""

from __future__ import annotations

import numpy as np

from stages.systems.mixemo.fitting import Fitted, fit
from stages.systems.mixemo.model import Layout
from stages.systems.mixemo.settings import Backbone, Baselines, Mixing, Training
from stages.systems.mixemo.windows import Fold, Windows, leave_one_out

BACKBONE = Backbone(kind="mlp", hidden=(8, 6), filters=3, kernel=5, pools=2)
TRAINING = Training(steps=30, batch=16, learning_rate=0.01, weight_decay=0.001, warmup=10, check=5)
BASELINES = Baselines(mixup_alpha=2, mixstyle_alpha=0.1, mixstyle_share=0.5, group_dro_step=0.01, coral_weight=1)
MIXING = Mixing(
    subsets=3,
    components=4,
    restarts=2,
    prototypes=[2, 3],
    concentration=1,
    clip=(0.33, 3),
    consistency=1,
    refresh=10,
    variance=1,
    extrapolation=0.5,
)


def population(seed: int = 0, *, subjects: int = 5, shape: tuple[int, int] = (4, 5)) -> Windows:
    """Subjects with two trials of each of three classes, four windows a trial, classes told apart by their means."""
    rng = np.random.default_rng(seed)
    trials, each = 6, 4
    label_N = np.tile(np.repeat(np.arange(trials) % 3, each), subjects)
    subject_N = np.repeat(np.arange(subjects), trials * each)
    trial_N = np.repeat(np.arange(subjects * trials), each)
    means = rng.normal(size=(3, *shape))
    x_ND = means[label_N] + rng.normal(size=(len(label_N), *shape)) + rng.normal(size=(subjects, *shape))[subject_N]
    return Windows(
        corpus="small",
        x_ND=x_ND.astype(np.float32),
        label_N=label_N,
        subject_N=subject_N,
        trial_N=trial_N,
        classes=("a", "b", "c"),
        subjects=tuple(f"s{k}" for k in range(subjects)),
        records=tuple(f"small/{k}" for k in range(subjects * trials)),
        simulated=True,
    )


def folds_of(windows: Windows) -> list[Fold]:
    """Each subject held out once, one of the others for validation."""
    return leave_one_out(windows, 1, np.random.default_rng(1))


def train(
    windows: Windows,
    folds: list[Fold],
    method: str,
    *,
    seed: int = 0,
    backbone: Backbone = BACKBONE,
    training: Training = TRAINING,
    mixing: Mixing = MIXING,
) -> Fitted:
    """Train with the small settings."""
    layout = Layout(windows.shape, len(windows.classes), backbone)
    return fit(windows, folds, method, layout=layout, training=training, baselines=BASELINES, mixing=mixing, seed=seed)
