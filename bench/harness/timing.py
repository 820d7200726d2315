"""Timing: the best of several runs, since everything that disturbs a run makes it slower."""

import gc
import time


def timed(call):
    """(result, seconds)."""
    gc.disable()
    start = time.perf_counter()
    result = call()
    seconds = time.perf_counter() - start
    gc.enable()
    return result, seconds


def best_of(call, repeat, seconds_allowed, fewest):
    """(result, all run times): up to `repeat` runs, at least `fewest`, no new one once the time is spent."""
    result, first = timed(call)
    runs = [first]
    while len(runs) < repeat and (len(runs) < fewest or sum(runs) + min(runs) < seconds_allowed):
        runs.append(timed(call)[1])
    return result, runs
