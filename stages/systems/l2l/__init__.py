"""L2L: semi-supervised referring segmentation, where accepting a pseudo-label is a learnt decision."""
