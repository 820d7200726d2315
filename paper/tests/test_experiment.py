"""Every file of experiments/ is one that can be run, and equal runs are one."""

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from paper import experiment, garlic, special, store
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
        told = {(r.set, r.method, r.length, r.variant, r.seed) for r in one.runs}
        assert len(told) == len(one.runs) == len({(r.key(), r.method) for r in one.runs}), one.name


def test_a_value_of_the_preset_changes_nothing() -> None:
    _, found = experiment.load(FOLDER, False, {"tau": 3.0, "init": "kmeans-plus-plus"})
    base = {r.key() for e in found if e.name == "losses" for r in e.runs if r.variant == "all"}
    assert len(base) == 2 * 3  # two lengths, three seeds
    for name, variant in (("tau", "tau = 3.0"), ("initialisation", "init = kmeans-plus-plus"), ("split-clone", "both")):
        assert {r.key() for e in found if e.name == name for r in e.runs if r.variant == variant} == base


def test_a_length_of_training_is_a_number_of_steps() -> None:
    defaults, found = experiment.load(FOLDER, False, {})
    tau = next(e for e in found if e.name == "tau")
    points = defaults["sets"]["sift-3k"]["points"]
    steps = {r.length: r.settings["epochs"] * points // r.settings["batch"] for r in tau.runs}
    assert steps == {"at 120 steps": 120, "when trained": 7200}
    # A part that is smaller than the quick one keeps its size, and with it the number of steps.
    _, found = experiment.load(FOLDER, True, {})
    tau = next(e for e in found if e.name == "tau")
    assert {r.settings["batch"] for r in tau.runs if r.length == "when trained"} == {points // 10}


def test_runs_of_some_sets_alone() -> None:
    _, found = experiment.load(FOLDER, False, {})
    whole = next(e for e in found if e.name == "recall-vs-candidates")
    some = experiment.restricted(whole, "set", ["mnist"])
    assert some.content["sets"] == ["mnist"]
    assert {r.set for r in some.runs} == {"mnist"} and 0 < len(some.runs) < len(whole.runs)


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


def test_both_presets_grow_online(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults, found = experiment.load(FOLDER, True, {})
    runner = Runner(tmp_path, defaults, True, 1)
    path = tmp_path / "set.hdf5"
    with h5py.File(path, "w") as file:
        file["train"] = np.arange(20, dtype=np.float32).reshape(10, 2)
    runner._sets = dict.fromkeys(defaults["sets"], Set("set", path))
    built, commands = [], []

    def build(data: Path, preset: str, settings: dict, seed: int, index: Path, threads: int) -> dict:
        built.append((preset, len(np.load(data)) if data.suffix == ".npy" else 10, settings))
        index.write_text("index")
        return {"dim": 2, "cells": 3, "seconds": {"total": 1.0}, "cpu_seconds": 1.0, "threads": threads}

    monkeypatch.setattr(garlic, "build", build)
    monkeypatch.setattr(garlic, "output", lambda command: commands.append(command[1]) or "")
    monkeypatch.setattr(garlic, "sweep", lambda index, data, preset, how: [{"params": {"preset": preset}}])
    online = next(e for e in found if e.name == "online")
    assert special.run(runner, online) and not special.run(runner, online)
    short = defaults["quick"]["paper"]["epochs"]
    assert [(preset, points) for preset, points, _ in built] == 3 * [
        ("default", 5),
        ("default", 10),
        ("paper", 5),
        ("paper", 10),
    ]
    assert all(settings.get("epochs") == (short if preset == "paper" else None) for preset, _, settings in built)
    assert commands == 3 * ["add", "compact", "add"]
    for name in ("added", "recalibrated", "built", "paper-added", "paper-built"):
        result = store.load(tmp_path / f"results/online/sift-{name}.json")
        assert result["method"] == ("garlic-paper" if "paper" in name else "garlic-default")
        assert ("online" in result["variant"]) == ("built" not in name)


def test_runs_without_a_result_are_named(tmp_path: Path) -> None:
    defaults, found = experiment.load(FOLDER, False, {})
    runner = Runner(tmp_path, defaults, False, 1)
    some = [e for e in found if e.name == "tau"]
    assert runner.missing(some) == ["tau on sift-3k (18 of 18 runs)"]
    store.save(runner._target(some[0].runs[0]), {})
    assert runner.missing(some) == ["tau on sift-3k (17 of 18 runs)"]
