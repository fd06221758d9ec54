"""How many updates an arm takes to reach what the baseline reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

#: Share of the baseline's gain over chance that has to be reached.
SHARE = 0.9
#: Smallest gain of the baseline over chance: below, the range is too small for a level to mean anything.
LEAST_GAIN = 0.02


class Convergence(NamedTuple):
    """Updates to the baseline's level.

    Attributes
    ----------
    level
        Chance plus 90 % of the baseline's best gain over chance; None where the baseline never leaves chance.
    step
        First checked update at which the arm reaches it; None where it never does.
    baseline_step
        The same of the baseline.
    """

    level: float | None
    step: int | None
    baseline_step: int | None


def steps_to_level(
    arm: Sequence[Mapping[str, Any]], baseline: Sequence[Mapping[str, Any]], chance: float, *, share: float = SHARE
) -> Convergence:
    """Compare two histories at one level that the baseline alone defines.

    A level of an arm's own best would call an arm fast that never gets far.

    Parameters
    ----------
    arm, baseline
        Rows with ``step`` and ``validation_metric``, by step.
    chance
        Metric of an answer without knowledge.
    """
    known = [row["validation_metric"] for row in baseline if row["validation_metric"] is not None]
    best = max(known, default=chance)
    if best - chance < LEAST_GAIN:
        return Convergence(None, None, None)
    level = chance + share * (best - chance)
    return Convergence(level, _first(arm, level), _first(baseline, level))


def _first(rows: Sequence[Mapping[str, Any]], level: float) -> int | None:
    reached = (
        row["step"] for row in rows if row["validation_metric"] is not None and row["validation_metric"] >= level
    )
    return next(reached, None)
