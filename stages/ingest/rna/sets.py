"""Open a set in any of the formats."""

from __future__ import annotations

from pathlib import Path

from stages.ingest.rna import config
from stages.ingest.rna.config import AnyFormat
from stages.ingest.rna.molecules import RnaSet


def open_set(path: Path, options: AnyFormat, key: str = "") -> RnaSet:
    """Look for the files of a set without reading its molecules.

    Parameters
    ----------
    path
        Folder or file of the set, as it was unpacked.
    options
        The block ``format`` of params.yaml.
    key
        Name of the set in params.yaml.

    Raises
    ------
    DataError
        There is no file of the format.
    """
    match options:
        case config.Fasta():
            from stages.ingest.rna import fasta

            return fasta.open_fasta(path, options, key)
        case config.Stockholm():
            from stages.ingest.rna import stockholm

            return stockholm.open_stockholm(path, options, key)
        case config.DotBracket():
            from stages.ingest.rna import brackets

            return brackets.open_dotbracket(path, options, key)
        case config.BpRnaSt():
            from stages.ingest.rna import brackets

            return brackets.open_st(path, options, key)
        case config.Bpseq():
            from stages.ingest.rna import connect

            return connect.open_bpseq(path, options, key)
        case config.Ct():
            from stages.ingest.rna import connect

            return connect.open_ct(path, options, key)
        case config.Beacon():
            from stages.ingest.rna import matrices

            return matrices.open_beacon(path, options, key)
        case config.ArchiveII():
            from stages.ingest.rna import matrices

            return matrices.open_archiveii(path, options, key)
