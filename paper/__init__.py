"""The experiments of the paper, run again: `python -m paper` from the root of the repository."""
