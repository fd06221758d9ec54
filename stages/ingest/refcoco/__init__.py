"""Readers of referring segmentation: the REFER layout, and COCO-style JSON with expressions."""
