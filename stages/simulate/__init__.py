"""Data sets that a program of this project writes from a seed, each in the layout of files that users have."""
