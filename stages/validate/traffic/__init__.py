"""The gate of the traffic sets: sensor-days, graphs, lanes against roads, near-copies, and splits by time."""
