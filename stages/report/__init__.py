"""The report: what ran on which data, and what came of it, on one page that needs nothing else."""
