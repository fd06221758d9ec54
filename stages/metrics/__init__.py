"""Metrics and intervals that several systems report, and the head their metrics.json have in common."""
