"""The gate of the land-atmosphere data; its record is one month of one flux tower."""
