"""Folding by the ViennaRNA library: the structure of minimum free energy, and the probability of each base to pair.

A prediction from the sequence alone by a thermodynamic model (Lorenz et al. 2011, doi:10.1186/1748-7188-6-26), without
pseudoknots. Time grows with the cube of the length.

Shapes: L bases, N pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.rna import structure
from stages.rna.structure import Pairs


class Folded(NamedTuple):
    """What the library says of one molecule.

    Attributes
    ----------
    pairs
        (N, 2) of the structure of minimum free energy.
    energy
        Its free energy in kcal/mol.
    paired
        (L,) probability of each base to pair with any other, in the ensemble.
    """

    pairs: Pairs
    energy: float
    paired: NDArray[np.float32]


def fold(sequence: str, temperature: float = 37.0) -> Folded:
    """Fold one molecule.

    Parameters
    ----------
    sequence
        (L,) in the alphabet of alphabet.py, not empty; a base that is not A, C, G or U pairs with none.
    temperature
        Degrees Celsius.
    """
    import RNA

    details = RNA.md()
    details.temperature = temperature
    compound = RNA.fold_compound(sequence, details)
    written, energy = compound.mfe()
    # The sums of the ensemble overflow for long molecules unless they are scaled by the lowest energy.
    compound.exp_params_rescale(energy)
    compound.pf()
    upper_LL = np.array(compound.bpp())[1:, 1:]
    paired_L = upper_LL.sum(axis=0) + upper_LL.sum(axis=1)
    return Folded(structure.parse(written), round(energy, 2), paired_L.astype(np.float32))


def version() -> str:
    """Version of the library."""
    import RNA

    return str(RNA.__version__)
