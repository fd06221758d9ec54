"""Names of files and columns that more than one reader knows."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from stages.ingest.land_atmosphere.schema import VARIABLES

#: Files of FLUXNET2015 and its successors.
FLUXNET = re.compile(
    r"^(?P<network>[A-Za-z]+)_(?P<site>[A-Z]{2}-[A-Za-z0-9]{3})_FLUXNET(2015)?_"
    r"((?P<product>FULLSET|SUBSET|FLUXMET)_)?(?P<resolution>HH|HR|DD|WW|MM|YY)(_.*)?\.(csv|txt|xlsx)$"
)

#: Columns about a variable that are not the variable: flags, deviations, counts, percentiles, uncertainties.
ABOUT = re.compile(r"_(SSITC|QC|SD|SE|N|\d\d|METHOD|RANDUNC|JOINTUNC|THRESHOLD|SIGMA|NIGHT|DAY)(_|$)")
SHOWN = 4


def near_misses(names: Iterable[str], chosen: Container[str]) -> list[str]:
    """A note for each variable that no column was taken for although columns of nearly its name are there."""
    names = list(names)
    notes = []
    for variable in VARIABLES:
        near = [name for name in names if name.startswith(f"{variable}_") and not ABOUT.search(name)]
        if variable not in chosen and near:
            more = f" and {len(near) - SHOWN} more" if len(near) > SHOWN else ""
            notes.append(
                f"{variable}: not read, for no column has a name the format knows; there are "
                f"{', '.join(near[:SHOWN])}{more}. If one is right, name it: `columns: {{{variable}: {near[0]}}}`."
            )
    return notes
