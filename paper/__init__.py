"""Runs the experiments of `experiments/` and reports them beside the published ones: `python -m paper`."""
