"""``train pcmci@SEED``: a graph for each tower and sample of its years, its bootstrap, and the twins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, field_validator

from stages import artifacts
from stages.errors import DataError
from stages.params import Config, StageParams, bound
from stages.runtime import progress, random_numbers

if TYPE_CHECKING:
    import polars as pl

    from stages.systems.pcmci.series import Series

DOMAIN = "land_atmosphere"
Variable = Literal["SWC", "P", "LE", "H", "G", "NETRAD", "SW_IN", "VPD", "TA"]
Month = Annotated[int, Field(ge=1, le=12)]


class Twins(Config):
    """Simulated series whose graph is known, analysed like a tower."""

    repeats: int = Field(ge=1, description="series of each kind for each seed")
    steps: int = Field(ge=100, description="length of each series, days")


class Train(Config):
    """PCMCI: which series it sees, how far back it looks, and how often it is repeated."""

    variables: list[Variable] = Field(min_length=2, description="variables of the graph, where a tower has them")
    aggregation: Literal["daily", "three_day"] = Field(description="step of the series: means over one or three days")
    months: list[Month] = Field(
        min_length=1, description="months of the warm season, 1 to 12; other days are no targets"
    )
    harmonics: int = Field(ge=0, le=6, description="harmonics of the seasonal cycle that is subtracted")
    tau_max: int = Field(ge=1, le=30, description="largest lag, steps of the aggregation")
    pc_alpha: float = Field(gt=0, lt=1, description="level of the condition selection (PC1)")
    alpha: float = Field(gt=0, lt=1, description="level of a link: of q on towers, of p on the twins")
    min_days: int = Field(
        ge=30,
        description="fewest values a variable needs in the season to take part, steps; a third in a part of the years",
    )
    resamples: int = Field(ge=10, description="block-bootstrap resamples of each tower for each seed")
    block: int = Field(ge=1, le=100, description="length of a bootstrap block, steps")
    twins: Twins

    @field_validator("variables", "months")
    @classmethod
    def _once(cls, value: list[Any]) -> list[Any]:
        if len(set(value)) < len(value):
            raise ValueError("the same entry stands twice")
        return value


class Params(StageParams):
    """Params of ``train-pcmci``."""

    train: Train = bound("systems.pcmci.train")


def run(params: Params, *, name: str, key: str) -> None:
    """Estimate every graph and write links, bootstrap, twins and the list of series."""
    import polars as pl

    from stages.systems.pcmci.estimate import estimate
    from stages.systems.pcmci.twins import twin_tables

    seed, train = int(key), params.train
    series, links, stability = [], [], []
    for site, sample, prepared in tower_series(train):
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


def tower_series(train: Train) -> Iterator[tuple[str, str, Series]]:
    """Each tower in each sample of its years: all; training and validation; test (held out)."""
    import polars as pl

    from stages.accepted.land_atmosphere import open_tower
    from stages.systems.pcmci.series import prepare

    folder = artifacts.validated(DOMAIN)
    splits = artifacts.read_table(folder / "splits.parquet").collect()
    years = splits.with_columns(year=pl.col("record_id").str.split("/").list.last().str.head(4).cast(pl.Int64))
    sites = years["group"].unique().sort().to_list()
    for site in progress(sites, "towers", unit="towers"):
        dataset = open_tower(Path(artifacts.ingested(DOMAIN, site)), folder / "verdict.parquet", train.aggregation)
        if dataset is None:  # coarser than the aggregation
            continue
        of_site = years.filter(pl.col("group") == site)
        test = of_site.filter(pl.col("by_year") == "test")["year"].unique()
        rest = of_site.filter(pl.col("by_year") != "test")["year"].unique()
        for sample, chosen in (("all", None), ("train", rest), ("test", test)):
            if chosen is not None and test.is_empty():
                continue  # one or two years: nothing is held out
            yield (
                site,
                sample,
                prepare(
                    dataset,
                    None if chosen is None else chosen.to_numpy(),
                    variables=train.variables,
                    months=train.months,
                    harmonics=train.harmonics,
                    min_days=train.min_days if sample == "all" else train.min_days // 3,
                ),
            )
