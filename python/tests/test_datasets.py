"""Downloads, from a server in this process that can fail in every way."""

import gzip
import hashlib
import http.server
import json
import struct
import threading

import numpy as np
import pytest
from garlic_ann import datasets

SIGNATURE = b"\x89HDF\r\n\x1a\n"
DATA = SIGNATURE + np.random.default_rng(1).bytes(1_000_000 - len(SIGNATURE))
OTHER = SIGNATURE + DATA[:7:-1]
PAGE = b"<!DOCTYPE html><title>Welcome to our network</title>" + b" " * 9000
SHA256 = hashlib.sha256(DATA).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    data, etag, breaks_after, requests = DATA, '"one"', None, None
    sends_length = True


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.requests.append(dict(self.headers))
        if "missing" in self.path:
            self.send_error(404)
            return
        begin, wanted = 0, self.headers.get("Range")
        if wanted and self.headers.get("If-Range") == server.etag:
            begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {begin}-{len(server.data) - 1}/{len(server.data)}")
        else:
            self.send_response(200)
        if server.sends_length:
            self.send_header("Content-Length", str(len(server.data) - begin))
        if server.etag:
            self.send_header("ETag", server.etag)
        self.end_headers()
        end = len(server.data) if server.breaks_after is None else begin + server.breaks_after
        self.wfile.write(server.data[begin:end])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    server = Server(("127.0.0.1", 0), Handler)
    server.requests = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(datasets, "BASE", f"http://127.0.0.1:{server.server_port}/")
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


NAME = "sift-128-euclidean"


def test_once_and_no_more(server, tmp_path, monkeypatch):
    monkeypatch.setenv("GARLIC_DATA", str(tmp_path / "data"))
    told = []
    path = datasets.get(NAME, sha256=SHA256, progress=lambda *at: told.append(at))
    assert path.read_bytes() == DATA and path.parent == datasets.directory()
    assert told[-1] == ("download", len(DATA), len(DATA))
    assert datasets.get(NAME) == path and len(server.requests) == 1
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name, path.name + ".sha256"]
    assert datasets.check(NAME)
    path.write_bytes(DATA[:-1] + b"?")
    assert not datasets.check(NAME)
    with pytest.raises(ValueError, match="does not have the checksum"):
        datasets.get(NAME, sha256=SHA256)


def test_an_interrupted_download_goes_on(server, tmp_path):
    server.breaks_after = 300_000
    for have in (300_000, 600_000, 900_000):
        with pytest.raises(OSError, match=f"ended after {have} of 1000000 bytes"):
            datasets.get(NAME, into=tmp_path)
        assert not (tmp_path / f"{NAME}.hdf5").exists()
    path = datasets.get(NAME, into=tmp_path, sha256=SHA256)
    assert path.read_bytes() == DATA
    assert [r.get("Range") for r in server.requests] == [None, "bytes=300000-", "bytes=600000-", "bytes=900000-"]


def test_another_version_begins_anew(server, tmp_path):
    server.breaks_after = 300_000
    with pytest.raises(OSError):
        datasets.get(NAME, into=tmp_path)
    server.breaks_after, server.etag, server.data = None, '"two"', OTHER
    assert datasets.get(NAME, into=tmp_path).read_bytes() == OTHER


def test_without_a_version_everything_comes_again(server, tmp_path):
    server.etag, server.breaks_after = None, 300_000
    with pytest.raises(OSError):
        datasets.get(NAME, into=tmp_path)
    server.breaks_after = None
    assert datasets.get(NAME, into=tmp_path).read_bytes() == DATA
    assert "Range" not in server.requests[-1]


def test_a_wrong_checksum_keeps_nothing(server, tmp_path):
    with pytest.raises(ValueError, match="nothing was kept"):
        datasets.get(NAME, into=tmp_path, sha256="0" * 64)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sends_length", [True, False])
@pytest.mark.parametrize("page", [PAGE, b"", SIGNATURE[:5]])
def test_a_page_is_no_data_set(server, tmp_path, page, sends_length):
    server.data, server.sends_length = page, sends_length
    with pytest.raises(ValueError, match="no HDF5 file.*nothing was kept"):
        datasets.get(NAME, into=tmp_path)
    assert not list(tmp_path.iterdir())
    # One that an earlier version has taken in, with its checksum.
    (tmp_path / f"{NAME}.hdf5").write_bytes(page)
    with pytest.raises(ValueError, match="no HDF5 file.*delete it"):
        datasets.get(NAME, into=tmp_path)


def test_a_page_that_was_begun_is_not_gone_on_with(server, tmp_path):
    server.data, server.breaks_after = PAGE, 5000
    with pytest.raises(ValueError, match="no HDF5 file"):
        datasets.get(NAME, into=tmp_path)
    assert not list(tmp_path.iterdir())
    # Left there whole by an earlier version: nothing is left to ask the server for.
    (tmp_path / f"{NAME}.hdf5.part").write_bytes(PAGE)
    note = {"url": f"{datasets.BASE}{NAME}.hdf5", "version": server.etag, "length": len(PAGE)}
    (tmp_path / f"{NAME}.hdf5.part.json").write_text(json.dumps(note))
    with pytest.raises(ValueError, match="no HDF5 file.*nothing was kept"):
        datasets.get(NAME, into=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sends_length", [True, False])
def test_a_download_has_a_limit(server, tmp_path, sends_length):
    server.sends_length = sends_length
    with pytest.raises(ValueError, match="more than 999999 bytes; nothing was kept.*max_bytes"):
        datasets.get(NAME, into=tmp_path, max_bytes=len(DATA) - 1)
    assert not list(tmp_path.iterdir())
    assert datasets.get(NAME, into=tmp_path, max_bytes=len(DATA)).read_bytes() == DATA


def test_what_goes_on_has_the_same_limit(server, tmp_path):
    server.breaks_after = 300_000
    with pytest.raises(OSError):
        datasets.get(NAME, into=tmp_path)
    server.breaks_after = None
    with pytest.raises(ValueError, match="more than 400000 bytes"):
        datasets.get(NAME, into=tmp_path, max_bytes=400_000)
    assert not list(tmp_path.iterdir())


def test_every_set_has_a_limit():
    assert set(datasets._MIB) == set(datasets.NAMES)
    assert datasets._limit(NAME, None) == 2 * 501 << 20
    assert datasets._limit(NAME, 7) == 7
    assert datasets._limit("mine", None) == datasets.MAX_BYTES


def test_labels_have_a_limit_and_are_gzip(server, tmp_path, monkeypatch):
    monkeypatch.setitem(datasets._LABELS, "mnist", (datasets.BASE, "0" * 32, "0" * 32))
    server.data = PAGE
    with pytest.raises(ValueError, match="no gzip file.*nothing was kept"):
        datasets.labels("mnist", into=tmp_path)
    server.data, server.sends_length = b"\x1f\x8b" + bytes(2 << 20), False
    with pytest.raises(ValueError, match="more than 1048576 bytes"):
        datasets.labels("mnist", into=tmp_path)
    assert not list(tmp_path.iterdir())


def test_failures_say_what_to_do(server, tmp_path):
    with pytest.raises(OSError, match="the server answers 404"):
        datasets.get("mine", url=datasets.BASE + "missing", into=tmp_path)
    with pytest.raises(ValueError, match="the names are: .*sift-128-euclidean"):
        datasets.get("sift", into=tmp_path)
    # Nobody listens on a port that was free a moment ago.
    probe = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    port = probe.server_port
    probe.server_close()
    with pytest.raises(OSError, match="cannot be reached .*by hand"):
        datasets.get("mine", url=f"http://127.0.0.1:{port}/x", into=tmp_path)


def test_labels(server, tmp_path, monkeypatch):
    values = np.arange(250, dtype=np.uint8)
    server.data = gzip.compress(struct.pack(">II", 0x801, 250) + values.tobytes())
    md5 = hashlib.md5(server.data).hexdigest()
    monkeypatch.setitem(datasets._LABELS, "mnist", (datasets.BASE, md5, md5))
    train, test = datasets.labels("mnist", into=tmp_path)
    assert (train == values).all() and (test == values).all()
    monkeypatch.setitem(datasets._LABELS, "fashion-mnist", (datasets.BASE, "0" * 32, md5))
    with pytest.raises(ValueError, match="nothing was kept"):
        datasets.labels("fashion-mnist", into=tmp_path)
    server.data = gzip.compress(b"something else")
    (tmp_path / "mnist-train-labels.gz").write_bytes(server.data)
    with pytest.raises(ValueError, match="no file of labels"):
        datasets.labels("mnist", into=tmp_path)


def test_all_addresses_are_encrypted():
    assert datasets.BASE.startswith("https://")
    assert all(base.startswith("https://") for base, *_ in datasets._LABELS.values())
