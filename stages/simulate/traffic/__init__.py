"""Lanes of a freeway with ramps and a lane drop, simulated by SUMO, in the layout of the lane files that users have."""
