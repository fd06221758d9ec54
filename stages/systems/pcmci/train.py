"""``train pcmci@SEED``: a graph for each tower and sample of its years, its bootstrap, and the twins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from stages import artifacts
from stages.accepted.series_config import DOMAIN, SeriesConfig
from stages.errors import DataError
from stages.params import Config, StageParams, bound
from stages.runtime import progress, random_numbers

if TYPE_CHECKING:
    import polars as pl


class Twins(Config):
    """Simulated series whose graph is known, analysed like a tower."""

    repeats: int = Field(ge=1, description="series of each kind for each seed")
    steps: int = Field(ge=100, description="length of each series, days")


class Train(SeriesConfig):
    """PCMCI: which series it sees, how far back it looks, and how often it is repeated."""

    pc_alpha: float = Field(gt=0, lt=1, description="level of the condition selection (PC1)")
    alpha: float = Field(gt=0, lt=1, description="level of a link: of q on towers, of p on the twins")
    resamples: int = Field(ge=10, description="block-bootstrap resamples of each tower for each seed")
    block: int = Field(ge=1, le=100, description="length of a bootstrap block, steps")
    twins: Twins


class Params(StageParams):
    """Params of ``train-pcmci``."""

    train: Train = bound("systems.pcmci.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Estimate every graph and write links, bootstrap, twins and the list of series."""
    import polars as pl

    from stages.accepted.tower_series import tower_samples
    from stages.systems.pcmci.estimate import estimate
    from stages.systems.pcmci.twins import twin_tables

    seed, train = int(key), params.train
    series, links, stability = [], [], []
    for site, sample, prepared in tower_samples(train):
        rng = random_numbers(seed, "bootstrap", site) if sample == "all" else None
        used, table, resampled = estimate(prepared, train, rng)
        series.append(
            {
                "site": site,
                "sample": sample,
                "variables": used.names,
                "left_out": [f"{variable}: {why}" for variable, why in used.dropped.items()],
                "days": used.days,
            }
        )
        label = [pl.lit(site).alias("site"), pl.lit(sample).alias("sample")]
        links += [] if table is None else [table.select(*label, pl.all())]
        stability += [] if resampled is None else [resampled.select(*label, pl.all())]
    twins = list(
        progress(
            twin_tables(train, random_numbers(seed, "twins")), "twins", total=2 * train.twins.repeats, unit="series"
        )
    )
    with artifacts.atomic(artifacts.model(name, seed)) as draft:
        draft.mkdir()
        artifacts.write_json(draft / "config.json", train.model_dump())
        artifacts.write_table(draft / "series.parquet", pl.DataFrame(series))
        artifacts.write_table(draft / "links.parquet", _joined(links, "no tower has two variables with enough values"))
        artifacts.write_table(draft / "bootstrap.parquet", _joined(stability, "no tower can be resampled"))
        artifacts.write_table(draft / "twins.parquet", pl.concat(twins))


def _joined(tables: list[pl.DataFrame], otherwise: str) -> pl.DataFrame:
    import polars as pl

    if not tables:
        raise DataError(
            artifacts.ingested(DOMAIN),
            found=otherwise,
            expected="at least one tower to learn from",
            remedy="Name fewer variables or a smaller min_days under systems.pcmci.train in params.yaml.",
        )
    return pl.concat(tables)
