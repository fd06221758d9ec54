"""The gate of the EEG corpora; its record is one trial of one subject."""
