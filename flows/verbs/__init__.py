"""The verbs of ``python -m flows``: each module has ``add_arguments(parser)`` and ``run(options) -> exit code``."""
