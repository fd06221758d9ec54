"""What soil physics leads one to expect of a tower's graphs in dry and in wet soil, and whether it is there.

Rain wets the soil whatever its state; energy limits evaporation in wet soil, soil moisture in dry soil, where it also
decides how much energy is left to heat the air (Seneviratne et al., Earth-Science Reviews 99, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from stages.metrics.summary import Verdict

#: Largest lag, in steps, at which a link still counts as the expected one.
MAX_LAG = 2


@dataclass(frozen=True)
class Expectation:
    """A link that physics expects in some regimes.

    Attributes
    ----------
    source, target
        The link.
    sign
        Sign of the partial correlation.
    where
        In every regime; in the wettest one, whatever the others show; in the driest one and not in the wettest.
    why
        The reason, in words.
    """

    source: str
    target: str
    sign: int
    where: Literal["every", "wettest", "only the driest"]
    why: str

    @property
    def link(self) -> str:
        """The link as the report writes it."""
        return f"{self.source} → {self.target} ({'+' if self.sign > 0 else '−'})"

    def present(self, levels: Sequence[str]) -> list[str]:
        """Regimes that must show the link."""
        return {"every": list(levels), "wettest": [levels[-1]], "only the driest": [levels[0]]}[self.where]

    def absent(self, levels: Sequence[str]) -> list[str]:
        """Regimes that must not show it."""
        return [levels[-1]] if self.where == "only the driest" else []

    def place(self, levels: Sequence[str]) -> str:
        """Where it is expected, with the names of the regimes."""
        words = {"every": "every regime", "wettest": levels[-1], "only the driest": f"only {levels[0]}"}
        return words[self.where]


EXPECTED = (
    Expectation("P", "SWC", +1, "every", "rain wets the soil"),
    Expectation("SW_IN", "LE", +1, "wettest", "energy limits evaporation where water does not"),
    Expectation("SWC", "LE", +1, "only the driest", "soil moisture limits evaporation where it is scarce"),
    Expectation("SWC", "H", -1, "only the driest", "scarce soil moisture decides how much energy heats the air"),
)


def judge(expectation: Expectation, links: pl.DataFrame, levels: Sequence[str], alpha: float) -> tuple[Verdict, str]:
    """Whether a tower's graphs hold an expectation.

    Parameters
    ----------
    expectation
        The link looked for, at lags 0 to `MAX_LAG`. At lag 0 an edge that is not oriented counts, one that points the
        other way does not.
    links
        The tower's links by one method: level, source, target, lag, value, q, samples, low, high, mark, and frequency
        (null where nothing was resampled); a pair at lag 0 stands once, in either order. Empty where there is no graph.
    levels
        Names of the regimes, from the driest.
    alpha
        Level of q.

    Returns
    -------
    verdict, evidence
        ``not tested`` where the tower has no graphs or lacks a variable; the evidence names for each regime the lag,
        value, q and samples of the strongest link, and the share of the resamples that find it.
    """
    if links.is_empty():
        return "not tested", "no graphs"
    evidence, held = [], {}
    for level in levels:
        chosen = strongest(expectation, links.filter(pl.col("level") == level), alpha)
        if chosen is None:
            return "not tested", "variable not measured here"
        held[level] = bool(chosen["right"])
        evidence.append(f"{level}: {'link' if held[level] else 'none'}, {_words(chosen)}")
    shown = all(held[level] for level in expectation.present(levels))
    shown = shown and not any(held[level] for level in expectation.absent(levels))
    return ("shown" if shown else "not shown"), "; ".join(evidence)


def strongest(expectation: Expectation, links: pl.DataFrame, alpha: float) -> dict[str, object] | None:
    """The strongest right link of one regime, else the strongest tested one; None where the pair was not tested."""
    source, target = expectation.source, expectation.target
    forward = (pl.col("source") == source) & (pl.col("target") == target) & (pl.col("lag") <= MAX_LAG)
    mirrored = (pl.col("source") == target) & (pl.col("target") == source) & (pl.col("lag") == 0)
    against = pl.when(mirrored).then(pl.lit("-->")).otherwise(pl.lit("<--"))
    pair = links.filter(forward | mirrored).with_columns(
        right=(pl.col("mark") != "")
        & (pl.col("mark") != against)
        & (pl.col("value") * expectation.sign > 0)
        & (pl.col("q") <= alpha),
        contrary=pl.col("mark") == against,
    )
    if pair.is_empty():
        return None
    return pair.sort("right", pl.col("value").abs(), descending=True).row(0, named=True)


def _words(link: dict[str, object]) -> str:
    order = " points the other way" if link["contrary"] else ""
    if link["mark"] in ("o-o", "x-x"):
        order = " not oriented"
    share = "" if link["frequency"] is None else f", in {link['frequency']:.0%} of the resamples"
    return (
        f"lag {link['lag']}{order} {link['value']:+.2f} [{link['low']:+.2f}, {link['high']:+.2f}], "
        f"q {link['q']:.2g}, n {link['samples']}{share}"
    )
