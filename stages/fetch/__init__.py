"""Where raw bytes come from: files inside published packages.

A user's own folder needs no fetch: ingest depends on it directly (see :func:`stages.manifest.of_path`). What a program
of this project writes is a stage of its domain (see :mod:`stages.simulate`).
"""
