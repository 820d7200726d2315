"""Sharded indexes on a cluster of Ray, of several nodes in one machine: equal results, lost nodes, lost files, rolling reload."""

import os
import shutil
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

try:
    import ray
    from ray.cluster_utils import Cluster
except ImportError:
    message = "NOT TESTED: garlic_ann.ray. Install Ray: pip install -r python/requirements-test.txt."
    warnings.warn(message, stacklevel=1)
    pytest.skip(message, allow_module_level=True)

import garlic_ann.ray as garlic_ray
import pyarrow as pa
from garlic_ann import sharded
from shards import brute, clusters, parquet, recall, shard_bytes, table

POINTS = clusters(6000)
QUERIES = clusters(60, seed=9)
TRUTH = brute(POINTS, QUERIES, 10)
# Small stores: the nodes share one machine.
NODE = {"object_store_memory": 120 * 2**20}
COLUMNS = {"year": pa.array(np.arange(6000) % 50)}


@pytest.fixture(scope="module")
def cluster():
    """One node; tests add others."""
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
    # A node that does not answer is lost after three seconds, not half a minute.
    checks = {"health_check_initial_delay_ms": 1000, "health_check_period_ms": 1000, "health_check_failure_threshold": 3}
    head = {"num_cpus": 1, "include_dashboard": False, "_system_config": checks, **NODE}
    made = Cluster(initialize_head=True, head_node_args=head)
    ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return parquet(tmp_path_factory.mktemp("data"), table(POINTS, **COLUMNS), files=5, rows=400)


@pytest.fixture(scope="module")
def local(data, tmp_path_factory):
    """What one process builds of the same data."""
    return sharded.build(data, tmp_path_factory.mktemp("local") / "index", shards=6)


@pytest.fixture(scope="module")
def two_more(cluster, local):
    """The cluster with three nodes. Builds with one node come before."""
    nodes = [cluster.add_node(num_cpus=2, **NODE) for _ in range(2)]
    yield nodes


@pytest.fixture()
def copy(local, tmp_path):
    return shutil.copytree(local.path, tmp_path / "copy")


def test_one_node_builds_the_bytes_of_one_process(cluster, data, local, tmp_path):
    index = garlic_ray.build(data, tmp_path / "index", shards=6)
    assert shard_bytes(index.path) == shard_bytes(local.path)
    assert np.array_equal(index.search(QUERIES, 10, exact=True)[1], TRUTH)


def test_three_nodes_build_the_same_bytes_of_a_data_set(two_more, data, local, tmp_path):
    assert len([node for node in ray.nodes() if node["Alive"]]) == 3
    whole = table(POINTS, **COLUMNS)
    dataset = ray.data.from_arrow([whole.slice(start, 900) for start in range(0, 6000, 900)])
    index = garlic_ray.build(dataset, tmp_path / "index", shards=6)
    assert shard_bytes(index.path) == shard_bytes(local.path)
    for target in (0.9, 0.99):
        found, expected = (i.search(QUERIES, 10, recall=target) for i in (index, local))
        assert np.array_equal(found[0], expected[0]) and np.array_equal(found[1], expected[1])
        assert recall(found[1], TRUTH) >= target - 0.03


def test_append_and_compact_write_the_bytes_of_one_process(two_more, tmp_path):
    halves = [table(part, year=pa.array(np.arange(3000))) for part in (POINTS[:3000], POINTS[3000:])]
    paths = {}
    for name, module in (("local", sharded), ("ray", garlic_ray)):
        index = module.build(halves[0], tmp_path / name, shards=3)
        index = module.append(halves[1], index.path)
        assert len(index) == 6000
        index = module.compact(index.path)
        paths[name] = index.path
        assert np.array_equal(index.search(QUERIES, 10, exact=True)[1], TRUTH)
    assert shard_bytes(paths["local"]) == shard_bytes(paths["ray"])


def test_join_finds_what_searches_find(two_more, local):
    rows = ray.data.from_arrow([table(QUERIES, pa.array(np.arange(60))).slice(start, 25) for start in (0, 25, 50)])
    joined = garlic_ray.join(rows, local.path, 5, 0.95).to_pandas().sort_values("id")
    distances, ids = local.search(QUERIES, 5, recall=0.95)
    assert np.array_equal(np.stack(joined["neighbors"]), ids)
    assert np.array_equal(np.stack(joined["distances"]), distances)


def test_join_of_data_with_themselves_leaves_points_out(two_more, local):
    own = ray.data.from_arrow(table(POINTS[:50], pa.array(np.arange(50))))
    joined = garlic_ray.join(own, local.path, 3, exclude="id", exact=True).to_pandas().sort_values("id")
    expected = brute(POINTS, POINTS[:50], 4)[:, 1:]
    assert np.array_equal(np.stack(joined["neighbors"]), expected)


def test_serving_filters_and_joins(two_more, local):
    service = garlic_ray.serve(local.path, replicas=2, shards=2, cpus=0.1)
    try:
        for options in ({"exact": True}, {"recall": 0.9}, {"filter": "year < 5", "columns": ["year"]}, {"filter": [3, 5, 8]}):
            found, expected = service.search(QUERIES, 10, **options), local.search(QUERIES, 10, **options)
            assert all(np.array_equal(a, b) for a, b in zip(found[:2], expected[:2]))
            if "columns" in options:
                assert np.array_equal(found[2]["year"], expected[2]["year"])
        rows = ray.data.from_arrow(table(QUERIES, pa.array(np.arange(60))))
        joined = garlic_ray.join(rows, service, 10, exact=True).to_pandas().sort_values("id")
        assert np.array_equal(np.stack(joined["neighbors"]), TRUTH)
        with pytest.raises(ValueError, match="colour"):
            service.search(QUERIES, 10, filter="colour = 3")
    finally:
        service.close()


def test_queries_that_wait_are_answered_as_one_batch(two_more, local):
    service = garlic_ray.serve(local.path, shards=1, cpus=0.1, wait=30, batch=10)
    try:
        # All 60 wait at the same time, ten of them fill a batch, and each is searched in six shards.
        with ThreadPoolExecutor(60) as pool:
            answers = list(pool.map(lambda q: service.search(q, 10, exact=True)[1], QUERIES))
        assert np.array_equal(np.stack(answers), TRUTH)
        (stats,) = service.stats()
        assert (stats["requests"], stats["batches"]) == (60 * 6, 6 * 6)
    finally:
        service.close()


def test_a_wrong_query_is_answered_alone(two_more, local):
    """All wait at the same time, and one of them is not a number."""
    service = garlic_ray.serve(local.path, shards=1, cpus=0.1, wait=30, batch=10)
    queries = QUERIES[:10].copy()
    queries[3, 5] = np.nan

    def ask(query):
        try:
            return service.search(query, 10, exact=True)[1]
        except ValueError as error:
            return error

    try:
        with ThreadPoolExecutor(10) as pool:
            answers = list(pool.map(ask, queries))
        assert isinstance(answers.pop(3), ValueError)
        assert np.array_equal(np.stack(answers), np.delete(TRUTH[:10], 3, axis=0))
    finally:
        service.close()


def test_too_few_processors_are_an_error_and_leave_no_actor(two_more, local, monkeypatch):
    kill, killed = ray.kill, []
    monkeypatch.setattr(ray, "kill", lambda actor: killed.append(actor) or kill(actor))
    with pytest.raises(RuntimeError, match="4 of 4 actors have not started in 1 s. They need 1000 processors"):
        garlic_ray.serve(local.path, replicas=2, shards=2, cpus=1000, timeout=1)
    assert len(killed) == 4


def test_filters_that_are_read_once_reach_every_shard_and_batch(two_more, local):
    service = garlic_ray.serve(local.path, shards=2, cpus=0.1)
    expected = local.search(QUERIES, 3, filter=[3, 1000, 5000], exact=True)[1]
    try:
        assert np.array_equal(service.search(QUERIES, 3, filter=iter([3, 1000, 5000]), exact=True)[1], expected)
    finally:
        service.close()
    rows = ray.data.from_arrow(table(QUERIES, pa.array(np.arange(60))))
    joined = garlic_ray.join(rows, local.path, 3, filter=iter([3, 1000, 5000]), exact=True, batch_size=7).to_pandas().sort_values("id")
    assert np.array_equal(np.stack(joined["neighbors"]), expected)


@pytest.mark.parametrize("kind", [pa.string(), pa.float64()])
def test_exclude_needs_identifiers_of_the_same_kind(two_more, local, kind):
    own = table(POINTS[:9], pa.array(np.arange(9)).cast(kind))
    with pytest.raises(Exception, match=f"exclude: column `id` is of type {kind}, the identifiers of the index are whole"):
        garlic_ray.join(ray.data.from_arrow(own), local.path, 3, exclude="id").take_all()


def test_a_service_follows_the_manifest(two_more, copy):
    service = garlic_ray.serve(copy, replicas=2, shards=2, cpus=0.1, watch=0)
    try:
        assert len(service) == 6000 and service.search(QUERIES[0] + 90, 1, exact=True)[1][0] < 6000
        garlic_ray.append(table(QUERIES + 90, year=pa.array(np.zeros(60, int))), copy)
        assert service.search(QUERIES[:5] + 90, 1, exact=True)[1].ravel().tolist() == [6000, 6001, 6002, 6003, 6004]
        sharded.build(POINTS[:1000], copy, shards=3)
        assert service.search(POINTS[:3], 1, exact=True)[1].ravel().tolist() == [0, 1, 2] and len(service) == 1000
    finally:
        service.close()


def test_a_lost_shard_file_is_named(two_more, copy):
    lost = sharded.open(copy).manifest.shards[3].segments[0].file
    service = garlic_ray.serve(copy, shards=2, cpus=0.1)
    os.rename(f"{copy}/{lost}", f"{copy}/away")
    try:
        # The actors have it mapped and go on; a new service, and a join, need the file.
        assert np.array_equal(service.search(QUERIES, 10, exact=True)[1], TRUTH)
    finally:
        service.close()
    with pytest.raises(FileNotFoundError, match=lost):
        garlic_ray.serve(copy, shards=2, cpus=0.1)
    with pytest.raises(FileNotFoundError, match=lost):
        garlic_ray.append(table(POINTS[:5], year=pa.array(np.arange(5))), copy)
    with pytest.raises(Exception, match=lost):
        garlic_ray.join(ray.data.from_arrow(table(QUERIES)), copy, 3).take_all()


def test_of_two_builds_at_one_place_one_wins(two_more, tmp_path):
    sets = [POINTS[:2000], POINTS[1000:4000]]
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda x: garlic_ray.build(x, tmp_path / "index", shards=2), sets))
    index = garlic_ray.open(tmp_path / "index")
    assert len(index) in (2000, 3000) and all(len(one) in (2000, 3000) for one in made)
    x = sets[0] if len(index) == 2000 else sets[1]
    assert garlic_ray.verify(index.path)["points"] == len(x)
    assert np.array_equal(index.search(QUERIES, 10, exact=True)[1], brute(x, QUERIES, 10))


def test_bad_rows_are_named_and_leave_nothing(two_more, tmp_path):
    folder = parquet(tmp_path / "data", table(POINTS[:1000]), files=3)
    pa.parquet.write_table(table(POINTS[:5, :9].copy()), f"{folder}/part-077.parquet")
    with pytest.raises(ValueError, match="part-077.parquet: row 0: the vectors have dimension 9"):
        garlic_ray.build(folder, tmp_path / "index", shards=3)
    ragged = ray.data.from_arrow(pa.table({"v": pa.array([[1.0, 2.0]] * 9 + [[1.0]], pa.list_(pa.float32()))}))
    with pytest.raises(ValueError, match="block 0 of the data set: .*row 9 has 1 numbers"):
        garlic_ray.build(ragged, tmp_path / "index")
    repeated = table(POINTS[:900], pa.array([*range(899), 5]))
    with pytest.raises(ValueError, match="identifier 5 occurs more than once"):
        garlic_ray.build(repeated, tmp_path / "index", ids="id", shards=3)
    assert not (tmp_path / "index").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        garlic_ray.build(POINTS[:100], tmp_path / "file" / "index")


def alive():
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}


def wait_until_lost(node):
    """Waits until the cluster knows that a killed node is lost. A build may end before that."""
    deadline = time.monotonic() + 60
    while node.node_id in alive():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_node_lost_in_mid_build_changes_nothing(two_more, cluster, data, local, tmp_path):
    place = tmp_path / "index"
    victim = two_more.pop()
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit(garlic_ray.build, data, place, shards=6)
        while not building.done() and not (place.exists() and any("-0000" in name for name in os.listdir(place))):
            time.sleep(0.01)
        assert not building.done() and not (place / "manifest.json").exists()
        cluster.remove_node(victim, allow_graceful=False)
        index = building.result()
    wait_until_lost(victim)
    assert shard_bytes(index.path) == shard_bytes(local.path)


def test_a_node_lost_in_mid_query_loses_no_answer(two_more, cluster, local):
    """Replicas lie on several nodes; one node is killed while searches are running."""
    victim = cluster.add_node(num_cpus=2, **NODE)
    service = garlic_ray.serve(local.path, replicas=2, shards=3, cpus=0.3, wait=0.0)
    try:
        assert victim.node_id in {found["node"] for found in service.stats()}
        answers, stop = [], threading.Event()

        def ask():
            while not stop.is_set():
                answers.append(service.search(QUERIES, 10, exact=True)[1])

        asking = threading.Thread(target=ask)
        asking.start()
        while len(answers) < 3:
            time.sleep(0.01)
        cluster.remove_node(victim, allow_graceful=False)
        seen = len(answers)
        deadline = time.monotonic() + 60
        while len(answers) < seen + 8 and asking.is_alive() and time.monotonic() < deadline:
            time.sleep(0.05)
        stop.set()
        asking.join()
        assert len(answers) >= seen + 8
        assert all(np.array_equal(ids, TRUTH) for ids in answers)
    finally:
        service.close()
