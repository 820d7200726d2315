"""Points that come and go while others search, in a directory that survives the end of the process."""

import tempfile
import threading

import garlic_ann as garlic
import numpy as np
from numpy.typing import NDArray

random = np.random.default_rng(1)


def batch(size: int, drift: float) -> NDArray[np.float32]:
    """Data whose centre moves."""
    return (random.normal(size=(size, 32)) + drift).astype(np.float32)


with tempfile.TemporaryDirectory() as place:
    with garlic.Live.create(f"{place}/index", garlic.build(batch(5000, 0.0), seed=1)) as live:
        searched, stop = [0], threading.Event()

        def search() -> None:
            while not stop.is_set():
                live.search(batch(100, 0.0), k=10)
                searched[0] += 100

        reader = threading.Thread(target=search)
        reader.start()
        for day in range(1, 11):
            live.add(batch(500, day * 0.3))
            live.remove(live.ids()[:500])        # the oldest
            drift = live.drift()
            print(f"day {day:2}: {len(live)} points, spread {drift['spread']:.2f}, rebuild: {drift['rebuild']}")
        stop.set()
        reader.join()
        print(f"{searched[0]:,} queries were answered meanwhile")
    with garlic.Live.open(f"{place}/index", read_only=True) as live:
        print("opened again:", live, live.status())
