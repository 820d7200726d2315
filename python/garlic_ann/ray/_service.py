"""Shard actors, and the object that asks them."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..sharded import _manifest
from ..sharded._index import How, Routed, plain_filter
from ..sharded._route import Found, Parts, Plan, Router
from ._cluster import ray, value
from ._server import ShardServer, StaleVersion, version_of

# How long a search waits for one replica of a group to answer again.
_PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.2
# Searches of a version that is gone are repeated with the newest one, so many times.
_TRIES = 5


class Service(Routed):
    """A sharded index that actors search; :func:`serve` makes it. It can be sent to tasks and other actors.

    A search is sent to one replica of each group that has shards for it. If that replica is lost, another one is asked, and Ray
    starts the lost one again. If the folder has a new index, the replicas open it beside the old one, one after the other, and
    then searches go there.
    """

    def __init__(self, path: str, groups: list[list[Any]], watch: float) -> None:
        self.path = path
        self._groups = groups
        self._watch = watch
        self._lock = threading.Lock()
        self._turn = 0
        self._router, self._stamp = self._read()
        self._looked = time.monotonic()

    def _read(self) -> tuple[Router, tuple[int, int]]:
        """The index that the folder has now, and what tells that the manifest was replaced."""
        found = os.stat(os.path.join(self.path, _manifest.NAME))
        manifest, data = _manifest.read(self.path)
        _manifest.check_files(self.path, manifest)
        return Router(self.path, manifest, version_of(data)), (found.st_ino, found.st_mtime_ns)

    def tell(self, version: str | None = None) -> None:
        """Lets all replicas open a version, one replica of each group after the other."""
        version = self._router.version if version is None else version
        for replica in range(len(self._groups[0])):
            for loading in [group[replica].load.remote(version) for group in self._groups]:
                try:
                    value(loading)
                except (ray.exceptions.RayActorError, StaleVersion):
                    # A lost replica opens it when it is back. The next look finds a newer version.
                    continue

    def reload(self) -> bool:
        """Follows the folder to its present index. Returns whether it is another one. Searches do it from time to time."""
        with self._lock:
            fresh, stamp = self._read()
            is_other = fresh.version != self._router.version
            if is_other:
                # Searches keep the old version until all replicas have the new one.
                self.tell(fresh.version)
            self._router, self._stamp = fresh, stamp
            return is_other

    def _follow(self) -> None:
        if time.monotonic() - self._looked >= self._watch:
            self._looked = time.monotonic()
            found = os.stat(os.path.join(self.path, _manifest.NAME))
            if (found.st_ino, found.st_mtime_ns) != self._stamp:
                self.reload()

    def search(self, *args: Any, **options: Any) -> Any:
        self._follow()
        options["filter"] = plain_filter(options.get("filter"))
        for _ in range(_TRIES):
            try:
                return super().search(*args, **options)
            except StaleVersion:
                # A replica that was started again knows only the newest version.
                self.reload()
        raise RuntimeError(f"{self.path}: the index changes faster than replicas can open it")

    search.__doc__ = Routed.search.__doc__

    def _ask(self, plan: Plan, queries: NDArray[np.float32], how: How) -> Parts:
        version = plan.version
        self._turn += 1
        first = self._turn
        asked = [(shard, rows, self._send(version, shard, first, queries[rows], how)) for shard, rows in plan.shards]
        return [(rows, self._answer(handle, version, shard, first, queries[rows], how)) for shard, rows, handle in asked]

    def _send(self, version: str, shard: int, turn: int, queries: NDArray[np.float32], how: How) -> Any:
        group = self._groups[shard % len(self._groups)]
        return group[turn % len(group)].search.remote(version, shard, queries, *how[:5])

    def _answer(self, handle: Any, version: str, shard: int, turn: int, queries: NDArray[np.float32], how: How) -> Found:
        """The answer of one replica, or of the next one if it is lost."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        replicas = len(self._groups[shard % len(self._groups)])
        tried = 0
        while True:
            try:
                found: Found = value(handle)
                return found
            except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError):
                tried += 1
                if time.monotonic() > deadline:
                    raise RuntimeError(f"no replica of shard {shard} has answered for {_PATIENCE_SECONDS:.0f} s") from None
                if tried % replicas == 0:
                    time.sleep(_PAUSE_SECONDS)
                handle = self._send(version, shard, turn + tried, queries, how)

    def stats(self) -> list[dict[str, Any]]:
        """Requests and batches of every replica that answers."""
        found = []
        for actor in (actor for group in self._groups for actor in group):
            try:
                found.append(value(actor.stats.remote()))
            except ray.exceptions.RayActorError:
                continue
        return found

    def close(self) -> None:
        """Ends the actors."""
        for actor in (actor for group in self._groups for actor in group):
            ray.kill(actor)

    def __reduce__(self) -> tuple[Any, ...]:
        return Service, (self.path, self._groups, self._watch)

    def __repr__(self) -> str:
        return f"Service({len(self)} x {self.dim}, {len(self._groups)} x {len(self._groups[0])} actors)"


def start(
    path: str, replicas: int, groups: int, cpus: float, wait: float, batch: int, watch: float, timeout: float
) -> Service:
    """Starts the actors; replicas of a group on different machines where there are some. If that fails, none is left."""
    options = {"num_cpus": cpus, "max_restarts": -1, "max_concurrency": 1000, "scheduling_strategy": "SPREAD"}
    server = ray.remote(**options)(ShardServer)
    actors = [[server.remote(path, own, groups, wait, batch) for _ in range(replicas)] for own in range(groups)]
    try:
        _wait_for([actor for group in actors for actor in group], cpus, timeout)
        service = Service(path, actors, watch)
        service.tell()
    except BaseException:
        for actor in (actor for group in actors for actor in group):
            ray.kill(actor)
        raise
    return service


def _wait_for(actors: list[Any], cpus: float, timeout: float) -> None:
    """Waits until all actors have started. Ray itself waits for ever for processors that it does not have."""
    answers = [actor.stats.remote() for actor in actors]
    _, missing = ray.wait(answers, num_returns=len(answers), timeout=timeout)
    if missing:
        have = ray.cluster_resources().get("CPU", 0)
        raise RuntimeError(
            f"{len(missing)} of {len(actors)} actors have not started in {timeout:g} s. They need {cpus:g} processors each, and the"
            f" cluster has {have:g}, which others may be using; lower cpus=, replicas= or shards=, or wait longer with timeout="
        )
