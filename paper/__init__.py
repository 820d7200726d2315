"""The paper's evaluation, repeated: baselines, experiments and their report."""
