"""Names of tigramite 5.2.10.1, as its test files import them, on the engine in stages/causal."""
