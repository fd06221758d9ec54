"""``train endogenous_context@SEED``: for each tower graphs of each soil-moisture regime, and the twin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from stages import artifacts
from stages.accepted.series_config import SeriesConfig
from stages.params import Config, StageParams, bound
from stages.runtime import progress
from stages.systems.endogenous_context.study_config import Study

if TYPE_CHECKING:
    import polars as pl

    from stages.causal.processes import Processes


class Context(Config):
    """The context: soil moisture cut at quantiles of the season of the training years."""

    quantiles: list[Annotated[float, Field(gt=0, lt=1)]] = Field(
        min_length=1, description="shares of the days below each threshold, rising"
    )
    levels: list[str] = Field(
        min_length=2, description="names of the regimes, from the driest; one more than quantiles"
    )

    @model_validator(mode="after")
    def _match(self) -> Self:
        if len(self.levels) != len(self.quantiles) + 1:
            raise ValueError(f"{len(self.levels)} levels for {len(self.quantiles)} quantiles; one more level is needed")
        if any(low >= high for low, high in zip(self.quantiles[:-1], self.quantiles[1:], strict=True)):
            raise ValueError("the quantiles must rise")
        if len(set(self.levels)) < len(self.levels):
            raise ValueError("the same level stands twice")
        return self


class Twins(Config):
    """Simulated buckets, analysed like a tower."""

    repeats: int = Field(ge=1, description="series for each seed")
    steps: int = Field(ge=100, description="length of each series, days")


class Search(NamedTuple):
    """What every search shares."""

    tau_max: int
    pc_alpha: float
    min_samples: int


class Train(SeriesConfig):
    """Endogenous contexts: which series, which regimes, and how often the search is repeated."""

    context: Context
    pc_alpha: float = Field(gt=0, lt=1, description="level of every test of PCMCI+")
    alpha: float = Field(gt=0, lt=1, description="level of a link's q on towers")
    min_samples: int = Field(
        ge=10, description="fewest days that keep a regime over the whole lag window; with fewer it has no graph"
    )
    resampled: list[Literal["A", "B", "pooled", "masked", "intersection"]] = Field(
        description="methods whose links are repeated on resampled years"
    )
    resamples: int = Field(ge=10, description="resamples of each tower for each seed")
    block: int = Field(ge=1, le=100, description="length of a bootstrap block where years are too few, steps")
    twins: Twins
    study: Study

    @property
    def search(self) -> Search:
        """What every search shares."""
        return Search(self.tau_max, self.pc_alpha, self.min_samples)


class Params(StageParams):
    """Params of ``train-endogenous_context``."""

    train: Train = bound("systems.endogenous_context.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Estimate the graphs of all towers and twins and write the tables that `evaluate` reads."""
    from stages.causal.processes import processes
    from stages.systems.endogenous_context.towers import tower_tables

    seed, train = int(key), params.train
    with processes() as spread:
        tables = tower_tables(train, seed, spread)
        tables |= {"twins": twin_table(train, seed, spread), "study": study_table(train, seed, spread)}
    with artifacts.atomic(artifacts.model(name, seed)) as draft:
        draft.mkdir()
        artifacts.write_json(draft / "config.json", train.model_dump())
        for table, frame in tables.items():
            artifacts.write_table(draft / f"{table}.parquet", frame)


def twin_table(train: Train, seed: int, spread: Processes) -> pl.DataFrame:
    """Links of the simulated buckets with the truth beside them."""
    import polars as pl

    from stages.systems.endogenous_context.twins import Twin, twins

    tasks = twins(train, seed)
    return pl.concat(progress(spread.map(Twin.run, tasks), "twins", total=len(tasks), unit="series"))


def study_table(train: Train, seed: int, spread: Processes) -> pl.DataFrame:
    """Counts of each method on systems whose graph in each context is known."""
    import polars as pl

    from stages.systems.endogenous_context.study import SCHEMA, Task, tasks

    every = tasks(train.study, seed)
    found = progress(spread.map(Task.run, every), "study", total=len(every), unit="series")
    return pl.DataFrame([row for rows in found for row in rows], schema=SCHEMA)
