"""The gate of referring segmentation: every ref is accepted or quarantined; splits as the files say, by image."""
