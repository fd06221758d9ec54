"""Where raw bytes come from: files inside published packages, and simulators.

A user's own folder needs no fetch: ingest depends on it directly (see :func:`stages.manifest.of_path`).
"""
