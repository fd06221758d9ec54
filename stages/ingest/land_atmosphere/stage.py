"""``python -m stages ingest land_atmosphere@SITE``: the files of one tower to one harmonised data set."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stages import artifacts, manifest
from stages.ingest.land_atmosphere.config import Aggregation, Format
from stages.ingest.land_atmosphere.schema import UNITS
from stages.ingest.land_atmosphere.units import canonical
from stages.ingest.origin import fetched
from stages.params import StageParams, bound

if TYPE_CHECKING:
    from stages.ingest.land_atmosphere.native import Native

#: Rules under which one column holds measured and filled values.
CONSOLIDATED = ("flag", "share", "unknown")


class Params(StageParams):
    """What ingest reads of params.yaml."""

    path: Path = bound("land_atmosphere.sites.{key}.path")
    format: Format = bound("land_atmosphere.sites.{key}.format")
    aggregation: Aggregation = bound("land_atmosphere.aggregation")


def run(params: Params, *, name: str, key: str) -> None:
    """Read one tower and write data.zarr, records.parquet, site.json and manifest.json.

    Raises
    ------
    DataError
        The files are not what they should be; nothing is written.
    """
    from stages.ingest.land_atmosphere.native import harmonise, read_tower
    from stages.ingest.land_atmosphere.periods import DAY, aggregate
    from stages.ingest.land_atmosphere.records import monthly

    origin = fetched(params.path)
    native = harmonise(read_tower(params.path, params.format), key)
    groups = {"native": native.dataset}
    step = native.axis.step
    if step.calendar is None and step.minutes is not None and step.minutes <= DAY and native.dataset.data_vars:
        groups |= aggregate(native.dataset, native.axis.start, step.minutes, params.aggregation)
    else:
        native.notes.append(f"the resolution is a {step}: there are no daily and three-day values.")
    records = monthly(native, key)
    with artifacts.atomic(artifacts.ingested(name, key)) as draft:
        draft.mkdir(parents=True)
        artifacts.write_dataset(draft / "data.zarr", groups)
        artifacts.write_table(draft / "records.parquet", records)
        artifacts.write_json(draft / "site.json", description(native, key))
        manifest.write(draft, origin or manifest.of_path(params.path, f"{name}@{key}"))
    print(f"{key}: {records.height} records, {native.axis.start.size} steps, {', '.join(native.tower.chosen)}")
    for note in native.notes:
        print(f"note: {key}: {note}", file=sys.stderr)
    for variable, doubt in native.contradictions.items():
        trusted = f"unless its `gate` says `trusted_units: [{variable}]`"
        print(f"warning: {key}: {doubt}. The gate refuses the site {trusted}.", file=sys.stderr)


def description(native: Native, site: str) -> dict[str, Any]:
    """The content of site.json."""
    from stages.ingest.land_atmosphere.stamps import text_of

    tower, start = native.tower, native.axis.start
    return {
        "site": site,
        "site_in_file_names": tower.site,
        "reader": tower.reader,
        "files": tower.files,
        "ignored": tower.ignored,
        "resolution": str(tower.step),
        "resolution_minutes": tower.step.minutes,
        "utc_offset": tower.utc_offset,
        "start": text_of(int(start[0])),
        "end": text_of(int(start[-1])),
        "variables": {
            variable: {
                "source_column": origin.column,
                "source_unit": canonical(variable, origin.unit),
                "unit": UNITS[variable],
                "other_columns": tower.others.get(variable, []),
                "filled_column": origin.filled or (origin.column if origin.rule in CONSOLIDATED else None),
                "qc_column": origin.qc,
                "measured_steps": int(np.isfinite(native.dataset[variable].values).sum()),
            }
            for variable, origin in tower.chosen.items()
        },
        "notes": native.notes,
        "contradictions": native.contradictions,
    }
