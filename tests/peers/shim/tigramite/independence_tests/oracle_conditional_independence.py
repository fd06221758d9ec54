"""d-separation in a known graph."""

from __future__ import annotations

from typing import Any

from stages.causal.oracle import Oracle
from tigramite.toymodels.structural_causal_processes import links_to_graph


class OracleCI:
    """The engine's oracle on the graph of structural equations."""

    def __init__(self, links: dict[int, list[tuple[Any, ...]]], verbosity: int = 0) -> None:
        self.links = links

    def on(self, dataframe: Any, tau_max: int) -> Oracle:
        """The test; of the data frame only the names are used."""
        return Oracle(links_to_graph(self.links) == "-->", names=dataframe.var_names, tau_max=tau_max)
