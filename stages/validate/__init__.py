"""The gate: expectations on summary frames, verdicts with reasons, leakage-safe splits."""
