"""The clients against a real server: they have the answers of an index."""

import asyncio
import datetime
import shutil
import ssl
import subprocess
import uuid
import warnings

import garlic_ann as garlic
import numpy as np
import pytest
from garlic_ann.client import AsyncClient, Client, MissingError, RefusedError, ServerError
from served import served


@pytest.fixture(scope="module")
def url(program, tmp_path_factory):
    with served(program, "--root", tmp_path_factory.mktemp("root")) as url:
        yield url


@pytest.fixture
def client(url):
    with Client(url) as client:
        yield client
        for index in client.indexes():
            client.delete(index["name"])


def test_answers_are_those_of_an_index(client, points, queries, built):
    remote = client.create("points", vectors=points, seed=1)
    assert (len(remote), remote.dim, remote.metric, remote.columns) == (len(points), built.dim, "euclidean", [])
    for exact in (True, False):
        for q in (queries, queries[0]):
            found, expected = remote.search(q, k=7, exact=exact), built.search(q, k=7, exact=exact)
            np.testing.assert_array_equal(found[1], expected[1])
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)
    allowed = list(range(0, 400, 3))
    found = remote.search(queries, k=3, exact=True, filter=allowed)
    np.testing.assert_array_equal(found[1], built.search(queries, k=3, exact=True, filter=allowed)[1])
    radius = float(found[0].mean())
    for mine, theirs in zip(remote.range_search(queries, radius), built.range_search(queries, radius)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    *_, stats = remote.search(queries, k=3, return_stats=True)
    assert stats["candidates"] > 0
    np.testing.assert_array_equal(remote.get([5, 3]), points[[5, 3]])
    assert remote.get(5).shape == (24,)
    assert (5 in remote, len(points) in remote, "x" in remote) == (True, False, False)
    assert remote.contains([1, 10**9]).tolist() == [True, False]
    np.testing.assert_array_equal(remote.ids(), np.arange(len(points)))
    distances, ids = remote.search(queries[0], k=3, filter=[])
    assert np.isinf(distances).all() and (ids == -1).all()


def test_names_and_columns(client):
    remote = client.create("pages", 2)
    when = datetime.datetime(2020, 1, 2)
    ids = remote.add(np.eye(2), ids=["a", "it's"], columns={"year": np.array([1999, 2020]), "size": [0.5, None], "when": [when, None]})
    assert ids.tolist() == ["a", "it's"]
    key = uuid.uuid4()
    remote.upsert([[3.0, 3.0], [4.0, 4.0]], ids=["b", key], columns={"year": [7, 8]})
    distances, ids, columns = remote.search([1, 0], k=5, columns=["year", "size"], exact=True)
    assert ids.tolist() == ["a", "it's", "b", str(key), None] and np.isinf(distances[-1])
    assert columns["year"].tolist() == [1999, 2020, 7, 8, None]
    assert columns["size"][0] == 0.5 and np.isnan(columns["size"][1:]).all()
    assert remote.rows(["b", "a"])["year"].tolist() == [7, 1999]
    assert remote.rows("a", ["when"])["when"].item().startswith("2020-01-02")
    assert remote.search([1, 0], k=1, filter=["it's"], exact=True)[1].tolist() == ["it's"]
    assert remote.count(filter="year > 1000") == 2
    remote.update([[9, 9]], ["a"])
    assert remote.get("a").tolist() == [9, 9] and remote.rows("a")["year"] == 1999
    assert (remote.remove(["a", "none"]), remote.remove(filter="year = 8"), len(remote)) == (1, 1, 2)
    assert remote.stats()["drift"] == remote.drift()
    remote.compact()
    remote.recalibrate()


def test_columns_of_data_frames(client):
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    remote = client.create("frames", 2)
    for at, make in enumerate([dict, pandas.DataFrame, polars.DataFrame, pyarrow.table]):
        remote.upsert([[at, 1.0]], [at], columns=make({"name": [str(at)]}))
    assert remote.rows(remote.ids())["name"].tolist() == ["0", "1", "2", "3"]


def test_errors_say_what_to_do(client, url):
    remote = client.create("few", vectors=np.eye(3))
    with pytest.raises(RefusedError, match="dimension 3") as caught:
        remote.search([1, 2])
    assert isinstance(caught.value, ValueError) and (caught.value.status, caught.value.code) == (422, "invalid")
    with pytest.raises(KeyError, match="identifier 99"):
        remote.get(99)
    with pytest.raises(MissingError, match="no index `other`"):
        client.index("other").search([1])
    with pytest.raises(RefusedError, match="already"):
        client.create("few", 3)
    with pytest.raises(RefusedError, match="already"):
        remote.add(np.eye(3), ids=[0, 1, 2])
    with pytest.raises(TypeError, match="whole numbers"):
        remote.get([1.5])
    with pytest.raises(TypeError, match="expression"):
        remote.search([1, 2, 3], filter=lambda id: True)
    with pytest.raises(ValueError, match="no address"):
        Client("localhost:7878")
    with Client("http://127.0.0.1:9") as nobody, pytest.raises(OSError):
        nobody.indexes()


def test_snapshots(client, points, queries, tmp_path):
    remote = client.create("one", vectors=points[:300])
    remote.save(tmp_path / "one.garlic")
    local = garlic.open(tmp_path / "one.garlic")
    expected = local.search(queries, k=2, exact=True)[1]
    for data in (remote.to_bytes(), tmp_path / "one.garlic"):
        again = client.restore("again", data)
        np.testing.assert_array_equal(again.search(queries, k=2, exact=True)[1], expected)
        client.delete("again")


def test_many_at_once(client, url, points, queries, built):
    client.create("points", vectors=points, seed=1)
    expected = built.search(queries, k=3, exact=True)[1]

    async def ask():
        async with AsyncClient(url) as many:
            index = many.index("points")
            found = await asyncio.gather(*(index.search(q, k=3, exact=True) for q in queries))
            np.testing.assert_array_equal([ids for _, ids in found], expected)
            assert await index.count() == len(points)
            assert (await index.add(points[:2])).tolist() == [4000, 4001]
            assert (await index.info())["points"] == 4002
            other = await many.create("other", 3)
            await other.upsert(np.eye(3), [1, 2, 3])
            assert (await other.get(2)).tolist() == [0, 1, 0]
            with pytest.raises(KeyError):
                await other.get(9)
            assert {i["name"] for i in await many.indexes()} == {"points", "other"}

    asyncio.run(ask())


def test_keys_and_read_only_files(program, tmp_path, points, built):
    built.save(tmp_path / "fixed.garlic")
    read, write = "r" * 20, "w" * 20
    with served(program, tmp_path / "fixed.garlic", GARLIC_READ_KEY=read, GARLIC_WRITE_KEY=write) as url:
        with pytest.raises(ServerError, match="key") as caught:
            Client(url).indexes()
        assert caught.value.status == 401
        reader = Client(url, read).index("fixed")
        assert reader.search(points[3], k=1)[1].tolist() == [3]
        with pytest.raises(ServerError, match="only reads"):
            reader.remove([3])
        with pytest.raises(RefusedError, match="read-only"):
            Client(url, write).index("fixed").remove([3])


def test_tls(program, tmp_path, built, points):
    openssl = shutil.which("openssl")
    if openssl is None:
        message = "NOT TESTED: TLS of the server, for want of openssl"
        warnings.warn(message, stacklevel=1)
        pytest.skip(message)
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", *names]
    subprocess.run([openssl, *made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    built.save(tmp_path / "fixed.garlic")
    with served(program, tmp_path / "fixed.garlic", "--tls-cert", certificate, "--tls-key", key) as url:
        assert url.startswith("https://")
        with Client(url, certificates=str(certificate)) as client:
            assert client.index("fixed").search(points[3], k=1)[1].tolist() == [3]

        async def ask():
            async with AsyncClient(url, certificates=str(certificate)) as many:
                return await many.index("fixed").count()

        assert asyncio.run(ask()) == len(points)
        with pytest.raises(ssl.SSLCertVerificationError):
            Client(url).indexes()


def test_a_connection_that_the_server_closed_is_opened_again(client, url):
    remote = client.create("few", vectors=np.eye(3))
    for connection in client._idle:
        connection.sock.shutdown(2)
    assert client._idle and len(remote) == 3

    async def ask():
        async with AsyncClient(url) as many:
            assert await many.index("few").count() == 3
            for _, writer in many._idle:
                writer.close()
            assert many._idle and await many.index("few").count() == 3

    asyncio.run(ask())
