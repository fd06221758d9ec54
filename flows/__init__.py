"""Prefect over a DVC graph: parallel, explained runs. Knows stage names and edges, and nothing about any domain."""

import os

# Whatever is started from here sends nothing to anybody, and a busy machine gets time to start Prefect's own server.
os.environ.setdefault("DO_NOT_TRACK", "1")
os.environ.setdefault("DVC_NO_ANALYTICS", "1")
os.environ.setdefault("PREFECT_SERVER_ANALYTICS_ENABLED", "false")
os.environ.setdefault("PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS", "120")
