import contextlib
import json
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from parasol.cache import disk
from parasol.checks import ParasolError, ParasolWarning
from parasol.errors import SolveFailed
from parasol.reduction import store
from parasol.reduction.chunks import Chunk, digest
from parasol.reduction.fingerprints import Parts
from parasol.reduction.snapshots import open_snapshots, solve_many
from parasol.reduction.zarr_files import crc32c

MUS = np.linspace(1.0, 2.0, 10)[:, None]


def waves(mu):
    if 1.4 < mu[0] < 1.5:
        raise ParasolError("no solution at a fold: größer")
    return np.sin(mu[0] * np.arange(7.0))


def fill(folder, mus=MUS, **options):
    with pytest.warns(UserWarning, match="1 of"):
        return solve_many(waves, mus, store=folder, chunk_size=4, **options)


def files(folder):
    folder = Path(folder)
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


# ---- what is on disk ------------------------------------------------------------------------------------------------
def test_zarr_xarray_and_dask_open_a_store_and_check_its_sums(tmp_path):
    import dask.array
    import xarray
    import zarr

    fill(tmp_path / "s")
    expected = np.array([np.full(7, np.nan) if 1.4 < mu < 1.5 else np.sin(mu * np.arange(7)) for mu in MUS[:, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # what is no array in the folder must not disturb anybody
        data = xarray.open_zarr(tmp_path / "s")
        np.testing.assert_array_equal(data.solutions, expected)
        np.testing.assert_array_equal(data.mus, MUS)
        assert data.solutions.dims == ("sample", "value")
        lazy = dask.array.from_zarr(str(tmp_path / "s"), "solutions")
        assert lazy.chunks == ((4, 4, 2), (7,))
        np.testing.assert_array_equal(lazy.compute(scheduler="sync"), expected)
    flip(tmp_path / "s" / "solutions" / "c.1.0")
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_array(tmp_path / "s" / "solutions", mode="r")[:]


def test_a_store_of_ghosts_opens_too(tmp_path):
    import xarray

    chunk = Chunk(MUS[:3], np.array([True, False, True]), np.ones((2, 5)), np.arange(4.0).reshape(2, 2), ("no",))
    about = store.Manifest("f", "s", ("a",), 3, 1, 4, digest(MUS[:3]), {})
    store.prepare(tmp_path, about, MUS[:3])
    stored = store.add_chunk(tmp_path, 0, "f", chunk, 4)
    np.testing.assert_array_equal(stored.load().hidden, chunk.hidden)
    hidden = xarray.open_zarr(tmp_path).hidden
    np.testing.assert_array_equal(hidden, [[0, 1], [np.nan, np.nan], [2, 3]])
    assert hidden.dims == ("sample", "ghost")


def flip(path, place=3):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 4
    path.write_bytes(raw)


def test_crc32c_is_that_of_others():
    from google_crc32c import value

    choice = random.Random(4)
    for n in [*range(70), 4096, 20000, 16387, 400001]:
        raw = choice.randbytes(n)
        assert crc32c(raw) == value(raw)


def test_bytes_do_not_depend_on_when_or_by_whom(tmp_path):
    fill(tmp_path / "a")
    time.sleep(1.1)  # HDF5 would write times in whole seconds
    fill(tmp_path / "b", jobs=2)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    names = [f"{kind}/{n}" for kind in ("mus", "solutions") for n in ("c.0.0", "zarr.json")]
    names += ["solutions/c.1.0", "solutions/c.2.0", "manifest.json", "zarr.json"]
    assert sorted(files(tmp_path / "a")) == sorted(names + [f"receipts/00000{i}.json" for i in range(3)])


def test_reading_gives_back_what_was_written(tmp_path):
    written, read = fill(tmp_path / "s"), open_snapshots(tmp_path / "s")
    assert read.n_pending == 0
    np.testing.assert_array_equal(read.solutions, written.solutions)
    np.testing.assert_array_equal(read.mus, np.delete(MUS, 4, axis=0))
    assert [(f.index, f.mu[0], f.reason) for f in read.failures] == [(4, MUS[4, 0], "no solution at a fold: größer")]
    assert [len(block) for block in read.blocks()] == [4, 3, 2]
    assert read.fingerprint == written.fingerprint


# ---- damage ---------------------------------------------------------------------------------------------------------
def test_every_flipped_byte_is_seen(tmp_path):
    folder = tmp_path / "s"
    fill(folder)
    choice = random.Random(1)
    whole = {name: raw for name, raw in files(folder).items() if not name.endswith("zarr.json")}
    for name, raw in whole.items():
        places = range(len(raw)) if name == "manifest.json" else choice.sample(range(len(raw)), 60)
        for place in places:
            bad = bytearray(raw)
            bad[place] ^= 1 << choice.randrange(8)
            (folder / name).write_bytes(bad)
            # white space between entries became another, or the sum for others is wrong
            if (name.endswith(".json") and same_json(bad, raw)) or (name == "mus/c.0.0" and place >= len(raw) - 4):
                continue
            with pytest.raises(ParasolError, match=re.escape(str(folder))):
                _ = open_snapshots(folder).solutions
        (folder / name).write_bytes(raw)
    assert len(open_snapshots(folder).solutions) == 9


def same_json(one, other):
    try:
        return json.loads(one) == json.loads(other)
    except ValueError:
        return False


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: (f / "manifest.json").write_text('{"format"'), "manifest.json cannot be read"),
        (lambda f: (f / "manifest.json").write_text("[1]"), "is about something else"),
        (lambda f: (f / "manifest.json").write_bytes(b"\xff\xfe"), "manifest.json cannot be read"),
        (lambda f: (f / "manifest.json").unlink(), "has no manifest.json"),
        (lambda f: newer(f / "manifest.json"), "has version 3, this parasol reads up to 2. Update parasol"),
    ],
)
def test_a_damaged_or_foreign_store_is_refused_and_left_alone(tmp_path, spoil, reason):
    folder = tmp_path / "s"
    fill(folder)
    spoil(folder)
    before = files(folder)
    with pytest.raises(ParasolError, match=reason):
        open_snapshots(folder)
    with pytest.raises(ParasolError, match=reason):
        solve_many(waves, MUS, store=folder)
    assert files(folder) == before


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda f: flip(f / "solutions" / "c.1.0"), "c.1.0: its checksum is wrong"),
        (lambda f: os.truncate(f / "solutions" / "c.1.0", 30), "c.1.0: its checksum is wrong"),
        (lambda f: (f / "solutions" / "c.1.0").unlink(), "c.1.0: it cannot be read"),
        (lambda f: (f / "solutions" / "c.0.0").rename(f / "solutions" / "c.1.0"), "c.0.0: it cannot be read"),
        (lambda f: (f / "receipts" / "000000.json").rename(f / "receipts" / "000001.json"), "another store or place"),
        (lambda f: (f / "receipts" / "000001.json").write_text("{}"), "000001.json: it cannot be read"),
        (lambda f: flip(f / "mus" / "c.0.0"), "its parameters are not those of the manifest"),
        (lambda f: (f / "mus" / "c.0.0").unlink(), "mus/c.0.0: it cannot be read"),
    ],
)
def test_a_damaged_chunk_is_refused_by_readers_and_solved_again_by_a_run(tmp_path, spoil, reason):
    folder, calls = tmp_path / "s", []

    def counted(mu):
        calls.append(mu[0])
        return waves(mu)

    counted.fingerprint = "waves"
    with pytest.warns(UserWarning, match="1 of"):
        solve_many(counted, MUS, store=folder, chunk_size=4)
    whole = files(folder)
    calls.clear()
    spoil(folder)
    with pytest.raises(ParasolError, match=reason):
        _ = open_snapshots(folder).solutions
    with pytest.warns(ParasolWarning) as said:
        solve_many(counted, MUS, store=folder)
    assert files(folder) == whole
    about_mus = "mus" in reason or "parameters" in reason  # which the run knows
    assert any("damaged" in str(w.message) or "another" in str(w.message) for w in said) != about_mus
    assert set(calls) <= set() if about_mus else set(calls) <= set(MUS[:8, 0])


def line(mu):
    return mu * np.arange(3.0)


def test_a_chunk_of_other_parameters_is_refused(tmp_path):
    for name, mus in (("a", MUS), ("b", MUS + 1)):
        solve_many(line, mus, store=tmp_path / name, chunk_size=4)
    for path in ("receipts/000001.json", "solutions/c.1.0"):
        shutil.copy(tmp_path / "b" / path, tmp_path / "a" / path)
    with pytest.raises(ParasolError, match=r"000001.json: its parameters are not those of the manifest"):
        open_snapshots(tmp_path / "a")
    with pytest.warns(ParasolWarning, match="damaged"):
        again = solve_many(line, MUS, store=tmp_path / "a")
    np.testing.assert_array_equal(again.solutions, MUS * np.arange(3.0))


def test_a_run_that_is_stopped_between_rows_and_receipt_of_a_longer_chunk_leaves_no_damage(tmp_path, monkeypatch):
    def stopped(path, content):
        raise KeyboardInterrupt

    solve_many(line, MUS[:2], store=tmp_path / "s", chunk_size=4)
    with monkeypatch.context() as patch:
        patch.setattr("parasol.reduction.chunks.write_json", stopped)
        with pytest.raises(KeyboardInterrupt):
            solve_many(line, MUS[:4], store=tmp_path / "s")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = solve_many(line, MUS[:4], store=tmp_path / "s")
    np.testing.assert_array_equal(again.solutions, MUS[:4] * np.arange(3.0))


def newer(path):
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 3}))


OLD = Path(__file__).parents[1] / "kept_files" / "0.2.0.dev0" / "snapshots"


def test_a_run_goes_on_with_a_store_of_version_1_and_renews_it(tmp_path, monkeypatch):
    shutil.copytree(OLD, tmp_path / "s")
    before = open_snapshots(tmp_path / "s")
    about, n = store.read_manifest(tmp_path / "s"), len(before)
    mus = np.vstack([before.mus, before.mus[:1] + 0.125])

    class Solver:  # known by what the store says
        n_values = before.n_values

        def solve(self, mu):
            assert np.array_equal(mu, mus[n])
            return np.zeros(self.n_values)

    class Same(Parts):
        fingerprint = about.fingerprint

    parts = Same(about.parts)
    with pytest.MonkeyPatch.context() as patch:  # killed before the manifest is written: the old store is whole
        patch.setattr(store, "write_manifest", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            solve_many(Solver(), mus, store=tmp_path / "s", fingerprint=parts)
    np.testing.assert_array_equal(open_snapshots(tmp_path / "s").solutions, before.solutions)
    renewed = solve_many(Solver(), mus, store=tmp_path / "s", fingerprint=parts)
    np.testing.assert_array_equal(renewed.solutions[:n], before.solutions)
    assert not list((tmp_path / "s").glob("*.h5"))
    assert store.read_manifest(tmp_path / "s").version == 2
    np.testing.assert_array_equal(open_snapshots(tmp_path / "s").solutions, renewed.solutions)


def test_places_that_are_no_store_are_refused(tmp_path):
    with pytest.raises(ParasolError, match="there is no snapshot store"):
        open_snapshots(tmp_path / "none")
    (tmp_path / "letters.txt").write_text("dear")
    for call in (open_snapshots, lambda path: solve_many(waves, MUS, store=path)):
        with pytest.raises(ParasolError, match="is not a snapshot store"):
            call(tmp_path)
    with pytest.raises(ParasolError, match="cannot make or open the folder"):
        solve_many(waves, MUS, store=tmp_path / "letters.txt")
    assert [p.name for p in tmp_path.iterdir()] == ["letters.txt"]


def test_another_problem_or_other_parameters_are_refused(tmp_path):
    fill(tmp_path / "s")
    with pytest.raises(ParasolError, match=r"belongs to another problem .*: waves, this is .*lambda"):
        solve_many(lambda mu: np.zeros(7), MUS, store=tmp_path / "s")
    for other in (MUS + 0.1, MUS[1:9], np.hstack([MUS, MUS])):
        with pytest.raises(ParasolError, match="begun for 10 other parameters"):
            solve_many(waves, other, store=tmp_path / "s")


def test_a_store_of_version_0_1_0_is_read_but_not_continued(tmp_path):
    folder = tmp_path / "s"
    fill(folder)
    content = json.loads((folder / "manifest.json").read_text())
    del content["parts"], content["sha256"]  # as version 0.1.0 wrote it
    content["sha256"] = store.checksum(content)
    (folder / "manifest.json").write_text(json.dumps(content))
    before = files(folder)
    assert len(open_snapshots(folder)) == 9
    with pytest.raises(
        ParasolError, match=r"written by an earlier version of parasol, whose solves are not reused\. .*open_snap"
    ):
        solve_many(waves, MUS, store=folder)
    assert files(folder) == before


class Tally:
    """A solver that changes while it works."""

    def __init__(self):
        self.calls = 0

    def solve(self, mu):
        self.calls += 1
        return mu * np.arange(3.0)


def test_the_fingerprint_is_an_argument_and_a_refusal_says_what_differs(tmp_path):
    solver = Tally()
    solve_many(solver, MUS, store=tmp_path / "a")
    with pytest.raises(ParasolError, match=r"another problem.*: Tally, this is Tally; attribute calls differs"):
        solve_many(solver, MUS, store=tmp_path / "a")
    solve_many(solver, MUS, store=tmp_path / "b", fingerprint="ramp")
    solve_many(solver, MUS, store=tmp_path / "b", fingerprint="ramp")
    assert solver.calls == 20
    with pytest.raises(ParasolError, match="fingerprint differs"):
        solve_many(solver, MUS, store=tmp_path / "b", fingerprint="other")


def test_without_a_store_any_solver_will_do(tmp_path):
    solver = Tally()
    solver.lock = threading.Lock()
    assert len(solve_many(solver, MUS)) == 10
    with pytest.raises(ParasolError, match=r"a lock in attribute lock cannot be hashed .*fingerprint="):
        solve_many(solver, MUS, store=tmp_path / "s")
    solve_many(solver, MUS, store=tmp_path / "s", fingerprint=1)


def test_fewer_parameters_than_the_store_has_are_recognised(tmp_path):
    fill(tmp_path / "s")
    for n in (2, 4, 9):
        with pytest.raises(
            ParasolError, match=rf"the {n} parameters given are the first ones of the 10 .*open_snapshots"
        ):
            solve_many(waves, MUS[:n], store=tmp_path / "s")


# ---- more parameters later ------------------------------------------------------------------------------------------
def test_a_store_is_extended_and_equals_one_made_at_once(tmp_path):
    more = np.vstack([MUS, MUS[:6] + 2])
    first = fill(tmp_path / "a")
    calls = []

    def counting(mu):
        calls.append(mu[0])
        return waves(mu)

    counting.fingerprint = "waves"
    with pytest.warns(UserWarning, match="1 of 10"):
        solve_many(counting, MUS, store=tmp_path / "c", chunk_size=4)
    calls.clear()
    with pytest.warns(UserWarning, match="1 of 16"):
        solve_many(counting, more, store=tmp_path / "c")
    np.testing.assert_array_equal(
        calls, more[10:, 0]
    )  # the two rows of the last chunk that were there are not solved again
    assert len(fill(tmp_path / "a", more)) == len(first) + 6
    fill(tmp_path / "b", more)
    assert files(tmp_path / "a") == files(tmp_path / "b")


# ---- one run at a time ----------------------------------------------------------------------------------------------
@pytest.fixture(params=["links", "no links"])
def disks(request, monkeypatch):
    """File systems with links and without."""

    def refuses(source, target):
        raise PermissionError(1, "Operation not permitted")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuses)


@pytest.mark.usefixtures("disks")
def test_a_second_run_is_refused_while_the_first_lives(tmp_path):
    with store.claim(tmp_path / "s"), pytest.raises(ParasolError, match=rf"another run \(process {os.getpid()} on"):
        solve_many(waves, MUS, store=tmp_path / "s")
    fill(tmp_path / "s")
    assert not (tmp_path / "s" / "lock").exists()


@pytest.mark.usefixtures("disks")
def test_the_lock_and_the_litter_of_a_dead_run_are_cleared(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from parasol.reduction import store\n"
        "with store.claim(Path(sys.argv[1])):\n"
        "    Path(sys.argv[1], '.manifest.1-ab.part.json').write_text('torn')\n"
        "    os.kill(os.getpid(), 9)"
    )
    folder = tmp_path / "s"
    subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert sorted(files(folder)) == [".manifest.1-ab.part.json", "lock"]
    fill(folder)
    (folder / "solutions" / ".c.0.1-ab.part.0").write_text("torn")
    fill(folder)
    assert len(files(folder)) == 11
    holder = {"pid": os.getpid(), "started": "1", "host": json.loads(_lock_text(tmp_path))["host"]}
    (folder / "lock").write_text(json.dumps(holder))  # our number, but of an earlier process
    fill(folder)
    (folder / "lock").write_text(json.dumps({**holder, "host": "elsewhere"}))
    with pytest.raises(ParasolError, match=r"on elsewhere.*delete .*lock"):
        solve_many(waves, MUS, store=folder)
    (folder / "lock").write_text("")  # a run that is about to write it, or was ended before
    with pytest.raises(ParasolError, match=r"on an unknown machine.*delete .*lock"):
        solve_many(waves, MUS, store=folder)


def about(pid):
    return json.dumps({"pid": pid, "started": disk._started(pid), "host": disk._host()})


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_that_has_ended_and_is_not_waited_for_holds_no_lock(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as child:
        (tmp_path / "lock").write_text(about(child.pid))
        with pytest.raises(ParasolError, match=f"process {child.pid} on"), disk.claim(tmp_path):
            pass
        child.kill()
        while (
            disk._alive(child.pid) and Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
        ):
            time.sleep(0.01)
        with disk.claim(tmp_path):
            assert str(os.getpid()) in (tmp_path / "lock").read_text()


@pytest.mark.usefixtures("disks")
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_lock_that_another_run_takes_meanwhile_is_given_back(tmp_path, monkeypatch):
    lock, rename, others = tmp_path / "lock", os.rename, about(os.getppid())
    lock.write_text(json.dumps({"pid": 2**22 + 1, "started": "1", "host": disk._host()}))  # of a dead one

    def late(source, target):
        lock.write_text(others)
        rename(source, target)

    monkeypatch.setattr(os, "rename", late)
    with pytest.raises(ParasolError, match=f"process {os.getppid()} on"), disk.claim(tmp_path):
        pass
    assert lock.read_text() == others


def test_a_process_of_another_container_is_not_taken_for_a_dead_one(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "_NO_CONTAINER", 0)  # as if this were one
    with store.claim(tmp_path / "s"):
        monkeypatch.undo()
        holder = json.loads((tmp_path / "s" / "lock").read_text())
        assert " in container " in holder["host"]
        # its number means nothing here
        (tmp_path / "s" / "lock").write_text(json.dumps({**holder, "pid": 2**22 + 1}))
        with pytest.raises(ParasolError, match=r"another run \(process .* in container"):
            solve_many(waves, MUS, store=tmp_path / "s")


def _lock_text(tmp_path):
    with store.claim(tmp_path / "other"):
        return (tmp_path / "other" / "lock").read_text()


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "_to_disk", full)
    with pytest.raises(ParasolError, match=r"cannot write .*No space left on device\. Finished chunks are kept"):
        solve_many(waves, MUS, store=tmp_path / "s")
    assert list(files(tmp_path / "s")) == []


# ---- kill -9 --------------------------------------------------------------------------------------------------------
MAKE = """
import parasol as ps
from parasol.reduction.snapshots import solve_many

problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))

class Logged:  # one line for every solve, straight to the file
    n_values, fingerprint = 300, "helmholtz"

    def __init__(self, log):
        self.log = log

    def solve(self, mu):
        with open(self.log, "a") as file:
            file.write(f"{mu[0]!r} {mu[1]!r}\\n")
        return model.solve(mu)

def run(folder, log, jobs):
    solve_many(Logged(log), model.sample(200), store=folder, chunk_size=8, jobs=jobs)
"""
FORK = multiprocessing.get_context("fork" if sys.platform == "linux" else None)


def lead_group_and_run(run, *arguments):
    os.setsid()
    run(*arguments)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="forks, to spend the time on kills")
def test_killed_at_twenty_random_moments_the_store_is_the_same(tmp_path):
    names: dict = {}
    exec(MAKE, names)
    run, solved = names["run"], {tuple(mu) for mu in names["model"].sample(200)}
    began = time.perf_counter()
    run(tmp_path / "whole", tmp_path / "log", 1)
    seconds = time.perf_counter() - began
    expected, choice, n_kills, trial = files(tmp_path / "whole"), random.Random(9), 0, 0
    while n_kills < 20 or trial < 3:
        trial += 1
        folder, log, jobs, kills = tmp_path / f"killed-{trial}", tmp_path / f"log-{trial}", 1 + trial % 2, 0
        finished = False
        while not finished:
            # not what a kill left half written, whose name begins with a dot
            done = {f"receipts/{path.name}" for path in folder.glob("receipts/0*.json")}
            child = FORK.Process(target=lead_group_and_run, args=(run, folder, log, jobs))
            child.start()
            # the last one of a store is left alone
            child.join(choice.random() * 0.3 * seconds if kills < 8 and n_kills < 20 else 60)
            finished = child.exitcode == 0
            if not finished:
                assert child.exitcode is None
                kill_group(child.pid)
                child.join()
                kills, n_kills = kills + 1, n_kills + 1
            now = files(folder) if folder.exists() else {}
            assert done <= set(now)  # nothing lost
            torn = [n for n in now if n.startswith(("receipts/0", "solutions/c")) and now[n] != expected[n]]
            assert not torn
        assert files(folder) == expected
        counts = Counter(log.read_text().splitlines())
        assert {tuple(map(float, re.findall(r"[-\d.e]+", line.replace("np.float64", "")))) for line in counts} == solved
        # solved again: only what was in the air, a chunk of 8 per worker and kill
        assert sum(counts.values()) - 200 <= 8 * jobs * kills
    assert n_kills >= 20


def kill_group(pid):
    for _ in range(200):  # the child may not lead its group yet
        try:
            os.killpg(pid, signal.SIGKILL)
            return
        except ProcessLookupError:
            time.sleep(0.005)
    raise AssertionError("no such group")


@pytest.mark.slow
def test_a_fresh_interpreter_resumes_what_another_left(tmp_path):
    names: dict = {}
    exec(MAKE, names)
    solve_many(names["model"], names["model"].sample(50), store=tmp_path / "whole", chunk_size=8)
    code = MAKE + (
        "import os, sys\n"
        "def progress(fraction):\n"
        "    if fraction > float(sys.argv[2]):\n"
        "        os.kill(os.getpid(), 9)\n"
        "solve_many(model, model.sample(50), store=sys.argv[1], chunk_size=8, progress=progress)\n"
    )
    for seed, (limit, ending) in enumerate([("0.5", -signal.SIGKILL), ("1", 0)]):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed)}  # the order of sets must not reach the fingerprint
        command = [sys.executable, "-c", code, str(tmp_path / "killed"), limit]
        assert subprocess.run(command, check=False, env=environment).returncode == ending
        assert open_snapshots(tmp_path / "killed").n_pending == (50 - 3 * 8 if ending else 0)
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


class Reading:
    """A solver that reads a file, of which its code says nothing."""

    def __init__(self, path):
        self.path = str(path)

    def solve(self, mu):
        values = mu[0] * np.loadtxt(self.path)
        if not np.all(np.isfinite(values)):
            raise SolveFailed("no number")
        return values


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ([1.0, 2.0, 3.0], ""),
        ([1.0, 2.0, 3.0 + 1e-7], ""),  # rounding
        ([1.0, 2.0, 3.01], r"at \[1\.\] they are 0\.0027 apart"),
        ([1.0, 2.0], "has 2 values now, 3 are kept"),
        ([1.0, 2.0, np.nan], "fails now: no number"),
    ],
)
def test_a_file_that_a_solver_reads_may_have_changed(tmp_path, then, said):
    np.savetxt(tmp_path / "data", [1.0, 2.0, 3.0])
    solver, mus = Reading(tmp_path / "data"), [[0.0], [1.0], [2.0]]  # the first tells nothing: its solution is zero
    solve_many(solver, mus, store=tmp_path / "runs")
    solve_many(solver, mus, store=tmp_path / "vouched", fingerprint="data of May")
    np.savetxt(tmp_path / "data", then)
    for more in (mus, [*mus, [3.0]]):
        with pytest.raises(ParasolError, match=said) if said else contextlib.nullcontext():
            assert len(solve_many(solver, more, store=tmp_path / "runs")) == len(more)
    kept = solve_many(solver, mus, store=tmp_path / "vouched", fingerprint="data of May")
    assert np.array_equal(kept.solutions, [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0], [2.0, 4.0, 6.0]])
    assert np.array_equal(open_snapshots(tmp_path / "runs").solutions[:3], kept.solutions)  # nothing is lost
