"""What the world does to a long run: full and read-only disks, damaged files, signals. Nothing lost, nothing silently wrong."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import parasol as ps
from parasol.errors import FileError, ParasolWarning, WriteFailed
from parasol.reduction.snapshots import open_snapshots, solve_many

MUS = np.linspace(1.0, 2.0, 24)[:, None]
N_VALUES = 5000


def waves(mu):
    return np.sin(mu[0] * np.arange(float(N_VALUES)))


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


# ---- disks ---------------------------------------------------------------------------------------------------------
@pytest.fixture
def small_disk(tmp_path):
    """A file system of its own with 300 kB; where that may not be made, none."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300k", "none", str(folder)]
    try:
        made = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        made = False
    if not made:
        pytest.skip("may not mount")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def remount(folder, options):
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_full_disk_keeps_what_is_done_and_goes_on_when_there_is_room(small_disk, tmp_path, jobs):
    with pytest.raises(WriteFailed, match=r"cannot write .*No space left on device\. Finished chunks are kept") as said:
        solve_many(waves, MUS, store=small_disk / "s", chunk_size=2, jobs=jobs)
    assert "\n" not in str(said.value)
    kept = open_snapshots(small_disk / "s")
    assert 0 < len(kept) < len(MUS)
    np.testing.assert_array_equal(kept.solutions, [waves(mu) for mu in kept.mus])
    assert not [name for name in tree(small_disk / "s") if "/." in name or name.startswith(".") or name == "lock"]
    remount(small_disk, "size=4m")
    solve_many(waves, MUS, store=small_disk / "s", jobs=jobs)
    solve_many(waves, MUS, store=tmp_path / "s", chunk_size=2)
    assert tree(small_disk / "s") == tree(tmp_path / "s")


def test_a_read_only_disk_is_refused_before_the_first_solve_and_can_be_read(small_disk):
    calls = []

    def counted(mu):
        calls.append(1)
        return waves(mu)

    counted.fingerprint = "waves"
    solve_many(counted, MUS[:4], store=small_disk / "s", chunk_size=1)
    calls.clear()
    remount(small_disk, "ro")
    for folder in ("s", "new"):
        with pytest.raises(FileError, match=r"Read-only file system\. (Check its permissions|Choose another path)"):
            solve_many(counted, MUS, store=small_disk / folder)
    assert not calls
    assert len(open_snapshots(small_disk / "s").solutions) == 4


def test_a_disk_that_becomes_read_only_on_the_way_is_one_line(small_disk):
    def progress(fraction):
        if fraction > 0.5:
            remount(small_disk, "ro")

    with pytest.raises(WriteFailed, match=r"Read-only file system\. Finished chunks are kept"):
        solve_many(waves, MUS[:4], store=small_disk / "s", chunk_size=1, progress=progress)
    np.testing.assert_array_equal(open_snapshots(small_disk / "s").solutions, [waves(mu) for mu in MUS[:2]])


LIMITED = """
import resource, signal, sys
import numpy as np
from parasol.errors import ParasolError
from parasol.reduction.snapshots import solve_many

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def growing(mu):
    return mu[0] * np.ones(5000)

def progress(fraction):
    if fraction > 0.4:  # as a quota that is spent on the way
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, -1))

try:
    solve_many(growing, np.arange(10.0)[:, None], store=sys.argv[1], chunk_size=1, progress=progress)
except ParasolError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
def test_a_file_that_the_system_cuts_short_is_no_chunk(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "s")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("WriteFailed cannot write ")
    assert "File too large. Finished chunks are kept; run again to resume." in done.stdout
    assert done.stdout.count("\n") == 1
    kept = open_snapshots(tmp_path / "s")
    np.testing.assert_array_equal(kept.solutions, np.ones((4, 5000)) * np.arange(4.0)[:, None])


# ---- damage in the store of a learning -----------------------------------------------------------------------------
def test_learning_solves_again_what_is_damaged_and_learns_the_same(tmp_path):
    calls = []

    def bump(mu):
        calls.append(mu[0])
        return 1 / (mu[0] + np.linspace(0, 1, 30))

    options = {"parameters": {"a": (1.0, 2.0)}, "recipe": "polynomial", "fingerprint": "bump", "store": tmp_path}
    mus = np.linspace(1.1, 1.9, 5)[:, None]
    first = ps.learn(bump, 1e-3, **options)
    calls.clear()
    ps.learn(bump, 1e-3, **options)
    assert not calls
    victim = sorted(tmp_path.glob("*/*/solutions/c.*"))[3]
    raw = bytearray(victim.read_bytes())
    raw[5] ^= 1
    victim.write_bytes(raw)
    with pytest.warns(
        ParasolWarning, match=r"damaged: .*c\.\d+\.0: its checksum is wrong\. Its parameters are solved anew"
    ):
        again = ps.learn(bump, 1e-3, **options)
    assert len(calls) == 1
    assert again(mus).values.tobytes() == first(mus).values.tobytes()
    calls.clear()
    ps.learn(bump, 1e-3, **options)
    assert not calls


# ---- signals to a driver with a cluster ----------------------------------------------------------------------------
DRIVER = """
import os, sys, time
import numpy as np
from parasol.reduction.cluster import cluster
from parasol.reduction.snapshots import solve_many

def slow(mu):
    time.sleep(0.1)
    return np.ones(5000) * mu[0]

if __name__ == "__main__":
    with cluster("local", jobs=2) as executor:
        pids = executor._client.run(os.getpid)
        open(sys.argv[2], "w").write(" ".join(map(str, pids.values())))
        solve_many(slow, np.arange(200.0)[:, None], chunk_size=2, store=sys.argv[1], executor=executor)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_driver_that_is_stopped_leaves_whole_chunks_and_no_workers(tmp_path, how):
    (tmp_path / "driver.py").write_text(DRIVER)
    command = [sys.executable, str(tmp_path / "driver.py"), str(tmp_path / "s"), str(tmp_path / "pids")]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as child:
        wait_for(lambda: len(list(tmp_path.glob("s/receipts/[!.]*.json"))) >= 3)
        workers = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        child.send_signal(how)
        child.communicate(timeout=60)
    wait_for(lambda: not any(alive(pid) for pid in workers))
    found = open_snapshots(tmp_path / "s")
    assert len(found) >= 6
    assert len(found) + found.n_pending == 200
    np.testing.assert_array_equal(found.solutions, np.ones((1, 5000)) * found.mus)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_second_run_is_refused_before_its_first_solve(tmp_path):
    code = (
        "import sys, time, numpy as np; from parasol.reduction.snapshots import solve_many\n"
        "def slow(mu):\n    time.sleep(60)\n    return mu\n"
        "solve_many(slow, np.ones((3, 1)), store=sys.argv[1])"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "s")]) as first:
        try:
            wait_for((tmp_path / "s" / "lock").exists)
            wait_for((tmp_path / "s" / "mus" / "c.0.0").exists)
            before = tree(tmp_path / "s")
            with pytest.raises(
                FileError, match=rf"another run \(process {first.pid} on .*\) is writing to the snapshot"
            ):
                solve_many(lambda mu: os.abort(), np.ones((3, 1)), store=tmp_path / "s")
            assert tree(tmp_path / "s") == before
        finally:
            first.kill()
