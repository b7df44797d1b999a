"""Answers to many parameters in a file: the same numbers, flat memory, and nothing half written."""

import json
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

import parasol as ps
from parasol.cli import app
from parasol.delivery import inputs, streaming
from parasol.errors import InputError, WriteFailed

N_VALUES = 400


@pytest.fixture(scope="module")
def surrogate():
    mus = np.random.default_rng(0).uniform([1, 0], [2, 1], (60, 2))
    x = np.linspace(0, 1, N_VALUES)
    values = np.array([1 / (a + (x - b) ** 2) for a, b in mus])
    results = ps.Results({"a": mus[:, 0], "b": mus[:, 1]}, values)
    return ps.learn(data=results, tolerance=1e-2, recipe="polynomial", parameters={"a": (1, 2), "b": (0, 1)})


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(streaming, "_BLOCK", 20 * N_VALUES)


def sampled(n):
    return np.random.default_rng(1).uniform([1, 0], [2, 1], (n, 2))


@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [0, 1, 20, 21, 333])
def test_the_file_holds_what_the_surrogate_answers(tmp_path, surrogate, small_blocks, n, dtype, jobs):
    mus, told = sampled(n), []
    written = ps.write_answers(surrogate, mus, tmp_path / "u.npy", dtype=dtype, jobs=jobs, progress=told.append)
    found = np.load(written.path)
    assert found.dtype == dtype
    assert found.shape == (written.n_samples, written.n_values) == (n, N_VALUES)
    np.testing.assert_allclose(found, surrogate(mus, dtype=dtype).values, rtol=20 * np.finfo(dtype).eps)
    assert told == sorted(told)
    assert not n or told[-1] == 1
    assert written.rows()["answers"] == f"{n}, of 400 values each"


def test_memory_is_that_of_some_blocks(tmp_path, surrogate, small_blocks):
    mus = sampled(12_000)  # 38 MB
    ps.write_answers(surrogate, mus[:100], tmp_path / "u.npy")
    tracemalloc.start()
    try:
        ps.write_answers(surrogate, mus, tmp_path / "u.npy", jobs=2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "u.npy").stat().st_size > 38e6
    assert peak < 3e6


def test_what_lies_outside_is_refused_before_anything_is_written_or_counted(tmp_path, surrogate, monkeypatch):
    mus = sampled(50)
    mus[40:43, 0] = 2.5
    monkeypatch.setattr(streaming, "write_rows", lambda *given: pytest.fail("began"))
    with pytest.raises(InputError, match=r"a=2\.5 is outside its range"):
        ps.write_answers(surrogate, mus, tmp_path / "u.npy")
    monkeypatch.undo()
    assert ps.write_answers(surrogate, mus, tmp_path / "u.npy", extrapolate=True).n_extrapolated == 3
    mus[7, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        ps.write_answers(surrogate, mus, tmp_path / "v.npy", extrapolate=True)
    with pytest.raises(InputError, match="expected"):
        ps.write_answers(surrogate, np.ones((4, 3)), tmp_path / "v.npy")
    with pytest.raises(InputError, match=r"suffix '\.csv'"):
        ps.write_answers(surrogate, mus, tmp_path / "v.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["u.npy"]


def test_a_disk_without_room_is_refused_before_the_work(tmp_path, surrogate, monkeypatch):
    monkeypatch.setattr(streaming.shutil, "disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(WriteFailed, match=r"u\.npy': it takes 0\.00032 GB, and 1e-06 GB are free"):
        ps.write_answers(surrogate, sampled(100), tmp_path / "u.npy")
    assert not list(tmp_path.iterdir())


def test_what_fails_on_the_way_leaves_the_old_file_alone(tmp_path, surrogate, small_blocks, monkeypatch):
    (tmp_path / "u.npy").write_text("old")
    usual, count = streaming.os.pwrite, []

    def full(*given):
        count.append(1)
        if len(count) > 5:
            raise OSError(28, "No space left on device")
        return usual(*given)

    monkeypatch.setattr(streaming.os, "pwrite", full)
    with pytest.raises(WriteFailed, match=r"u\.npy': No space left on device"):
        ps.write_answers(surrogate, sampled(500), tmp_path / "u.npy", jobs=2)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("u.npy", "old")]


def test_the_system_may_take_less_than_all(tmp_path, surrogate, monkeypatch):
    usual = streaming.os.pwrite
    monkeypatch.setattr(streaming.os, "pwrite", lambda fd, raw, place: usual(fd, raw[:1000], place))
    mus = sampled(30)
    ps.write_answers(surrogate, mus, tmp_path / "u.npy")
    np.testing.assert_allclose(np.load(tmp_path / "u.npy"), surrogate(mus).values, rtol=1e-13)


def test_threads_do_not_compute_into_what_another_writes(tmp_path, surrogate, small_blocks, monkeypatch):
    usual = streaming.os.pwrite

    def late(fd, raw, place):
        time.sleep(0.005)  # others compute meanwhile
        return usual(fd, raw, place)

    monkeypatch.setattr(streaming.os, "pwrite", late)
    mus = sampled(200)
    ps.write_answers(surrogate, mus, tmp_path / "u.npy", jobs=4)
    np.testing.assert_allclose(np.load(tmp_path / "u.npy"), surrogate(mus).values, rtol=1e-13)


def test_many_parameters_of_the_command_line_are_streamed(tmp_path, surrogate, monkeypatch):
    import importlib

    command = importlib.import_module("parasol.cli.predict")
    monkeypatch.setattr(command, "_AT_ONCE", 1000)
    monkeypatch.setattr(inputs, "_MAPPED", 0)
    model, mus = ps.save(surrogate, tmp_path / "m.parasol"), sampled(40)
    np.save(tmp_path / "mus.npy", mus)
    words = ["predict", str(model), "--mus", str(tmp_path / "mus.npy"), "--out"]
    result = CliRunner().invoke(app, [*words, str(tmp_path / "u.npy"), "--json", str(tmp_path / "u.json")])
    assert result.exit_code == 0, result.output
    assert "40, of 400 values each" in result.stdout
    np.testing.assert_allclose(np.load(tmp_path / "u.npy"), surrogate(mus).values, rtol=1e-13)
    assert json.loads((tmp_path / "u.json").read_text())["n_samples"] == 40
    result = CliRunner().invoke(app, [*words, str(tmp_path / "u.csv")])
    assert result.exit_code == 2
    assert "40 answers of 400 values are 0.00013 GB. Write these to one .npy" in result.stderr
    assert not (tmp_path / "u.csv").exists()
