"""EEG corpora: every layout as it lies on disk, read into trials with uniform names and units."""
