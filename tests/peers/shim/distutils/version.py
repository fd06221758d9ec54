"""Versions that can be compared."""

from packaging.version import Version as LooseVersion

__all__ = ["LooseVersion"]
