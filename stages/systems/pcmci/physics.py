"""What soil and boundary-layer physics leads one to expect of a tower's graph, and whether it is there.

The expectations are those of the land-atmosphere literature (Seneviratne et al., Earth-Science Reviews 99, 2010; Krich
et al., Biogeosciences 17, 2020): rain wets the soil, radiation drives both fluxes and the temperature, and soil
moisture limits evaporation where it is scarce. A graph pooled over wet and dry days need not show the last two.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stages.metrics.summary import Verdict

#: Largest lag, in steps, at which a link still counts as the expected one.
MAX_LAG = 2


@dataclass(frozen=True)
class Expectation:
    """A link that physics expects: source, target, sign of the partial correlation, and why."""

    source: str
    target: str
    sign: int
    why: str

    @property
    def link(self) -> str:
        """The link as the report writes it."""
        return f"{self.source} → {self.target} ({'+' if self.sign > 0 else '−'})"


EXPECTED = (
    Expectation("P", "SWC", +1, "rain wets the soil"),
    Expectation("SW_IN", "LE", +1, "radiation drives evaporation"),
    Expectation("SW_IN", "H", +1, "radiation heats the surface"),
    Expectation("SW_IN", "TA", +1, "a sunny day is a warmer day"),
    Expectation("SWC", "LE", +1, "a drying soil limits evaporation (dry regime)"),
    Expectation("SWC", "H", -1, "a drying soil leaves more energy to heat the air (dry regime)"),
)


def judge(expectation: Expectation, links: pl.DataFrame, alpha: float) -> tuple[Verdict, str]:
    """Whether a tower's links hold an expectation.

    Parameters
    ----------
    expectation
        The link looked for, at lags 0 to ``MAX_LAG``; at lag 0 the method sees a link but no direction.
    links
        The tower's link table: source, target, lag, value, q; a pair at lag 0 stands once, in either order.
    alpha
        Level of q.

    Returns
    -------
    verdict, evidence
        ``not tested`` where the tower lacks a variable; the evidence names lag, value and q of the strongest link.
    """
    source, target = expectation.source, expectation.target
    forward = (pl.col("source") == source) & (pl.col("target") == target) & (pl.col("lag") <= MAX_LAG)
    mirrored = (pl.col("source") == target) & (pl.col("target") == source) & (pl.col("lag") == 0)
    pair = links.filter(forward | mirrored)
    if pair.is_empty():
        return "not tested", "variable not measured here"
    right = pair.filter((pl.col("value") * expectation.sign > 0) & (pl.col("q") <= alpha))
    chosen = (right if right.height else pair).sort(pl.col("value").abs(), descending=True).row(0, named=True)
    direction = "" if chosen["lag"] else ", no direction"
    evidence = f"lag {chosen['lag']}{direction}: {chosen['value']:+.2f}, q {chosen['q']:.2g}"
    return ("shown" if right.height else "not shown"), evidence
