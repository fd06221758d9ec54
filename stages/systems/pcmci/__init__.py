"""PCMCI on land-atmosphere towers, beside twins whose graph is known.

Runge et al., Detecting and quantifying causal associations in large nonlinear time series datasets, Science Advances 5,
2019 (PCMCI); Krich et al., Estimating causal networks in biosphere-atmosphere interaction with the PCMCI approach,
Biogeosciences 17, 2020 (its use on flux towers).
``twins`` simulates what is known, ``train`` estimates the graphs, ``evaluate`` judges them, ``plots`` draws them.
"""
