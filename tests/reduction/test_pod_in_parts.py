"""POD by several processes: as here, the same bytes with any number of them, no snapshot read by the driver."""

import os
import signal
import sys
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from parasol.errors import FileError, InputError, WorkerDied, WriteFailed
from parasol.reduction import pod_in_parts
from parasol.reduction.chunks import StoredChunk
from parasol.reduction.pod import pod
from parasol.reduction.snapshots import as_snapshots, open_snapshots, solve_many

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks")
N_VALUES = 4000
MUS = np.linspace(0.0, 1.0, 60)[:, None]


def bump(mu):
    if mu[0] == MUS[7, 0]:
        raise ValueError("no solution here")
    return 1 / (1 + mu[0] + np.linspace(0, 1, N_VALUES))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pod") / "s"
    with pytest.warns(UserWarning, match="1 of 60 parameters could not be solved"):
        solve_many(bump, MUS, store=folder, chunk_size=4)
    return folder


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    monkeypatch.setattr(pod_in_parts, "_PART", 8 * N_VALUES)  # eight snapshots, so that there are three levels of pairs


@pytest.fixture
def pool():
    with ProcessPoolExecutor(2, get_context("fork")) as executor:
        yield executor


class Here:
    """An executor that does everything at once, in this process."""

    def submit(self, function, *arguments):
        future = Future()
        future.set_result(function(*arguments))
        return future


@pytest.mark.parametrize("weighted", [False, True])
def test_the_basis_is_that_of_one_process(store, pool, weighted):
    snapshots = open_snapshots(store)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, N_VALUES) if weighted else None
    whole = pod(snapshots, tolerance=1e-6, weights=weights, method="svd")
    found = pod(snapshots, tolerance=1e-6, weights=weights, executor=pool)
    assert (found.n_modes, found.n_snapshots, found.method) == (whole.n_modes, 59, "incremental")
    assert subspace_angles(found.modes, whole.modes).max() < 1e-7  # what may be lost on the way turns them so far
    np.testing.assert_allclose(
        found.singular_values[: whole.n_modes], whole.singular_values[: whole.n_modes], rtol=1e-8
    )
    assert found.total_energy == pytest.approx(whole.total_energy, rel=1e-13)
    assert found.lost_energy <= (1e-4 * 1e-6) ** 2 * found.total_energy
    assert not list(store.glob(".pod*"))


def test_what_is_exact_in_one_process_is_exact_in_many(tmp_path, pool):
    table = np.random.default_rng(0).standard_normal((3, N_VALUES))
    solve_many(lambda mu: np.array([1.0, mu[0], mu[0] ** 2]) @ table, MUS, store=tmp_path / "s", chunk_size=4)
    snapshots = open_snapshots(tmp_path / "s")
    found, whole = pod(snapshots, n_modes=3, executor=pool), pod(snapshots, n_modes=3)
    np.testing.assert_allclose(found.modes, whole.modes, rtol=0, atol=1e-13)
    np.testing.assert_allclose(found.singular_values[:3], whole.singular_values[:3], rtol=1e-13)


def test_what_was_dropped_on_the_way_is_counted(tmp_path, monkeypatch):
    """Noise does not decay: 24 directions are kept of parts of 32 snapshots, and of what these are joined to."""
    monkeypatch.setattr(pod_in_parts, "_PART", 32 * 300)

    def noise(mu):
        return np.random.default_rng(int(1000 * mu[0])).standard_normal(300)

    solve_many(noise, MUS, store=tmp_path / "s", chunk_size=4)
    with pytest.warns(UserWarning, match="dropped energy on the way"):
        basis = pod(open_snapshots(tmp_path / "s"), n_modes=1, executor=Here())
    assert basis.lost_energy > 0.3 * basis.total_energy
    assert np.sum(basis.singular_values**2) + basis.lost_energy == pytest.approx(basis.total_energy, rel=1e-12)


def test_the_bytes_are_the_same_whoever_computes_and_the_driver_reads_no_snapshots(store, pool, monkeypatch):
    snapshots = open_snapshots(store)
    alone = pod(snapshots, tolerance=1e-6, executor=Here())
    pool.submit(os.getpid).result()  # its processes are there before reading is forbidden here

    def forbidden(self, name):
        raise AssertionError("read by the driver")

    monkeypatch.setattr(StoredChunk, "rows", forbidden)
    assert pod(snapshots, tolerance=1e-6, executor=pool).modes.tobytes() == alone.modes.tobytes()
    with pytest.raises(AssertionError, match="read by the driver"):
        pod(snapshots, tolerance=1e-6, executor=Here())


def test_some_of_a_store_are_what_was_asked_for(store, pool):
    snapshots = open_snapshots(store)
    some = snapshots.between(6, 31)
    assert sum(map(len, some.split(8 * N_VALUES))) == 25
    for group in some.split(8 * N_VALUES):
        np.testing.assert_array_equal(group.solutions[:, 0], 1 / (1 + group.mus[:, 0]))
        assert len(group.parts) <= 3
    found, whole = pod(some, tolerance=1e-6, executor=pool), pod(some, tolerance=1e-6)
    assert found.n_snapshots == 25
    assert subspace_angles(found.modes, whole.modes).max() < 1e-7


def test_a_damaged_chunk_and_a_worker_that_dies_are_one_line(tmp_path, pool):
    solve_many(lambda mu: bump(mu + 0.001), MUS, store=tmp_path / "s", chunk_size=4)
    snapshots = open_snapshots(tmp_path / "s")
    file = sorted((tmp_path / "s" / "solutions").glob("c*"))[3]
    raw = file.read_bytes()
    file.write_bytes(raw[:99] + bytes([raw[99] ^ 1]) + raw[100:])
    with pytest.raises(FileError, match=r"store is damaged: .*its checksum is wrong"):
        pod(snapshots, tolerance=1e-6, executor=pool)
    file.write_bytes(raw)
    pool.submit(os.getpid).result()
    os.kill(next(iter(pool._processes)), signal.SIGKILL)
    with pytest.raises(WorkerDied, match="The snapshots are kept; run again"):
        pod(snapshots, tolerance=1e-6, executor=pool)
    assert not list((tmp_path / "s").glob(".pod*"))


def too_large_a_file():
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, -1))


def test_a_file_that_cannot_be_written_is_one_line(store):
    with (
        ProcessPoolExecutor(1, get_context("fork"), initializer=too_large_a_file) as small,
        pytest.raises(WriteFailed, match=r"cannot write .*: File too large\. The snapshots are as they were\.$"),
    ):
        pod(open_snapshots(store), tolerance=1e-6, executor=small)
    assert not list(store.glob(".pod*"))


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ("memory", {}, "these are in memory"),
        ("store", {"method": "svd"}, "not with 'svd'"),
        ("store", {"weights": np.eye(2)}, "not for a matrix"),
        ("store", {"executor": "tcp://host:8786"}, "executor is a str"),
    ],
)
def test_what_an_executor_cannot_do_is_refused(store, given, options, message):
    snapshots = open_snapshots(store) if given == "store" else as_snapshots([[1.0], [2.0]], np.eye(2))
    with pytest.raises(InputError, match=message):
        pod(snapshots, **({"tolerance": 1e-3, "executor": Here()} | options))
