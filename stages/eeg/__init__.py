"""Algorithms on EEG signals: filters, differential entropy, smoothing, artifacts, montages. Pure: no files, no params.

Dimensions in the suffixes of names: T time (sample), W window, C channel, B band, F feature, N sample of one window.
"""
