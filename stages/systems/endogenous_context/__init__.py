"""Causal graphs for each soil-moisture regime, where soil moisture itself belongs to the system.

After the ICML 2026 paper on endogenous, time-dependent contexts and its predecessor (arXiv 2412.04981). ``regimes``
says which regime a day belongs to, ``estimate`` finds a graph for each by five methods, ``twins`` does the same where
the truth is known, ``train`` and ``towers`` run them over towers and resamples, ``evaluate`` judges what came out.
"""
