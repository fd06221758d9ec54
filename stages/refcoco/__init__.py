"""Masks and sentences of referring segmentation, for every stage that meets them."""
