"""RNA: sequences and secondary structures in the formats of their databases, to one columnar form."""
