"""Errors of a run that reach the user as one paragraph."""

from __future__ import annotations


class FlowError(Exception):
    """A failure the user can act on; printed without a traceback."""

    exit_code = 1


class GraphError(FlowError):
    """The DVC graph cannot be run as it is."""

    exit_code = 2


class LockedError(FlowError):
    """Another DVC process, or another run, works in this repository."""
