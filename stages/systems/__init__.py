"""One room for each research system; a room imports shared modules of this package, never another room."""
