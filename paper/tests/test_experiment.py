"""Every file of experiments/ is one that can be run, and equal runs are one."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from paper import experiment, store
from paper.complexity import fits
from paper.garlic import row_of
from paper.run import Runner
from paper.sets import Set, labels, resize

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "experiments"


def keys_of(crate: str) -> set[str]:
    """The keys of a preset, from the table that the program prints them from."""
    text = (ROOT / "crates" / crate / "src/config.rs").read_text()
    return set(re.findall(r"^        (\w+): [^=\n]+ = ", text, re.M))


KEYS = {"garlic-paper": keys_of("garlic-paper"), "garlic-default": keys_of("garlic-ann")}


@pytest.mark.parametrize("quick", [False, True])
def test_all_files_are_read(quick: bool) -> None:
    defaults, found = experiment.load(FOLDER, quick, {})
    assert {e.name for e in found} == {p.stem for p in FOLDER.glob("*.toml")} - {"defaults"}
    assert {"seed", "tau", "train_fraction", "split_threshold", "mean_rate"} <= KEYS["garlic-paper"]
    assert {"seed", "cells", "bin_size"} <= KEYS["garlic-default"]
    for one in found:
        assert one.title and (one.runs or one.kind != "sweep"), one.name
        for run in one.runs:
            assert run.set in defaults["sets"]
            if run.method in KEYS:
                unknown = set(run.settings) - KEYS[run.method]
                assert not unknown, (one.name, unknown)
            if run.method == "garlic-paper":
                assert run.sweep["probes"] and run.sweep["bins"]
            assert run.sweep["queries"] > 0


def test_labels_and_keys_tell_runs_apart() -> None:
    _, found = experiment.load(FOLDER, False, {})
    for one in found:
        told = {(r.set, r.method, r.variant, r.seed) for r in one.runs}
        assert len(told) == len(one.runs) == len({(r.key(), r.method) for r in one.runs}), one.name


def test_a_value_of_the_preset_changes_nothing() -> None:
    _, found = experiment.load(FOLDER, False, {"tau": 3.0, "init": "kmeans-plus-plus"})
    base = {r.key() for e in found if e.name == "losses" for r in e.runs if r.variant == "all"}
    for name, variant in (("tau", "tau = 3.0"), ("initialisation", "init = kmeans-plus-plus"), ("split-clone", "both")):
        assert {r.key() for e in found if e.name == name for r in e.runs if r.variant == variant} == base


def test_quick_overlays_table_by_table() -> None:
    content = {"title": "t", "sets": ["a"], "vary": {"key": "tau", "values": [1, 2]}, "quick": {"vary": {"values": [2]}}}
    over = content.pop("quick")
    assert experiment._overlaid(content, over)["vary"] == {"key": "tau", "values": [2]}


def test_pictures_keep_their_mean_and_their_own_size() -> None:
    images = np.random.default_rng(1).uniform(size=(3, 28 * 28)).astype(np.float32)
    assert np.allclose(resize(images, 28), images, atol=1e-6)
    for side in (8, 16, 45):
        other = resize(images, side)
        assert other.shape == (3, side * side)
        assert np.allclose(other.mean(axis=1), images.mean(axis=1), atol=1e-5)
    # Two by two pixels become one.
    assert np.allclose(resize(np.array([[0.0, 1, 2, 3]], dtype=np.float32), 1), [[1.5]])


def test_exponents_of_a_power_law() -> None:
    points = [{"x": x, "cost": 3 * x**1.5, "flat": 7.0} for x in (1, 2, 4, 8)]
    found = fits(points)
    assert found["cost"]["exponent"] == pytest.approx(1.5) and found["cost"]["r2"] == pytest.approx(1)
    assert found["flat"]["exponent"] == pytest.approx(0, abs=1e-9)


def test_results_are_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.json"
    assert store.load(path) is None
    store.save(path, {"x": 1 / 3, "bad": float("inf"), "list": [1, 2.00000001]})
    assert store.load(path) == {"x": 0.3333333, "bad": None, "list": [1, 2.0]}
    assert [p.name for p in path.parent.iterdir()] == ["b.json"]


def test_rows_of_the_program() -> None:
    line = {"params": {"k": 10, "recall": None, "probes": 3, "bins": 0.3}, "recall_at_1": 0.5, "work": {"exact": 1.0}}
    row = row_of(line)
    assert row["params"] == {"probes": 3, "bins": 0.3}
    assert row["recall_at_1"] == 0.5 and row["r99"] is None


def test_a_part_of_a_set_has_the_labels_of_the_whole(tmp_path: Path) -> None:
    whole, part = tmp_path / "whole.hdf5", tmp_path / "part.hdf5"
    with h5py.File(whole, "w") as file:
        file["train_labels"], file["test_labels"] = np.arange(5), np.arange(3)
    with h5py.File(part, "w") as file:
        file["train"] = np.zeros((2, 4))
    train, test = labels(Set("set", part, whole))
    assert train.tolist() == [0, 1, 2, 3, 4] and test.tolist() == [0, 1, 2]


def test_runs_without_a_result_are_named(tmp_path: Path) -> None:
    defaults, found = experiment.load(FOLDER, False, {})
    runner = Runner(tmp_path, defaults, False, 1)
    some = [e for e in found if e.name == "tau"]
    assert len(runner.missing(some)) == 5
    store.save(runner._target(some[0].runs[0]), {})
    assert len(runner.missing(some)) == 4 and "tau = 2.0" not in " ".join(runner.missing(some))
