"""The clients against a server of a few lines: connections, and servers that allow less at a time."""

import asyncio
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from garlic_ann import _remote
from garlic_ann._remote import Answer, RefusedError
from garlic_ann.client import AsyncClient, Client


@contextmanager
def echo():
    """A server that takes everything: its address, and how many connections it has had."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self):
            connections.append(self.client_address)
            super().setup()

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            body = b'{"ids": [0], "count": 1}'
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments):
            pass

    connections = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", connections
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_requests_that_may_not_be_repeated_keep_no_connections():
    with echo() as (url, connections), Client(url) as client:
        index = client.index("a")
        for _ in range(5):
            index.add([[1.0]])
            index.upsert([[1.0]], None)
            assert index.count() == 1
        assert len(client._idle) == 1 and len(connections) == 11

        async def ask():
            async with AsyncClient(url) as many:
                index = many.index("a")
                for _ in range(5):
                    await index.add([[1.0]])
                    assert await index.count() == 1
                assert len(many._idle) == 1

        asyncio.run(ask())


def test_what_adds_points_each_time_is_not_repeated():
    def repeatable(steps):
        return next(steps).repeatable

    assert not repeatable(_remote.add("a", [[1.0]], [1]))
    assert not repeatable(_remote.upsert("a", [[1.0]], None))
    assert repeatable(_remote.upsert("a", [[1.0]], [1]))
    assert repeatable(_remote.update("a", [[1.0]], [1]))


POINTS = 25


def served(steps, allowed, wrong="invalid"):
    """Runs an operation with a server that gives so many points at a time, numbered from 0 to 24. Gives the result and the
    sizes that were allowed."""

    def answer(request):
        asked = json.loads(request.body)
        count = asked.get("limit", len(asked.get("ids", [])))
        if count > allowed:
            return Answer(422, json.dumps({"error": {"code": "limit", "message": "too many"}}).encode())
        if "'" in (asked.get("filter") or ""):
            return Answer(422, json.dumps({"error": {"code": wrong, "message": "no"}}).encode())
        sizes.append(count)
        if "ids" in asked and asked.get("with_vectors"):
            return Answer(200, _remote.packed({}, np.array(asked["ids"], np.float32).reshape(-1, 1)))
        if "ids" in asked:
            return Answer(200, json.dumps({"points": [{"columns": {"n": id}} for id in asked["ids"]]}).encode())
        start = asked.get("from", 0)
        found = range(start, POINTS)
        if asked["filter"]:
            found = [id for id in found if id in json.loads(f"[{asked['filter'].partition('(')[2].rstrip(')')}]")]
        points = [{"id": id} for id in found[:count]]
        return Answer(200, json.dumps({"points": points, "next": found[count] if len(found) > count else None}).encode())

    sizes = []
    try:
        request = next(steps)
        while True:
            request = steps.send(answer(request))
    except StopIteration as done:
        return done.value, sizes


@pytest.mark.parametrize("allowed", [1, 10, 10_000])
def test_pages_are_as_large_as_the_server_allows(allowed):
    asked = [3, 30, *range(20)]
    found, sizes = served(_remote.contains("a", asked), allowed)
    assert found.tolist() == [id < POINTS for id in asked] and sum(sizes) == len(asked)
    assert served(_remote.ids("a"), allowed)[0].tolist() == list(range(POINTS))
    assert served(_remote.rows("a", asked), allowed)[0]["n"].tolist() == asked
    assert served(_remote.get("a", asked), allowed)[0].ravel().tolist() == asked
    assert served(_remote.get("a", 7), allowed)[0].tolist() == [7]
    assert served(_remote.contains("a", []), allowed)[0].shape == (0,)


def test_only_identifiers_of_the_other_kind_are_not_there():
    assert served(_remote.contains("a", ["x"]), 10)[0].tolist() == [False]
    with pytest.raises(RefusedError, match="no"):
        served(_remote.contains("a", ["x"]), 10, wrong="read_only")
    for steps in (_remote.contains("a", [1]), _remote.ids("a"), _remote.rows("a", [1]), _remote.get("a", [1])):
        with pytest.raises(RefusedError, match="too many"):
            served(steps, 0)
