"""The three kinds of splits: by family for transfer, by sequence identity, and as a set was published."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping

import polars as pl

from stages.errors import UsageError
from stages.rna.identity import clusters
from stages.validate import splits
from stages.validate.rna import divided, families, neighbours
from stages.validate.rna.divided import Divided
from stages.validate.rna.neighbours import EXCLUDED
from stages.validate.rna.settings import Splits

EXTERNAL = "external"  # molecules without a family: in no part of the families, but pre-training keeps away from them
IDENTITY = "identity"
PUBLISHED = "as_published"


def transfer(records: pl.DataFrame, pool: pl.DataFrame, params: Splits, seed: int) -> Divided:
    """Divide the families, then keep the parts apart by identity as well.

    Parameters
    ----------
    records
        record_id, group, family, length and evidence of all molecules of all sets.
    pool
        record_id, set, family, rna_type, evidence, length, sha256 and sequence of the accepted ones.
    """
    name = f"transfer-{seed}"
    in_corpus = pl.col("set").is_in(list(params.transfer.corpora))
    strata = families.strata(pool.filter(~in_corpus))
    part_of = families.divide(strata, params.transfer.shares(), seed=seed)
    given = pl.col("family").replace_strict(part_of, default=None, return_dtype=pl.String)
    downstream = in_corpus & given.fill_null("pretrain").is_in(splits.PARTS)
    frame = pool.with_columns(
        part=pl.when(downstream).then(pl.lit(EXCLUDED)).when(in_corpus).then(pl.lit("pretrain")).otherwise(given),
        reason=pl.when(downstream).then(pl.lit("its family is in ") + given),
    )
    frame = without_short(frame.with_columns(pl.col("part").fill_null(EXTERNAL)), params.shortest)
    pairs = neighbours.excluded(frame, frame["part"], params.identity)
    placed = without_near(frame, pairs)
    nearest = {
        "": neighbours.near(placed, ["test", EXTERNAL], ["train"], at_least=params.audit),
        "_pretrain": neighbours.near(placed, ["test", EXTERNAL], ["pretrain"], at_least=params.audit),
    }
    table = divided.rows(records, name, placed, seed=seed, per_family=params.per_family, nearest=nearest)
    parts = divided.sizes(table, records, [*families.PARTS, EXTERNAL, EXCLUDED])
    tested = placed.filter(pl.col("part") == "test")["record_id"]
    of_test = {suffix: frame.filter(pl.col("record_id").is_in(tested.implode())) for suffix, frame in nearest.items()}
    notes = _without(parts) if part_of else ["no molecule has a family: nothing was divided"]
    notes += divided.evidence_note({name: parts[name] for name in families.PARTS})
    notes += divided.cap_note(parts, params.per_family)
    notes += divided.family_note(placed)
    notes += divided.short_note(placed, params.shortest, params.identity)
    notes += divided.near_note(pairs, params.identity)
    for part, found in (("train", of_test[""]), ("pretrain", of_test["_pretrain"])):
        notes.append(neighbours.audit_note(found, tested.len(), params.audit, part))
    leaks = [
        *_straddling(placed, "family"),
        *_copies(placed),
        *neighbours.leaks(of_test[""], params.identity, "which is in train"),
        *neighbours.leaks(nearest["_pretrain"], params.identity, "which is in pretrain"),
    ]
    worst = {"train": neighbours.worst(of_test[""]), "pretrain": neighbours.worst(of_test["_pretrain"])}
    described = {"parts": parts, "notes": notes, "nearest": worst, "audited": tested.len()}
    return Divided(name, table, described, leaks)


def by_identity(records: pl.DataFrame, pool: pl.DataFrame, params: Splits) -> Divided:
    """Put whole clusters of sequences into the parts, over all sets and whatever the families."""
    long = pool.filter(pl.col("length") >= params.shortest)
    cluster = pl.Series("cluster", clusters(long["sequence"].to_list(), threshold=params.identity), dtype=pl.Int64)
    assigned = splits.by_group(
        cluster.cast(pl.String),
        pl.Series([True] * long.height, dtype=pl.Boolean),
        params.by_identity,
        seed=params.seed,
        stream="rna identity",
        noun="cluster",
    )
    found = long.select("record_id").with_columns(assigned.part.alias("part"), cluster)
    joined = pool.join(found, on="record_id", how="left", maintain_order="left")
    placed = without_short(joined.with_columns(reason=pl.lit(None, pl.String)), params.shortest)
    nearest = neighbours.near(placed, ["test"], ["train"], at_least=params.audit)
    table = divided.rows(
        records, IDENTITY, placed, seed=params.seed, per_family=params.per_family, nearest={"": nearest}
    )
    parts = divided.sizes(table, records, [*splits.PARTS, EXCLUDED])
    sizes = cluster.value_counts(sort=True)["count"]
    notes = [f"{sizes.len()} clusters, the largest of {sizes[0] if sizes.len() else 0} molecules", *assigned.notes]
    notes += divided.cap_note(parts, params.per_family)
    notes += divided.short_note(placed, params.shortest, params.identity)
    notes.append(neighbours.audit_note(nearest, parts["test"]["records"], params.audit, "train"))
    leaks = [
        *_straddling(placed, "cluster"),
        *_copies(placed),
        *neighbours.leaks(nearest, params.identity, "which is in train"),
    ]
    described = {
        "parts": parts,
        "notes": notes,
        "nearest": {"train": neighbours.worst(nearest)},
        "audited": parts["test"]["records"],
    }
    return Divided(IDENTITY, table, described, leaks)


def as_published(
    records: pl.DataFrame, pool: pl.DataFrame, params: Splits, key: str, globs: Mapping[splits.Part, str]
) -> Divided:
    """The parts that the authors of a set gave their files; audited, and never made better than it is.

    Parameters
    ----------
    records, pool
        As in :func:`transfer`, of the one set, and source_file.
    globs
        Files of each part.

    Raises
    ------
    UsageError
        A part has no file, or a file is in two parts.
    """
    files = records["source_file"].drop_nulls().unique().sort().to_list()
    part_of = _parts_of_files(files, key, globs)
    given = pool["source_file"].replace_strict(part_of, default=None, return_dtype=pl.String)
    placed = pool.with_columns(part=given, reason=pl.lit(None, pl.String))
    nearest = neighbours.near(placed, ["test"], ["train"], at_least=params.audit)
    table = divided.rows(records, PUBLISHED, placed, seed=params.seed, per_family=None, nearest={"": nearest})
    parts = divided.sizes(table, records, [part for part in splits.PARTS if part in globs])
    notes = [f"{part}: {', '.join(file for file in files if part_of.get(file) == part)}" for part in parts]
    apart = [file for file in files if file not in part_of]
    notes += [f"in no part: {', '.join(apart)}"] if apart else []
    found = nearest.join(pool.select("record_id", "length"), on="record_id").filter(
        pl.col("identity") >= params.identity
    )
    told = []
    if found.height:
        long = found.filter(pl.col("length") >= params.shortest).height
        worst = neighbours.told(neighbours.worst(found, 3))
        told = [
            f"{found.height} of {parts['test']['records']} test molecules reach {params.identity:.0%} identity with "
            f"one of train ({long} of them have {params.shortest} bases or more, where that is no chance), the "
            f"nearest: {', '.join(worst)}"
        ]
    described = {
        "parts": parts,
        "notes": notes,
        "nearest": {"train": neighbours.worst(nearest)},
        "audited": parts["test"]["records"] if "test" in parts else 0,
    }
    return Divided(f"{PUBLISHED}, {key}", table, described, told, stops=False)


def without_short(placed: pl.DataFrame, shortest: int) -> pl.DataFrame:
    """Exclude the molecules that are too short to be told apart by identity."""
    short = pl.col("length") < shortest
    return placed.with_columns(
        part=pl.when(short).then(pl.lit(EXCLUDED)).otherwise("part"),
        reason=pl.when(short).then(pl.lit(f"fewer than {shortest} bases")).otherwise("reason"),
    )


def without_near(placed: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Exclude the molecules that :func:`stages.validate.rna.neighbours.excluded` found, and say of which part."""
    percent = (pl.col("identity") * 100).round(1).cast(pl.String)
    text = pl.concat_str("from", pl.lit(": "), percent, pl.lit(" % identity with "), "nearest")
    joined = placed.join(pairs.select("record_id", near=text), on="record_id", how="left", maintain_order="left")
    near = pl.col("near").is_not_null()
    return joined.with_columns(
        part=pl.when(near).then(pl.lit(EXCLUDED)).otherwise("part"), reason=pl.coalesce("near", "reason")
    ).drop("near")


def _parts_of_files(files: list[str], key: str, globs: Mapping[splits.Part, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for part, glob in globs.items():
        mine = [file for file in files if fnmatch.fnmatchcase(file, glob)]
        if not mine:
            raise UsageError(
                f"rna.splits.published.{key}.{part} of params.yaml is {glob!r}, and no file of the set has such "
                f"a name; it has {', '.join(files)}."
            )
        for file in mine:
            if file in found:
                raise UsageError(
                    f"rna.splits.published.{key} of params.yaml puts {file} into {found[file]} and into {part}; "
                    "a file has one part."
                )
            found[file] = part
    return found


def _without(parts: Mapping[str, dict[str, object]]) -> list[str]:
    return [f"no family is left for {part}" for part in families.PARTS if not parts[part]["records"]]


def _compared(placed: pl.DataFrame) -> pl.DataFrame:
    return placed.filter(pl.col("part").is_not_null() & ~pl.col("part").is_in([EXCLUDED, EXTERNAL]))


def _straddling(placed: pl.DataFrame, column: str) -> list[str]:
    used = _compared(placed).drop_nulls(column)
    everyone = pl.Series([True] * used.height, dtype=pl.Boolean)
    return splits.straddling(used["part"], used[column], everyone, noun=column)


def _copies(placed: pl.DataFrame) -> list[str]:
    used = _compared(placed)
    everyone = pl.Series([True] * used.height, dtype=pl.Boolean)
    return splits.shared_content(used["part"], used["sha256"], used["record_id"], everyone)
