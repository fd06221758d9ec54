"""What each step of the pipeline does. Nothing in this package imports Prefect."""
