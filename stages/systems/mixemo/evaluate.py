"""``evaluate mixemo``: predictions on held-out subjects, comparisons at one budget, and the study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stages import artifacts
from stages.errors import DataError
from stages.metrics.summary import Plot, Summary, write_summary
from stages.params import StageParams, bound
from stages.runtime import progress
from stages.systems.mixemo.settings import BAR, DOMAIN, MAIN, REFERENCE, Backbone
from stages.trained import read_config, read_tables

if TYPE_CHECKING:
    import polars as pl

TABLES = ("history", "prototypes", "study")
CITATIONS = [
    "MixEmo: cross-subject emotion recognition from subsets of one distribution. International Conference on Machine "
    "Learning, 2026 (the abstract is public; the method here is reconstructed from it, see docs/systems/mixemo.md).",
    "Zhang, H., Cisse, M., Dauphin, Y. N. and Lopez-Paz, D.: mixup: Beyond empirical risk minimization. International "
    "Conference on Learning Representations, 2018.",
    "Zhou, K., Yang, Y., Qiao, Y. and Xiang, T.: Domain generalization with MixStyle. International Conference on "
    "Learning Representations, 2021.",
    "Sagawa, S., Koh, P. W., Hashimoto, T. B. and Liang, P.: Distributionally robust neural networks for group shifts. "
    "International Conference on Learning Representations, 2020.",
    "Sun, B. and Saenko, K.: Deep CORAL: Correlation alignment for deep domain adaptation. European Conference on "
    "Computer Vision workshops, 2016.",
]


class Params(StageParams):
    """Params of ``evaluate-mixemo``."""

    seeds: list[int] = bound("seeds")


def run(params: Params, *, name: str, key: str) -> None:
    """Predict every held-out subject with the weights of its fold; write metrics.json, predictions and plots."""
    import polars as pl

    from stages.systems.mixemo import study_tables, tables
    from stages.systems.mixemo.scores import subject_scores

    models, config = read_tables(name, params.seeds, TABLES), read_config(name, params.seeds)
    corpora: dict[str, Any] = {corpus: config["learnt"][corpus] for corpus in config["corpora"]}
    predictions = pl.concat([predict_corpus(name, corpus, config, params.seeds) for corpus in corpora])
    scores = subject_scores(predictions)
    lead, study = next(iter(corpora)), models["study"]
    best = tables.best_baseline(scores.filter(pl.col("corpus") == lead))
    with artifacts.atomic(artifacts.evaluation(name)) as draft:
        (draft / "plots").mkdir(parents=True)
        plots = draw(draft / "plots", predictions, scores, models, config)
        artifacts.write_table(draft / "predictions.parquet", predictions)
        artifacts.write_table(draft / "scores.parquet", scores)
        summary = Summary(
            system=name,
            title="MixEmo",
            domain=DOMAIN,
            headline=tables.headline(scores, lead, corpora[lead], best, len(params.seeds)),
            claims=[*tables.claims(scores, corpora), *study_tables.claims(study)],
            tables=[
                *(tables.methods_table(scores, corpus, corpora[corpus], config) for corpus in corpora),
                *(tables.subjects_table(scores, corpus, corpora[corpus]) for corpus in corpora),
                *study_tables.tables(study),
                tables.training_table(models["history"], corpora),
            ],
            plots=plots,
            figures=tables.figures(scores, corpora) | study_tables.figures(study),
            citations=CITATIONS,
        )
        write_summary(draft, summary)


def predict_corpus(name: str, corpus: str, config: dict[str, Any], seeds: list[int]) -> pl.DataFrame:
    """Predictions of all methods and seeds on the held-out subjects of one corpus: a row a window."""
    import polars as pl
    from safetensors.torch import load_file

    from stages.systems.mixemo.corpus import read_windows
    from stages.systems.mixemo.fitting import predict
    from stages.systems.mixemo.model import Layout
    from stages.systems.mixemo.predictions import prediction_table
    from stages.systems.mixemo.settings import TRANSDUCTIVE
    from stages.systems.mixemo.windows import standardised_by_subject

    backbone = Backbone.model_validate(config["backbone"])
    windows, folds = read_windows(corpus, signals=backbone.kind == "conv")
    found = [fold.held_out for fold in folds]
    if found != config["learnt"][corpus]["subjects"]:
        raise DataError(
            artifacts.model(name, seeds[0]) / "config.json",
            record=f"corpus {corpus}",
            found=f"models of {', '.join(config['learnt'][corpus]['subjects'])}",
            expected=f"a model for each of {', '.join(found)}, as the gate accepts now",
            remedy=f"Run `dvc repro evaluate-{name}`, which trains again.",
        )
    layout = Layout(windows.shape, len(windows.classes), backbone)
    parts = []
    for seed in seeds:
        for method in progress(config["methods"], f"{corpus}, seed {seed}", unit="methods"):
            path = Path(artifacts.model(name, seed)) / "weights" / corpus / f"{method}.safetensors"
            tested = standardised_by_subject(windows) if method in TRANSDUCTIVE else windows
            log_p = predict(load_file(path), layout, tested, folds)
            table = prediction_table(windows, folds, log_p)
            labels = {"corpus": corpus, "method": method, "seed": seed}
            parts.append(table.select(*(pl.lit(value).alias(column) for column, value in labels.items()), pl.all()))
    return pl.concat(parts)


def draw(
    folder: Path,
    predictions: pl.DataFrame,
    scores: pl.DataFrame,
    models: dict[str, pl.DataFrame],
    config: dict[str, Any],
) -> list[Plot]:
    """Draw subjects and confusion of each corpus, the prototypes of its first fold, and the study."""
    import polars as pl

    from stages.systems.mixemo import plots, study_plots

    drawn = []
    for corpus in config["corpora"]:
        about = config["learnt"][corpus]
        said = f"{corpus}{', simulated' if about['simulated'] else ''}"
        mine = scores.filter(pl.col("corpus") == corpus)
        shown = [method for method in (REFERENCE, BAR, MAIN) if method in config["methods"]]
        plots.draw_subjects(folder / f"subjects_{corpus}.svg", mine, shown, about["group_noun"])
        of_corpus = predictions.filter(pl.col("corpus") == corpus)
        plots.draw_confusions(folder / f"confusion_{corpus}.svg", of_corpus, shown, about["classes"])
        drawn += [
            Plot(
                file=f"subjects_{corpus}.svg",
                title=f"{said}: accuracy of each held-out {about['group_noun']}",
                caption="Windows, mean over seeds; in the order of ERM.",
            ),
            Plot(
                file=f"confusion_{corpus}.svg",
                title=f"{said}: confusion",
                caption="Share of the windows of a class (row) that are predicted as each class, over all folds and "
                "seeds.",
            ),
        ]
        first = models["prototypes"].filter(
            (pl.col("corpus") == corpus) & (pl.col("seed") == models["study"]["seed"][0])
        )
        if first.height:
            plots.draw_prototypes(folder / f"prototypes_{corpus}.svg", first)
            drawn.append(
                Plot(
                    file=f"prototypes_{corpus}.svg",
                    title=f"{said}: subsets and prototypes of one fold",
                    caption=f"Training windows with {first['held_out'][0]} held out, first seed: leading two principal "
                    "components of the class-centred representation after the warm-up. Colour: subset; cross: its "
                    "prototype, mean and standard deviation; marker: class.",
                )
            )
    return drawn + study_plots.draw(folder, models["study"])
