"""labels.parquet: what a library folds from the sequences alone, over the available cores.

A label source of its own, beside the structures of the files and never mixed with them.
"""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path

import polars as pl
from polars.io.plugins import register_io_source

from stages.ingest.rna.config import MfeLabels
from stages.ingest.rna.parts import Source
from stages.ingest.rna.records import LABELS, frame
from stages.ingest.rna.schema import MFE
from stages.rna.folding import Folded, fold

#: Molecules read and written at once, and given to a process at once.
ROWS = 2_000
TASKS = 8
#: Fewer molecules than this are folded by this process alone: starting others takes longer.
FEW = 64


def write_labels(folder: Path, options: MfeLabels, key: str) -> int:
    """Fold molecules of a set that is written otherwise, and write its labels.parquet.

    Parameters
    ----------
    folder
        Holds molecules.parquet and records.parquet, row by row of the same molecules.

    Returns
    -------
    int
        Number of molecules folded.
    """
    from stages.runtime import progress

    table = pl.scan_parquet(folder / "molecules.parquet").select("record_id", "sequence")
    is_chosen = chosen(folder / "records.parquet", options)
    total = int(is_chosen.sum())

    def batches(pool: ProcessPoolExecutor | None) -> Iterator[pl.DataFrame]:
        starts = range(0, len(is_chosen), ROWS)
        parts = (table.slice(start, ROWS).collect().filter(is_chosen.slice(start, ROWS)) for start in starts)
        folded = (row for part in parts for row in _folded(part, options, pool))
        bar = iter(progress(folded, f"{key}, folding", total=total, unit="molecules"))
        while held := list(islice(bar, ROWS)):
            yield _frame(held)

    with _pool(-(-total // FEW)) as pool:
        source = register_io_source(Source(batches(pool)), schema=LABELS)
        source.sink_parquet(folder / "labels.parquet", compression="zstd", row_group_size=ROWS)
    return total


def chosen(records: Path, options: MfeLabels) -> pl.Series:
    """Which molecules are folded: not empty, short enough, and not more different ones of a family than asked for.

    Those of a large family are the first in order of their digests, so that no file's order decides.
    """
    is_short = pl.col("length").is_between(1, options.max_length)
    table = pl.scan_parquet(records)
    if options.per_family is not None:
        # A molecule too long takes no place from a shorter one.
        place = pl.when(is_short).then("sha256").rank("dense").over("group")
        is_short = is_short & (place <= options.per_family)
    return table.select(is_short).collect().to_series()


def _folded(part: pl.DataFrame, options: MfeLabels, pool: ProcessPoolExecutor | None) -> Iterator[tuple[str, Folded]]:
    """Molecules of a part in their order; one sequence is folded once."""
    different = part["sequence"].unique(maintain_order=True).to_list()
    work = partial(fold, temperature=options.temperature)
    answers = map(work, different) if pool is None else pool.map(work, different, chunksize=TASKS)
    known: dict[str, Folded] = {}
    names = iter(different)
    for record_id, sequence in part.iter_rows():
        while sequence not in known:
            known[next(names)] = next(answers)
        yield record_id, known[sequence]


def _frame(held: list[tuple[str, Folded]]) -> pl.DataFrame:
    columns = {
        "record_id": [record_id for record_id, _ in held],
        "source": [MFE] * len(held),
        "pairs_left": [folded.pairs[:, 0] for _, folded in held],
        "pairs_right": [folded.pairs[:, 1] for _, folded in held],
        "mfe_kcal": [folded.energy for _, folded in held],
        "paired_probability": [folded.paired for _, folded in held],
    }
    return frame(columns, LABELS)


@contextmanager
def _pool(most: int) -> Iterator[ProcessPoolExecutor | None]:
    """Processes on the available cores, ``most`` at most; None where one would do."""
    workers = min(len(os.sched_getaffinity(0)), most)
    if workers < 2:
        yield None
        return
    # spawn: a fork copies the locks of other libraries' threads in whatever state they are.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """End this process when the one that started it is killed; a pool's process would wait for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
