"""``evaluate rna_transfer``: scores of every arm's answers, comparisons, claims and pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from stages import artifacts
from stages.metrics.summary import Plot, Summary, Table, write_summary
from stages.params import Config, StageParams, bound
from stages.runtime import progress
from stages.systems.rna_transfer.settings import BASELINE, DOMAIN, TASKS, Run, Train
from stages.trained import read_config, read_tables

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from stages.accepted.rna import Accepted
    from stages.systems.rna_transfer.answers import Answered
    from stages.systems.rna_transfer.arcs import Drawn
    from stages.systems.rna_transfer.comparisons import Comparison
    from stages.systems.rna_transfer.optimisation import Optimisation
    from stages.systems.rna_transfer.scored import Floats

TABLES = ("pretraining", "history", "predictions", "geometry")
RUN = ("model", "tokens", "arm")
CITATIONS = [
    "Transferability of RNA foundation models. International Conference on Machine Learning, 2026 (the abstract is "
    "public; the study here is reconstructed from it, see docs/systems/rna-transfer.md).",
    "Lorenz, R. et al.: ViennaRNA Package 2.0. Algorithms for Molecular Biology 6:26, 2011.",
    "Kalvari, I. et al.: Rfam 14: expanded coverage of metagenomic, viral and microRNA families. Nucleic Acids "
    "Research 49, 2021.",
    "Kornblith, S., Norouzi, M., Lee, H. and Hinton, G.: Similarity of neural network representations revisited. "
    "International Conference on Machine Learning, 2019.",
    "Neyshabur, B., Sedghi, H. and Zhang, C.: What is being transferred in transfer learning? Advances in Neural "
    "Information Processing Systems, 2020.",
]


class Evaluate(Config):
    """How the answers are looked at."""

    shown: int = Field(ge=1, description="test molecules whose pairs are drawn, from the worst to the best predicted")
    lengths: list[Annotated[int, Field(ge=1)]] = Field(description="borders of the length classes, in bases")
    identities: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        min_length=1, description="borders of the classes of identity with the nearest training molecule"
    )


class Params(StageParams):
    """Params of ``evaluate-rna_transfer``."""

    seeds: list[int] = bound("seeds")
    evaluate: Evaluate = bound("systems.rna_transfer.evaluate")
    identity: float = bound("rna.splits.identity")


def run(params: Params, *, name: str, key: str) -> None:
    """Score the answers of all seeds; write metrics.json, scores, some structures and plots."""
    from stages.accepted import rna
    from stages.systems.rna_transfer import claims
    from stages.systems.rna_transfer.comparisons import Comparison
    from stages.systems.rna_transfer.optimisation import Optimisation

    models, config = read_tables(name, params.seeds, TABLES), read_config(name, params.seeds)
    train = Train.model_validate({field: value for field, value in config.items() if field != "learnt"})
    accepted = rna.open_set(config["learnt"]["corpus"]["sets"])
    never = never_pairing(accepted, train, params.seeds)
    answered = score(name, params, train, accepted, models["predictions"])
    found = Comparison(answered, train, config["learnt"], params.seeds, params.identity, never)
    optimised = Optimisation(models["history"], models["geometry"], params.seeds)
    drawn = structures(found, accepted, models["predictions"], params)
    with artifacts.atomic(artifacts.evaluation(name)) as draft:
        (draft / "plots").mkdir(parents=True)
        plots = draw(draft / "plots", found, optimised, drawn)
        artifacts.write_table(draft / "scores.parquet", molecule_scores(answered))
        if drawn:
            artifacts.write_table(draft / "predictions.parquet", shown_structures(drawn, accepted))
        summary = Summary(
            system=name,
            title="RNA transfer",
            domain=DOMAIN,
            headline=claims.headline(found),
            claims=claims.claims(found, optimised),
            tables=all_tables(found, optimised, models["pretraining"], params.evaluate),
            plots=plots,
            figures=claims.figures(found),
            citations=CITATIONS,
        )
        write_summary(draft, summary)


def score(
    name: str, params: Params, train: Train, accepted: Accepted, predictions: pl.DataFrame
) -> dict[str, Answered]:
    """Sums of every task and arm, over all seeds.

    Raises
    ------
    DataError
        The answers are not to the molecules that the gate tests on now.
    """
    import numpy as np
    import polars as pl

    from stages.systems.rna_transfer import answers

    at_least = min(params.evaluate.identities)
    about: dict[str, pl.DataFrame] = {}
    classes = read_classes(name, params.seeds)
    for split in dict.fromkeys(_split(train, seed) for seed in params.seeds):
        mine = [seed for seed in params.seeds if _split(train, seed) == split]
        of_split = predictions.filter(pl.col("seed").is_in(mine))
        answers.check_molecules(artifacts.model(name, mine[0]), accepted, split, of_split)
        records = sorted(of_split["record_id"].unique().to_list())
        about[split] = answers.describe_molecules(accepted, split, records, at_least=at_least)
    found: dict[str, Answered] = {}
    for task in progress(train.tasks, "scores", unit="tasks"):
        of_task = predictions.filter(pl.col("task") == task)
        types = len({kind for seed in params.seeds for kind in classes[seed]})
        molecules = []
        sums: dict[Run, list[Floats]] = {}
        for seed in params.seeds:
            mine_now = of_task.filter(pl.col("seed") == seed)
            records = mine_now["record_id"].unique(maintain_order=True).to_list()
            order = pl.DataFrame({"record_id": records})
            joined = order.join(about[_split(train, seed)], on="record_id", how="left", maintain_order="left")
            molecules.append(joined.select(pl.lit(seed, pl.Int64).alias("seed"), pl.all()))
            truth = answers.truths(accepted, task, records, classes=classes[seed], window=train.window)
            for labels, rows in mine_now.partition_by(*RUN, as_dict=True, maintain_order=True).items():
                aligned = order.join(rows, on="record_id", how="left", maintain_order="left")
                key = Run(str(labels[0]), int(labels[1]), str(labels[2]))
                sums.setdefault(key, []).append(answers.answer_sums(task, truth, aligned, types))
        found[task] = answers.Answered(pl.concat(molecules), {key: np.concatenate(each) for key, each in sums.items()})
    return found


def never_pairing(accepted: Accepted, train: Train, seeds: list[int]) -> list[float]:
    """Mean F1 of an answer that never pairs, on the validation molecules of each seed; 0 where pairs are no task."""
    import numpy as np

    from stages.systems.rna_transfer.corpus import Corpus

    if "base_pairs" not in train.tasks:
        return [0.0] * len(seeds)
    known: dict[str, float] = {}
    for seed in seeds:
        split = _split(train, seed)
        if split not in known:
            _, parts, _ = Corpus(accepted, split, train, seed).examples("base_pairs")
            silent = [float(len(example.truth) == 0) for example in parts.validation]
            known[split] = float(np.mean(silent)) if silent else 0.0
    return [known[_split(train, seed)] for seed in seeds]


def _split(train: Train, seed: int) -> str:
    """The split that a seed was trained in."""
    return train.splits[seed % len(train.splits)]


def read_classes(name: str, seeds: list[int]) -> dict[int, list[str]]:
    """Types of each seed in the order of their scores; [] where types are no task."""
    found = {}
    for seed in seeds:
        tasks = artifacts.read_json(artifacts.model(name, seed) / "config.json")["learnt"]["tasks"]
        found[seed] = list(tasks.get("rna_type", {}).get("classes") or [])
    return found


def molecule_scores(answered: dict[str, Answered]) -> pl.DataFrame:
    """scores.parquet: every molecule's own score by task, arm and seed."""
    import polars as pl

    from stages.systems.rna_transfer.scored import OWN, own_value

    parts = []
    for task, mine in answered.items():
        for key, sums_NC in mine.sums.items():
            labels = [pl.lit(value).alias(column) for column, value in key._asdict().items()]
            values = pl.Series("value", own_value(sums_NC), dtype=pl.Float64).fill_nan(None)
            labels += [pl.lit(task).alias("task"), pl.lit(OWN[task]).alias("score")]
            parts.append(mine.molecules.select(*labels, pl.all(), values))
    return pl.concat(parts)


def all_tables(
    found: Comparison, optimised: Optimisation, pretraining: pl.DataFrame, settings: Evaluate
) -> list[Table]:
    """The tables of the report, in its order."""
    from stages.systems.rna_transfer import geometry_tables, result_tables

    made: list[Table | None] = [result_tables.arms_table(found, task) for task in found.tasks]
    made += [result_tables.differences_table(found), result_tables.alignment_table(found)]
    made += [result_tables.axis_table(found)]
    made += [geometry_tables.convergence_table(found, optimised), geometry_tables.sharpness_table(found, optimised)]
    made += [geometry_tables.distance_table(found, optimised), geometry_tables.similarity_table(found, optimised)]
    made += [result_tables.strata_table(found, task, settings.lengths, settings.identities) for task in found.tasks]
    made += [result_tables.family_table(found, task) for task in found.tasks]
    made += [result_tables.scores_table(found), result_tables.pretraining_table(found, pretraining)]
    made += [result_tables.molecules_table(found)]
    return [table for table in made if table is not None]


def structures(found: Comparison, accepted: Accepted, predictions: pl.DataFrame, params: Params) -> list[Drawn]:
    """True and predicted pairs of a few test molecules of the first seed; none where pairs are no task."""
    import polars as pl

    from stages.systems.rna_transfer.answers import pairs_of
    from stages.systems.rna_transfer.arcs import Drawn, spread
    from stages.systems.rna_transfer.claims import SHORT
    from stages.systems.rna_transfer.comparisons import MAIN

    if "base_pairs" not in found.tasks:
        return []
    runs = [run for arm in (MAIN, BASELINE, "mfe") if found.has("base_pairs", run := found.run(arm))]
    seed, place = params.seeds[0], {record: m for m, record in enumerate(accepted.record_ids)}
    mine = predictions.filter((pl.col("task") == "base_pairs") & (pl.col("seed") == seed))
    drawn = []
    for record in spread(found.answered["base_pairs"], runs[0], seed, params.evaluate.shown):
        predicted = {}
        for key in runs:
            row = mine.filter(
                (pl.col("record_id") == record) & (pl.col("model") == key.model) & (pl.col("tokens") == key.tokens)
                & (pl.col("arm") == key.arm)
            )  # fmt: skip
            pairs = pairs_of(row)[0]
            if pairs is not None:
                predicted[SHORT[key.arm]] = pairs
        m = place[record]
        drawn.append(Drawn(record, int(accepted.lengths[m]), accepted.pairs(m), predicted))
    return drawn


def shown_structures(drawn: list[Drawn], accepted: Accepted) -> pl.DataFrame:
    """predictions.parquet."""
    from stages.systems.rna_transfer.arcs import shown_table

    place = {record: m for m, record in enumerate(accepted.record_ids)}
    return shown_table(drawn, [accepted.sequence(place[molecule.name]) for molecule in drawn])


def draw(folder: Path, found: Comparison, optimised: Optimisation, drawn: list[Drawn]) -> list[Plot]:
    """Draw what there is to draw."""
    from stages.systems.rna_transfer import arcs, plots
    from stages.systems.rna_transfer.comparisons import MAIN

    lead, said = TASKS[found.tasks[0]], " (simulated)" if found.simulated else ""
    over = "95 % bootstrap intervals over families and seeds."
    made: list[Plot] = []

    def add(file: str, title: str, caption: str, *, study: bool = False) -> Path:
        made.append(Plot(file=f"{file}.svg", title=f"{title}{said}", caption=caption, on_results_page=study))
        return folder / f"{file}.svg"

    if drawn:
        caption = (
            "Test molecules of the first seed, from the worst to the best predicted by the fine-tuned arm. Above the "
        )
        caption += "line the true pairs, below it the predicted ones."
        arcs.draw_arcs(add("pairs", "True and predicted base pairs", caption), drawn)
    caption = f"Leading score of each task; right of the line an arm is better. {over}"
    plots.draw_differences(add("differences", "Each arm less the random one", caption, study=True), found)
    caption = "Metric of the validation molecules, mean over seeds; shaded from the lowest to the highest seed. "
    caption += "Grey line: an answer without knowledge."
    plots.draw_learning(add("learning", "Learning curves", caption), found, optimised)
    if all(found.has(task, found.run(MAIN)) for task in found.tasks):
        caption = f"Fine-tuned less random, over what the random arm lacks to 1. {over}"
        plots.draw_alignment(add("alignment", "Benefit by alignment", caption, study=True), found)
        if sum(len(found.lengths(size)) for size in found.train.sizes) > 1:
            caption = f"Fine-tuned less random of the same size ({lead}). {over}"
            plots.draw_capacity(add("capacity", "Benefit by pre-training and size", caption, study=True), found)
    sharp = [task for task in found.tasks if plots.sharp_points(found, optimised, task)]
    if sharp:
        caption = "A point a seed and arm, all at the same training loss of the task; test molecules of families."
        path = add("sharpness", "Sharpness and generalisation", caption, study=True)
        plots.draw_sharpness(path, found, optimised, sharp)
    panels = plots.cka_panels(found, optimised)
    if panels:
        caption = f"Linear CKA on the same bases of validation molecules, mean over seeds ({lead})."
        plots.draw_similarity(add("similarity", "Similarity of layers", caption), panels)
    return made
