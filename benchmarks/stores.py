"""Where to keep snapshots: Zarr, one HDF5 file, ours (Zarr's layout with receipts), or a folder of .npy files.

    python -m venv zarr-env && zarr-env/bin/pip install numpy h5py zarr
    PYTHONPATH=src zarr-env/bin/python benchmarks/stores.py --json stores.json

Write and read are the best of three, in MB/s, chunk by chunk. "lost", "torn" and "unreadable" count what 20 kills with
SIGKILL in the middle of writing leave: chunks that were announced as written but are not there or wrong, chunks that look finished
but are wrong, and stores that cannot be opened. "caught" is how many of 30 flipped bytes reading reports, "silent" how many change numbers
without a word. Without Zarr its rows are left out.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

import h5py
import numpy as np

from parasol.cache import disk
from parasol.reduction import chunks, store

CASES = {"2000 x 1036": (2000, 1036, 64), "100 x 328149": (100, 328149, 3)}
PRINT = "benchmark"


def block(case: str, index: int) -> np.ndarray:
    """The numbers of one chunk: noise, as the last digits of snapshots are."""
    n_samples, n_values, size = CASES[case]
    rows = min(size, n_samples - index * size)
    return np.random.default_rng(index).standard_normal((rows, n_values))


def n_chunks(case: str) -> int:
    """Number of chunks of a case."""
    n_samples, _, size = CASES[case]
    return -(-n_samples // size)


class Zarr:
    """Zarr version 3, one file per chunk, not compressed (the last digits of snapshots are noise)."""

    checks = False

    def create(self, path: Path, case: str):
        """A function that writes chunk number i."""
        import zarr
        from zarr.codecs import BytesCodec, Crc32cCodec

        n_samples, n_values, size = CASES[case]
        array = zarr.create_array(
            path,
            shape=(n_samples, n_values),
            chunks=(size, n_values),
            dtype="f8",
            serializer=BytesCodec(),
            compressors=[Crc32cCodec()] if self.checks else None,
        )

        def write(index: int, values: np.ndarray) -> None:
            array[index * size : index * size + len(values)] = values

        return write

    def present(self, path: Path, case: str) -> list[int]:
        """The chunks that look finished."""
        return [int(f.parent.name) for f in (path / "c").glob("*/0")]

    def reader(self, path: Path, case: str):
        """A function that reads chunk number i."""
        import zarr

        array, size = zarr.open_array(path, mode="r"), CASES[case][2]
        return lambda index: np.asarray(array[index * size : (index + 1) * size])


class ZarrChecked(Zarr):
    """The same with a CRC-32C at the end of each chunk."""

    checks = True


class OneHdf5:
    """One HDF5 file with Fletcher-32 sums, flushed after each chunk."""

    def create(self, path: Path, case: str):
        """A function that writes chunk number i."""
        n_samples, n_values, size = CASES[case]
        file = h5py.File(path, "w")  # with libver="latest" no killed file opens at all
        data = file.create_dataset("s", (n_samples, n_values), "f8", chunks=(size, n_values), fletcher32=True)

        def write(index: int, values: np.ndarray) -> None:
            data[index * size : index * size + len(values)] = values
            file.flush()
            if index == n_chunks(case) - 1:
                file.close()

        return write

    def present(self, path: Path, case: str) -> list[int]:
        """The chunks that look finished."""
        with h5py.File(path, "r") as file:
            data, size = file["s"], CASES[case][2]
            return [data.id.get_chunk_info(i).chunk_offset[0] // size for i in range(data.id.get_num_chunks())]

    def reader(self, path: Path, case: str):
        """A function that reads chunk number i."""
        file, size = h5py.File(path, "r"), CASES[case][2]
        return lambda index: file["s"][index * size : (index + 1) * size]


class Ours:
    """`parasol.reduction.store`: Zarr's layout with CRC-32C, a receipt with SHA-256, brought to the disk, then renamed."""

    def create(self, path: Path, case: str):
        """A function that writes chunk number i."""
        path.mkdir()
        n_samples, _, size = CASES[case]
        store.prepare(path, self.about(case), np.zeros((n_samples, 1)))

        def write(index: int, values: np.ndarray) -> None:
            n = len(values)
            chunk = chunks.Chunk(np.zeros((n, 1)), np.ones(n, bool), values, np.empty((n, 0)), ())
            store.add_chunk(path, index, PRINT, chunk, size)

        return write

    def about(self, case: str) -> store.Manifest:
        """What the store says it is about."""
        n_samples, _, size = CASES[case]
        return store.Manifest(PRINT, "noise", (), n_samples, 1, size, chunks.digest(np.zeros((n_samples, 1))), {})

    def present(self, path: Path, case: str) -> list[int]:
        """The chunks that look finished."""
        return list(store.stored_chunks(path, self.about(case)))

    def reader(self, path: Path, case: str):
        """A function that reads chunk number i."""
        stored_chunks = store.stored_chunks(path, self.about(case))
        return lambda index: stored_chunks[index].load().solutions


class OursNotFlushed(Ours):
    """The same without bringing each file to the disk, which Zarr and .npy do not do either."""

    def create(self, path: Path, case: str):
        """A function that writes chunk number i."""
        write = super().create(path, case)

        def write_only(index: int, values: np.ndarray) -> None:
            with mock.patch.object(disk, "_to_disk"):
                write(index, values)

        return write_only


class Npy:
    """A .npy file per chunk, written under its name at once."""

    def create(self, path: Path, case: str):
        """A function that writes chunk number i."""
        path.mkdir()
        return lambda index, values: np.save(path / f"{index}.npy", values, allow_pickle=False)

    def present(self, path: Path, case: str) -> list[int]:
        """The chunks that look finished."""
        return [int(f.stem) for f in path.glob("*.npy")]

    def reader(self, path: Path, case: str):
        """A function that reads chunk number i."""
        return lambda index: np.load(path / f"{index}.npy", allow_pickle=False)


KINDS = {c.__name__: c for c in (Zarr, ZarrChecked, OneHdf5, Ours, OursNotFlushed, Npy)}


def fill(kind: str, case: str, path: Path) -> None:
    """Write all chunks and say so after each: what a child does until it is killed."""
    write = KINDS[kind]().create(path, case)
    for index in range(n_chunks(case)):
        values = block(case, index)
        write(index, values)
        print(index, flush=True)


def times(kind: str, case: str, folder: Path) -> dict:
    """MB/s of writing and reading."""
    blocks = [block(case, i) for i in range(n_chunks(case))]
    megabytes = sum(b.nbytes for b in blocks) / 1e6
    write_seconds, read_seconds = [], []
    for repeat in range(3):
        path = folder / f"{kind}-{repeat}"
        start = time.perf_counter()
        write = KINDS[kind]().create(path, case)
        for index, values in enumerate(blocks):
            write(index, values)
        write_seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        read = KINDS[kind]().reader(path, case)
        read_blocks = [read(index) for index in range(len(blocks))]
        read_seconds.append(time.perf_counter() - start)
        assert all(np.array_equal(a, b) for a, b in zip(read_blocks, blocks, strict=True))
    n_files = sum(1 for f in path.rglob("*") if f.is_file()) if path.is_dir() else 1
    return {"write MB/s": megabytes / min(write_seconds), "read MB/s": megabytes / min(read_seconds), "files": n_files}


def right(kind: str, case: str, path: Path, index: int) -> bool | None:
    """Whether a chunk reads back as written; None where reading says that it is damaged."""
    try:
        return np.array_equal(KINDS[kind]().reader(path, case)(index), block(case, index))
    except Exception:
        return None


def kills(kind: str, case: str, folder: Path, n_kills: int = 20) -> dict:
    """What kills in the middle of writing leave behind."""
    choice, counts = random.Random(3), {"lost": 0, "torn": 0, "unreadable": 0}
    for attempt in range(n_kills):
        path = folder / f"killed-{attempt}"
        command = [sys.executable, __file__, "--fill", kind, case, str(path)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        target = choice.randrange(1, n_chunks(case) - 1)
        announced = []
        for line in child.stdout:
            announced.append(int(line))
            if len(announced) == target:
                time.sleep(choice.random() * (0.004 if case.startswith("2000") else 0.06))
                os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        try:
            present = KINDS[kind]().present(path, case)
        except Exception:
            counts["unreadable"] += 1
            counts["lost"] += len(announced)
            continue
        counts["lost"] += sum(right(kind, case, path, i) is not True for i in announced)
        counts["torn"] += sum(right(kind, case, path, i) is not True for i in present if i not in announced)
    return counts


def flips(kind: str, case: str, folder: Path, n_flips: int = 30) -> dict:
    """Whether reading notices a flipped byte."""
    path = folder / "flipped"
    with contextlib.redirect_stdout(None):
        fill(kind, case, path)
    files = sorted(f for f in path.rglob("*") if f.is_file()) if path.is_dir() else [path]
    choice, caught, silent = random.Random(4), 0, 0
    for _ in range(n_flips):
        file = choice.choices(files, [f.stat().st_size for f in files])[0]
        raw = bytearray(file.read_bytes())
        raw[choice.randrange(len(raw))] ^= 1 << choice.randrange(8)
        whole = file.read_bytes()
        file.write_bytes(raw)
        results = [right(kind, case, path, i) for i in range(n_chunks(case))]
        caught += None in results
        silent += False in results and None not in results
        file.write_bytes(whole)
    return {"caught": caught, "silent": silent}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fill:
        fill(options.fill[0], options.fill[1], Path(options.fill[2]))
        return
    try:
        import zarr

        kinds = list(KINDS)
        print(f"zarr {zarr.__version__}, h5py {h5py.__version__}, HDF5 {h5py.version.hdf5_version}")
    except ImportError:
        kinds = [k for k in KINDS if "Zarr" not in k]
    rows = []
    for case in CASES:
        for kind in kinds:
            folder = Path(tempfile.mkdtemp(prefix="stores-"))
            try:
                row = {"case": case, "kind": kind, **times(kind, case, folder)}
                if kind != "OursNotFlushed":
                    row |= kills(kind, case, folder)
                    row |= flips(kind, case, folder) if case.startswith("2000") else {}
            finally:
                shutil.rmtree(folder)
            rows.append(row)
            shown = [f"{k} {v:.0f}" for k, v in row.items() if not isinstance(v, str)]
            print(f"{case:14}{kind:16}{'  '.join(shown)}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
