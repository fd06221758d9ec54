"""Readers of traffic data: one module for each family of file formats, one typed set for all."""
