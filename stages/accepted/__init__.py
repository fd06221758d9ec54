"""Data sets opened through their verdicts: what a system may learn from, a module a domain."""
