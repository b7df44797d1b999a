"""The offline phase on a Dask cluster of real processes, and on other executors; one cluster serves all tests of this file."""

import os
import random
import signal
import sys
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from multiprocessing.reduction import ForkingPickler
from pathlib import Path

import numpy as np
import pytest

import parasol as ps
from parasol.errors import FileError, InputError, ParasolError, ParasolWarning, WorkerDied
from parasol.reduction import cluster as clusters
from parasol.reduction import travel, workers
from parasol.reduction.snapshots import open_snapshots, solve_many

distributed = pytest.importorskip("distributed")
MUS = np.linspace(1.0, 2.0, 24)[:, None]
N_VALUES = 5000


def waves(mu):
    return np.sin(mu[0] * np.arange(float(N_VALUES)))


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def executor():
    with clusters.cluster("local", jobs=2) as hands:
        yield hands


class Watched(Executor):
    """An executor that notes how many bytes go to the workers and how many come back."""

    def __init__(self, inner):
        self.inner, self.there, self.back = inner, [], []

    def submit(self, function, /, *arguments):
        self.there.append(len(bytes(ForkingPickler.dumps(arguments))))
        future = self.inner.submit(function, *arguments)
        future.add_done_callback(lambda f: self.back.append(len(bytes(ForkingPickler.dumps(f.result())))))
        return future


def test_workers_write_their_chunks_and_only_small_facts_travel(tmp_path, executor):
    table = np.arange(float(10 * N_VALUES))

    def tabulated(mu):  # neither importable nor small: it goes to a file in the store, once
        return waves(mu) + table[:N_VALUES]

    watched = Watched(executor)
    solve_many(tabulated, MUS, store=tmp_path / "a", chunk_size=2)
    found = solve_many(tabulated, MUS, store=tmp_path / "b", chunk_size=2, executor=watched)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert len(found) == len(MUS)
    assert len(watched.back) == 12
    assert max(watched.back) < 2000 < 8 * N_VALUES


def test_a_worker_that_is_killed_costs_its_chunk(tmp_path, executor):
    marker = tmp_path / "died"

    def once(mu):
        if mu[0] > 1.5 and not marker.exists():
            marker.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return waves(mu)

    solve_many(waves, MUS, store=tmp_path / "a", chunk_size=2, fingerprint="waves")
    solve_many(once, MUS, store=tmp_path / "b", chunk_size=2, fingerprint="waves", executor=executor)
    assert marker.exists()
    whole = {n: raw for n, raw in tree(tmp_path / "a").items() if n.startswith(("solutions", "receipts"))}
    assert whole.items() <= tree(tmp_path / "b").items()


def test_processes_of_our_own_that_are_killed_are_replaced(tmp_path):
    def hurt(mu):
        marker = tmp_path / f"died-{mu[0]:.3f}"
        if mu[0] in MUS[[4, 11, 20]] and not marker.exists():
            marker.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return waves(mu)

    found = solve_many(hurt, MUS, jobs=2, chunk_size=1)
    assert len(list(tmp_path.glob("died-*"))) == 3
    np.testing.assert_array_equal(found.solutions, [waves(mu) for mu in MUS])


def test_warnings_and_mistakes_of_workers_arrive(tmp_path, executor):
    import warnings

    def talkative(mu):
        warnings.warn("mind the gap", ParasolWarning, stacklevel=2)
        if mu[0] == 2:
            raise KeyError("a mistake")
        return waves(mu)

    with pytest.warns(ParasolWarning, match="mind the gap"):
        solve_many(talkative, MUS[:-1], store=tmp_path / "a", executor=executor)
    with pytest.raises(KeyError, match="a mistake"):
        solve_many(talkative, MUS, store=tmp_path / "b", executor=executor)
    assert not list((tmp_path / "b").glob(".solver*"))


# ---- what can be wrong with a cluster ------------------------------------------------------------------------------
def called(version):
    travel.__version__ = version


def test_versions_that_differ_are_refused(tmp_path, executor):
    client, here = executor._client, ps.__version__
    try:
        client.run(called, "0.0.1")
        with pytest.raises(
            InputError, match=rf"a worker on .* has parasol 0\.0\.1, this run has {here}\. Use the same"
        ):
            solve_many(waves, MUS, store=tmp_path / "s", executor=executor)
        address = client.scheduler.address
        with (
            pytest.raises(InputError, match=r"the worker tcp://\S+ has parasol 0\.0\.1"),
            clusters.cluster(address),
        ):
            pass
    finally:
        client.run(called, here)


def test_no_scheduler_no_workers_and_no_address_are_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(clusters, "_REACHED_WITHIN", 0.3)
    monkeypatch.setattr(clusters, "_WORKERS_WITHIN", 0.2)
    with (
        pytest.raises(InputError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 .*Start one") as said,
        clusters.cluster("tcp://127.0.0.1:9"),
    ):
        pass
    assert "\n" not in str(said.value)
    with (
        pytest.raises(InputError, match=r"no scheduler file"),
        clusters.cluster(str(tmp_path / "scheduler.json")),
    ):
        pass
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0") as empty,
        pytest.raises(InputError, match=r"has no workers\. Start some: `dask worker"),
        clusters.cluster(empty.scheduler_address),
    ):
        pass


def test_a_scheduler_that_ends_is_one_line_and_what_is_done_stays(tmp_path):
    def slow(mu):
        time.sleep(0.05)
        return waves(mu)

    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as local, distributed.Client(local, set_as_default=False) as client:
        hands = client.get_executor(pure=False)

        def progress(fraction):
            if fraction > 0.2 and not ending:
                ending.append(threading.Thread(target=local.close))
                ending[0].start()

        ending = []
        with pytest.raises(WorkerDied, match=r"a worker died .*Finished chunks are kept in .*run again to resume"):
            solve_many(slow, MUS, store=tmp_path / "s", chunk_size=1, executor=hands, progress=progress)
        ending[0].join()
    assert len(open_snapshots(tmp_path / "s")) >= 5
    assert len(solve_many(slow, MUS, store=tmp_path / "s")) == len(MUS)


def elsewhere():
    """A process that sees other disks."""
    travel.SEEN_WITHIN = 0.1
    Path.exists = lambda path: False  # type: ignore[method-assign]


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_a_store_that_workers_do_not_see_is_one_line(tmp_path):
    with (
        ProcessPoolExecutor(1, get_context("fork"), initializer=elsewhere) as pool,
        pytest.raises(FileError, match=r"the store .* cannot be reached by a worker on .*that all workers share"),
    ):
        solve_many(waves, MUS, store=tmp_path / "s", executor=pool)


def test_what_is_no_executor_is_refused():
    with pytest.raises(ParasolError, match=r"executor is a str\. Pass one of concurrent\.futures"):
        solve_many(waves, MUS, executor="tcp://host:8786")
    with pytest.raises(ParasolError, match=r"executor is a str"):
        ps.learn(waves, parameters={"a": (1.0, 2.0)}, executor="tcp://host:8786")


# ---- learning ------------------------------------------------------------------------------------------------------
def test_learning_on_a_cluster_is_learning_here(tmp_path, executor):
    space, mus = {"a": (1.0, 2.0)}, np.linspace(1.1, 1.9, 5)[:, None]

    def bump(mu):
        return 1 / (mu[0] + np.linspace(0, 1, 30))

    here = ps.learn(bump, 1e-3, parameters=space, store=tmp_path / "a", recipe="polynomial")
    there = ps.learn(bump, 1e-3, parameters=space, store=tmp_path / "b", recipe="polynomial", executor=executor)
    assert here(mus).values.tobytes() == there(mus).values.tobytes()
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


@pytest.mark.slow
def test_a_cluster_without_workers_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_LOOK", 0.2)
    monkeypatch.setattr(workers, "_ALONE", 0.6)

    def slow(mu):
        time.sleep(0.3)
        return waves(mu)

    with clusters.cluster("local", jobs=1) as hands:

        def progress(fraction):
            if fraction > 0:
                hands._client.cluster.scale(0)

        with pytest.raises(WorkerDied, match=r"no worker is left, and none came within 0.6 s.*run again to resume"):
            solve_many(slow, MUS, store=tmp_path / "s", chunk_size=1, executor=hands, progress=progress)
    assert 1 <= len(open_snapshots(tmp_path / "s")) < len(MUS)


@pytest.mark.slow
def test_workers_killed_at_random_moments_change_nothing(tmp_path, executor):
    def slow(mu):
        time.sleep(0.1)
        return waves(mu)

    choice, stop = random.Random(3), threading.Event()

    def kill():
        while not stop.wait(choice.uniform(0.3, 2.0)):
            pids = list(executor._client.run(os.getpid, on_error="ignore").values())
            if len(pids) == 2:  # Dask gives up a worker that dies while it starts
                os.kill(choice.choice(pids), signal.SIGKILL)
                kills.append(1)

    kills: list[int] = []
    solve_many(slow, MUS, store=tmp_path / "whole", chunk_size=1)
    thread, end, trial = threading.Thread(target=kill), time.monotonic() + 300, 0
    thread.start()
    try:
        # so many that some die again while Dask still remembers an earlier death
        while len(kills) < 12 and time.monotonic() < end:
            solve_many(slow, MUS, store=tmp_path / f"{trial}", chunk_size=1, executor=executor)
            assert tree(tmp_path / f"{trial}") == tree(tmp_path / "whole")
            trial += 1
    finally:
        stop.set()
        thread.join()
    assert len(kills) >= 12  # the dead came back, each time
