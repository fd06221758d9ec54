"""The gate of the RNA sets: molecules and their structures, families, and splits by family and by identity."""
