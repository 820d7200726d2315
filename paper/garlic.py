"""GARLIC through its program: build an index, sweep it."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from paper.metrics import COSTS, METRICS
from paper.sets import Set


def program() -> str:
    """The program that is measured."""
    return os.environ.get("GARLIC_BIN", "target/release/garlic")


def parameters(preset: str) -> dict[str, Any]:
    """Every parameter of a preset with its value."""
    return tomllib.loads(output([program(), "config", "--preset", preset]))


def build(
    data: Path, preset: str, settings: dict[str, Any], seed: int, index: Path, threads: int | None = None
) -> dict[str, Any]:
    """Builds `index`; what the program says of it, with the processor's time and the history of the training."""
    history = index.with_suffix(".history.json")
    command = [program(), "build", str(data), "--preset", preset, "--seed", str(seed), "-o", str(index), "--json"]
    if threads is not None:
        command += ["--threads", str(threads)]
    if preset == "paper":
        command += ["--history", str(history)]
    for key, value in settings.items():
        command += ["--set", f"{key}={_text(value)}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    about = json.loads(output(command))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    about["wall_seconds"] = time.perf_counter() - start
    about["cpu_seconds"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if history.is_file():
        about["history"] = json.loads(history.read_text())
        history.unlink()
    return about


def sweep(index: Path, data: Path, preset: str, how: dict[str, Any], threads: int = 1) -> list[dict[str, Any]]:
    """Searches with every setting of `how`: rows of the result file."""
    command = [program(), "eval", str(index), str(data), "-k", "10", "--queries", str(how["queries"])]
    command += ["--threads", str(threads), "--json"]
    if preset == "paper":
        command += ["--sweep", "--timed", str(min(how.get("timed", 200), how["queries"] - 1))]
        command += ["--probes", _list(how["probes"]), "--bins", _list(how["bins"])]
    else:
        command += ["--recall", _list(how["recall"])]
    return [row_of(row) for row in rows(command)]


def rows(command: list[str]) -> list[dict[str, Any]]:
    """The lines that `garlic eval --json` prints."""
    return [json.loads(line) for line in output(command).splitlines()]


def row_of(row: dict[str, Any]) -> dict[str, Any]:
    """A line of `garlic eval` as a row of a result file."""
    asked = {k: v for k, v in row["params"].items() if v is not None and k in ("probes", "bins", "rerank", "recall")}
    return {"params": asked, **{name: row.get(name) for name in (*METRICS, *COSTS, "qps")}, "work": row.get("work")}


def measure(
    source: Set, preset: str, settings: dict[str, Any], seed: int, how: dict[str, Any], threads: int
) -> dict[str, Any]:
    """Builds, sweeps, and throws the index away: the fields of a result file that the method knows."""
    with tempfile.TemporaryDirectory(prefix="garlic-paper-") as folder:
        index = Path(folder) / "index.garlic"
        about = build(source.path, preset, settings, seed, index, threads)
        seen = json.loads(output([program(), "inspect", str(index), "--json", "--sample", "16"]))
        rows = sweep(index, source.path, preset, how)
    history = about.get("history") or {}
    coverage = about.get("coverage") or {}
    extra = {
        "coverage_share": coverage.get("share"),
        "coverage_mean": coverage.get("mean"),
        "largest_share": seen.get("largest_share"),
        "eigenvalue_ratio": ((seen.get("spectra") or {}).get("anisotropy") or {}).get("median"),
        "epochs": about.get("epochs"),
        "seconds": about.get("seconds"),
        "peak_rss_bytes": about.get("peak_rss_bytes"),
        "runaway": history.get("runaway") if isinstance(history, dict) else None,
    }
    return {
        "points": about["points"],
        "dim": about["dim"],
        "cells": about["cells"],
        "bytes": about["bytes"],
        "build_seconds": about["seconds"]["total"],
        "build_cpu_seconds": about["cpu_seconds"],
        "build_threads": about["threads"],
        "extra": {k: v for k, v in extra.items() if v is not None},
        "rows": rows,
    }


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _list(values: list[Any]) -> str:
    return ",".join(str(v) for v in values)


def output(command: list[str]) -> str:
    """What a command prints; an error with its message when it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr.strip()}")
    return done.stdout
