"""``python -m stages report``: every evaluation and the data it stands on, on one page."""

from __future__ import annotations

from pydantic import Field

from stages import artifacts
from stages.params import Config, StageParams, bound


class Block(Config):
    """The report: one self-contained page, data/report/index.html."""

    title: str = Field(min_length=1, description="the heading of the page")
    records_shown: int = Field(10, ge=0, description="quarantined records each domain lists openly; the rest unfolds")


class Params(StageParams):
    """Params of ``report``."""

    report: Block = bound("report")


def run(params: Params, *, name: str, key: str) -> None:
    """Write data/report/index.html from data/evaluations and data/validated.

    Raises
    ------
    StageError, DataError
        There is nothing to report, or an input is not what its stage writes; the old report stays.
    """
    from stages.report.inputs import collect
    from stages.report.page import render

    systems, gates = collect()
    text = render(params.report.title, params.report.records_shown, systems, gates)
    with artifacts.atomic(artifacts.REPORT) as draft:
        draft.mkdir()
        (draft / "index.html").write_text(text, encoding="utf-8", newline="\n")
