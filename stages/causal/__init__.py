"""Causal discovery on time series: PCMCI, its link tables, its bootstrap, and simulators whose graph is known.

Pure functions: arrays in, arrays out. Import from the modules; this file imports nothing, because numba takes a second.
"""
