"""Which settings of a rival are measured, and the measuring.

Settings from the whole grid of all variants are screened with a few queries, then the neighbours of the best. The
front of those is measured with all queries; then, as long as an unmeasured setting could still be the fastest
one at a recall of the table, that one too.
Screening decides only what is measured; no figure comes from it.
"""

import itertools
import time

from harness.timing import best_of, timed

TARGETS = (0.90, 0.95, 0.99)
SCREEN = 1000
ENOUGH = 0.998
LOWEST = 0.75
POINTS = 12
SLOWEST_RUN = 2.5
# Of the time for this k, what screening one setting may take: slow settings get fewer queries, not fewer settings.
SCREEN_SHARE = 0.01
GOLDEN = 0.6180339887498949


class Point:
    """A setting of a variant: its place on the axes of the grid, and what screening saw of it."""

    def __init__(self, variant, place, params):
        self.variant, self.place, self.params = variant, place, params
        self.recall, self.qps = 0.0, 0.0

    def beyond(self, other):
        """Whether every number of this setting is at least that of the other, same variant."""
        return self.variant == other.variant and all(a >= b for a, b in zip(self.place, other.place))


class Sweep:
    """The sweep of one rival at one k. `engines` maps variant names to loaded rivals."""

    def __init__(self, engines, truth, k, repeat, seconds, say):
        self.engines, self.truth, self.k = engines, truth, k
        self.repeat, self.say = repeat, say
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.screened = []

    def grid(self):
        """All settings of all variants, in an order whose every beginning covers the whole range."""
        found = []
        for name, engine in self.engines.items():
            axes = engine.grid(self.k)
            places = itertools.product(*(range(len(axis)) for axis in axes.values()))
            for i, place in enumerate(places):
                params = {n: axis[at] for at, (n, axis) in zip(place, axes.items())}
                # The most thorough setting comes first: what it does not find, this variant never will.
                most = all(at == len(axis) - 1 for at, axis in zip(place, axes.values()))
                found.append((-1.0 if most else (0.5 + i * GOLDEN) % 1.0, Point(name, place, params)))
        return [point for _, point in sorted(found, key=lambda f: f[0])]

    def screen(self):
        """Recall and rough speed of the settings: some everywhere first, then the neighbours of the best."""
        start = time.monotonic()
        points = self.grid()
        places = {(p.variant, p.place): p for p in points}
        self.look(points, start + 0.17 * self.seconds)
        while time.monotonic() < start + 0.4 * self.seconds:
            front = [p for p in pareto(self.screened) if p.recall >= LOWEST]
            front.sort(key=lambda p: min(abs(p.recall - t) / (1 - t) for t in TARGETS))
            near = {id(n): n for p in front for n in neighbors(p, places) if n not in self.screened}
            if not self.look(near.values(), start + 0.4 * self.seconds):
                break

    def look(self, points, stop):
        """Screens those of the points that can matter; returns how many there was time for."""
        seen = 0
        for point in points:
            if time.monotonic() > stop:
                break
            if any(point.beyond(p) and p.recall >= ENOUGH or p.beyond(point) and p.recall < LOWEST - 0.1
                   for p in self.screened):
                continue
            self.try_out(point)
            seen += 1
        return seen

    def try_out(self, point):
        """One or two runs over a few queries; very few when they are slow."""
        engine, few = self.engines[point.variant], self.truth.test[:100]
        engine.set(point.params, self.k)
        allowed = SCREEN_SHARE * self.seconds
        ids, seconds = timed(lambda: engine.batch(few, self.k))
        room = int(len(few) * allowed / seconds)
        if room >= 2 * len(few):
            queries = self.truth.test[:min(room, SCREEN)]
            ids, seconds = timed(lambda: engine.batch(queries, self.k))
            if seconds < allowed / 2:
                seconds = min(seconds, timed(lambda: engine.batch(queries, self.k))[1])
        point.recall = self.truth.recall(ids, self.k)
        point.qps = len(ids) / seconds
        self.screened.append(point)

    def choose(self):
        """The settings to measure, what the targets need first, then the rest of the front, thinned."""
        front = pareto(self.screened)
        enough = next((i + 1 for i, p in enumerate(front) if p.recall >= ENOUGH), len(front))
        useful = [p for p in front[:enough] if p.recall >= LOWEST] or front[-3:]
        chosen = []
        for target in TARGETS:
            # Screening errs by about half a point: take a safe one and a tight one.
            for safe in (target, target + (1 - target) * 0.1):
                fits = [p for p in useful if p.recall >= safe]
                if fits:
                    chosen.append(max(fits, key=lambda p: p.qps))
        return unique([*chosen, *spread(useful, POINTS)]), len(unique(chosen))

    def measure(self, points, needed, mode, seconds):
        """Rows of the settings that fit into the time, fast ones first; the first `needed` are always measured."""
        cost = [self.queries(p) / p.qps for p in points]
        while len(cost) > needed and 2 * sum(cost) > seconds:
            cost.pop()
        runs = min(self.repeat, max(1.0 if mode == "single" else 2.0, seconds / (sum(cost) or 1.0)))
        kept = sorted(points[:len(cost)], key=lambda p: -p.qps)
        return [self.row(p, mode, runs) for p in kept], kept

    def queries(self, point):
        """How many queries a run has: all, unless that takes too long."""
        count = len(self.truth.test)
        return min(count, max(SCREEN, int(SLOWEST_RUN * point.qps))) if point.qps else count

    def row(self, point, mode, runs):
        """One setting, measured; `runs` is the time allowed, in runs of the speed that was seen."""
        engine, k = self.engines[point.variant], self.k
        queries = self.truth.test[:self.queries(point)]
        engine.set(point.params, k)
        call = engine.batch if mode == "batch" else engine.single
        allowed = runs * len(queries) / point.qps if point.qps else 10.0
        ids, seconds = best_of(lambda: call(queries, k), self.repeat, allowed, fewest=2 if mode == "batch" else 1)
        row = {"variant": point.variant, "params": point.params, "k": k, "mode": mode,
               "recall": self.truth.recall(ids, k), "qps": len(queries) / min(seconds), "queries": len(queries),
               "runs": len(seconds), "slowest_run_qps": len(queries) / max(seconds)}
        # The work is that of the setting, whatever the mode.
        work = engine.count(queries[:SCREEN], k) if mode == "batch" else None
        if work is not None:
            row["distance_equivalents"] = work
        return row

    def complete(self, rows, points):
        """Measures what could still beat the fastest row at a target; at most four more settings a target."""
        done = {id(p) for p in points}
        for target in TARGETS:
            for _ in range(4):
                best = max((r["qps"] for r in rows if r["recall"] >= target), default=0.0)
                # Screened 3 % faster than what is measured, and recall not clearly below the target.
                rivals = [p for p in self.screened if id(p) not in done and p.qps > 1.03 * best
                          and p.recall >= target - 0.1 * (1 - target)]
                if not rivals or time.monotonic() > self.deadline - 0.15 * self.seconds:
                    break
                point = max(rivals, key=lambda p: (p.recall >= target, p.qps))
                done.add(id(point))
                points.append(point)
                rows.append(self.row(point, "batch", 3))

    def run(self):
        """All rows at this k: batches, and single queries for the front."""
        self.screen()
        points, needed = self.choose()
        rows, points = self.measure(points, needed, "batch", 0.35 * self.seconds)
        self.complete(rows, points)
        self.say(f"  k={self.k}: {len(self.screened)} settings screened, {len(rows)} measured; " + summary(rows))
        measured = {id(r): p for r, p in zip(rows, points)}
        best = [r for r in (best_at(rows, t) for t in TARGETS) if r]
        front = unique([*best, *(r for r in rows if on_front(r, rows))])
        single, _ = self.measure([measured[id(r)] for r in front], len(unique(best)), "single", 0.2 * self.seconds)
        return rows + single

    def again(self, rows):
        """The settings of earlier batch rows, measured once more."""
        points = []
        for row in rows:
            point = Point(row["variant"], (), row["params"])
            point.recall, point.qps = row["recall"], row["qps"]
            points.append(point)
        return self.measure(points, 0, "batch", self.seconds)[0]


def unique(things):
    """The things without repetitions, in their order."""
    return list({id(t): t for t in things}.values())


def neighbors(point, places):
    """The settings a short way off along one axis."""
    for axis, at in enumerate(point.place):
        for step in (-3, -1, 1, 3):
            place = (*point.place[:axis], at + step, *point.place[axis + 1:])
            if (point.variant, place) in places:
                yield places[point.variant, place]


def pareto(points):
    """Points that no other beats in recall and speed, recall ascending."""
    front, fastest = [], 0.0
    for point in sorted(points, key=lambda p: (-p.recall, -p.qps)):
        if point.qps > fastest:
            front.append(point)
            fastest = point.qps
    return front[::-1]


def on_front(row, rows):
    """Whether no other row has at least this recall and more speed."""
    return not any(r["recall"] >= row["recall"] and r["qps"] > row["qps"] for r in rows)


def spread(points, count):
    """At most `count` of the points, both ends among them."""
    if len(points) <= count:
        return list(points)
    return [points[round(i * (len(points) - 1) / (count - 1))] for i in range(count)]


def best_at(rows, target):
    """The fastest row whose recall reaches the target, or None."""
    return max((r for r in rows if r["recall"] >= target), key=lambda r: r["qps"], default=None)


def summary(rows):
    """QPS at the targets, for a line of progress."""
    parts = []
    for target in TARGETS:
        best = best_at(rows, target)
        parts.append(f"{target:.2f}: {best['qps']:,.0f}" if best else f"{target:.2f}: not reached")
    return "QPS at recall " + ", ".join(parts)
