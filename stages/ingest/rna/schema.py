"""The columns of an ingested RNA set: molecules, records, labels.

Plain constants and the standard library only, so that the gate can import them without the readers.
"""

from __future__ import annotations

#: Columns of molecules.parquet and their polars types; null where a value does not exist. Positions count from 0.
MOLECULE_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "name": "String",
    "set": "String",
    "sequence": "String",
    "position_map": "List(Int32)",
    "pairs_left": "List(Int32)",
    "pairs_right": "List(Int32)",
    "pair_order": "List(Int8)",
    "structure_source": "String",
    "evidence": "String",
    "family": "String",
    "family_name": "String",
    "rna_type": "String",
    "source_file": "String",
}

#: Summary statistics of one molecule and their meaning.
STATISTICS = {
    "length": "number of bases, gaps not counted",
    "unknown_bases": "number of bases that are an IUPAC code for several, not A, C, G or U",
    "gaps_removed": "number of gap characters that stood between, before or behind the bases in the file",
    "gc_share": "share of G and C among the bases A, C, G and U",
    "pairs": "number of base pairs",
    "canonical_share": "share of GC, AU and GU among the pairs of known bases",
    "minimum_loop": "smallest number of bases between the two of a pair",
    "pseudoknotted_pairs": "number of pairs of pseudoknot order 1 or more",
    "pairs_lost": "pairs of the family's consensus that the molecule cannot have, one side being a gap",
    "has_structure": "whether the file says which bases pair",
}

_SHARES = ("gc_share", "canonical_share")

#: Columns of records.parquet and their polars types; the same for every set, null where a value does not exist.
RECORD_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "group": "String",
    "set": "String",
    "name": "String",
    "family": "String",
    "source_file": "String",
    "sha256": "String",
    **{name: "Float64" if name in _SHARES else "Int64" for name in STATISTICS if name != "has_structure"},
    "has_structure": "Boolean",
    "evidence": "String",
}

#: Columns of labels.parquet: structures that a program predicts from the sequence alone, never those of the files.
LABEL_COLUMNS: dict[str, str] = {
    "record_id": "String",
    "source": "String",
    "pairs_left": "List(Int32)",
    "pairs_right": "List(Int32)",
    "mfe_kcal": "Float64",
    "paired_probability": "List(Float32)",
}

#: Name of the label source in labels.parquet.
MFE = "viennarna-mfe"
