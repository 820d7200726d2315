"""Files of buckets, with a server of S3 on this machine."""

import json
import os
import threading

import garlic_ann as garlic
import numpy as np
import pytest
import shards
from garlic_ann import sharded

pytest.importorskip("obstore")
server = pytest.importorskip("moto.server")

from garlic_ann import cloud  # noqa: E402

KEYS = {"access_key_id": "key", "secret_access_key": "secret", "region": "us-east-1", "client_options": {"allow_http": True}}


@pytest.fixture(scope="module")
def s3():
    """Options of a store, and a bucket."""
    running = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    options = {**KEYS, "endpoint": f"http://{host}:{port}"}
    import urllib.request

    urllib.request.urlopen(urllib.request.Request(f"{options['endpoint']}/points", method="PUT")).close()
    yield options
    running.stop()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    place = str(tmp_path_factory.mktemp("built") / "index")
    return sharded.build(shards.clusters(3000), place, shards=3, seed=1)


def test_an_index_file_goes_to_a_bucket_and_comes_back(s3, tmp_path):
    x = shards.clusters(500)
    garlic.build(x, seed=1).save(tmp_path / "x.garlic")
    assert cloud.upload(tmp_path / "x.garlic", "s3://points/one/x.garlic", **s3) == ["x.garlic"]
    cloud.download("s3://points/one/x.garlic", tmp_path / "y.garlic", **s3)
    assert (tmp_path / "y.garlic").read_bytes() == (tmp_path / "x.garlic").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["x.garlic", "y.garlic"]


def test_a_folder_of_data_is_built_from(s3, tmp_path, built):
    data = shards.parquet(tmp_path / "data" / "deep", shards.table(shards.clusters(3000)))
    names = cloud.upload(tmp_path / "data", "s3://points/data", **s3)
    assert len(names) == 4 and names == cloud.download("s3://points/data/", tmp_path / "copy", **s3)
    again = sharded.build(tmp_path / "copy", tmp_path / "again", shards=3, seed=1)
    first = sharded.build(data, tmp_path / "first", shards=3, seed=1)
    assert shards.shard_bytes(again.path) == shards.shard_bytes(first.path)


def test_a_sharded_index_is_copied_once_and_its_manifest_last(s3, tmp_path, built):
    url = "s3://points/index"
    names = cloud.upload(built.path, url, **s3)
    assert names[-1] == "manifest.json" and len(names) == 6
    assert cloud.upload(built.path, url, **s3) == [], "it is there already"
    assert cloud.download(url, tmp_path / "copy", **s3) == names
    assert cloud.download(url, tmp_path / "copy", **s3) == ["manifest.json"]
    copy = sharded.open(tmp_path / "copy")
    queries = shards.clusters(20, seed=9)
    assert np.array_equal(copy.search(queries)[1], built.search(queries)[1])

    # A change of the copy, which the bucket takes. Then one of another copy, which did not know of it.
    cloud.download(url, tmp_path / "late", **s3)
    sharded.append(shards.clusters(100, seed=4), tmp_path / "copy")
    changed = cloud.upload(tmp_path / "copy", url, **s3)
    assert changed[-1] == "manifest.json" and set(changed).isdisjoint(names[:-1])
    sharded.append(shards.clusters(50, seed=5), tmp_path / "late")
    with pytest.raises(RuntimeError, match="changed by someone else"):
        cloud.upload(tmp_path / "late", url, **s3)
    cloud.download(url, tmp_path / "new", **s3)
    assert len(sharded.open(tmp_path / "new")) == 3100
    cloud.upload(tmp_path / "late", url, replace=True, **s3)
    cloud.download(url, tmp_path / "new", **s3)
    assert len(sharded.open(tmp_path / "new")) == 3050


def test_files_that_differ_are_copied_whatever_their_size(s3, tmp_path, built):
    url = "s3://points/differ"
    cloud.upload(built.path, url, **s3)
    cloud.download(url, tmp_path / "copy", **s3)
    shard = built.manifest.shards[1].segments[0]
    (tmp_path / "copy" / shard.file).write_bytes(b"\0" * shard.size)
    assert cloud.download(url, tmp_path / "copy", **s3) == [shard.file, "manifest.json"]
    sharded.verify(tmp_path / "copy")

    # The bucket has another file of this name and size, which its manifest names.
    manifest = json.loads((tmp_path / "copy" / "manifest.json").read_text())
    manifest["held_out"]["sha256"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    cloud.upload(tmp_path / "manifest.json", f"{url}/manifest.json", **s3)
    assert cloud.upload(built.path, url, replace=True, **s3) == [built.manifest.held_out.file, "manifest.json"]


def test_of_two_uploads_at_once_one_wins(s3, tmp_path, built):
    url = "s3://points/race"
    done, start = [], threading.Barrier(4)
    other = sharded.build(shards.clusters(2000, seed=7), tmp_path / "other", shards=2, seed=1)

    def upload(path):
        start.wait()
        try:
            done.append(cloud.upload(path, url, **s3) and path)
        except RuntimeError as error:
            assert "changed by someone else" in str(error)
            done.append(None)

    threads = [threading.Thread(target=upload, args=(path,)) for path in (built.path, other.path) * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = {path for path in done if path}
    assert len(done) == 4 and len(winners) == 1
    cloud.download(url, tmp_path / "won", **s3)
    assert shards.shard_bytes(tmp_path / "won") == shards.shard_bytes(winners.pop())
    sharded.verify(tmp_path / "won")


def test_what_is_wrong_is_named_and_nothing_is_left(s3, tmp_path, built):
    with pytest.raises(FileNotFoundError, match="s3://points/nothing"):
        cloud.download("s3://points/nothing", tmp_path / "file", **s3)
    with pytest.raises(FileNotFoundError, match="s3://no-bucket/x"):
        cloud.download("s3://no-bucket/x", tmp_path / "file", **s3)
    with pytest.raises(ValueError, match="is no URL"):
        cloud.download("points/x", tmp_path / "file")
    with pytest.raises(FileNotFoundError, match="missing"):
        cloud.upload(tmp_path / "missing", "s3://points/x", **s3)
    url = "s3://points/damaged"
    cloud.upload(built.path, url, **s3)
    shard = next(name for name in sorted(os.listdir(built.path)) if name.endswith("-0000.garlic") or "-0" in name)
    (tmp_path / "bad").write_bytes(b"\0" * os.path.getsize(os.path.join(built.path, shard)))
    cloud.upload(tmp_path / "bad", f"{url}/{shard}", **s3)
    with pytest.raises(garlic.FormatError, match=shard):
        cloud.download(url, tmp_path / "copy", **s3)
    assert not os.path.exists(tmp_path / "copy" / "manifest.json")
    assert not [name for name in os.listdir(tmp_path / "copy") if name.endswith(".tmp")]
    assert os.listdir(tmp_path) and not os.path.exists(tmp_path / "file")
