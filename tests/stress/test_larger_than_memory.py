"""Snapshots that are larger than the memory allowed: solved, decomposed, projected and fitted from the store."""

import json
import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import parasol as ps
from parasol.reduction import pod as pod_module
from parasol.reduction import snapshots as snapshots_module
from parasol.reduction import sources
from parasol.runtime.products import MatrixProduct

CODE = """
import json, sys
from pathlib import Path
import numpy as np
import parasol as ps

n_nodes, n_snapshots, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
x = np.linspace(0, 1, n_nodes)

def ridge(mu):
    return 1 / (0.1 + mu[0] + (x - mu[1]) ** 2)

ridge.n_values = n_nodes
mus = np.random.default_rng(0).uniform([0.2, 0.3], [1.0, 0.7], (n_snapshots, 2))
snapshots = ps.solve_many(ridge, mus, store=folder)
basis = ps.pod(snapshots, tolerance=1e-5)
surrogate = ps.fit(snapshots.between(0, n_snapshots - 50), "polynomial", basis=basis)
error = ps.accuracy(surrogate, snapshots.between(n_snapshots - 50, n_snapshots)).errors.max()
lines = Path("/proc/self/status").read_text().splitlines()  # what `resource` says counts the parent
peak = 1024 * int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))
print(json.dumps({"peak": peak, "error": error, "modes": basis.n_modes, "method": basis.method}))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_three_gigabytes_of_snapshots_within_one_and_a_half(tmp_path):
    command = [sys.executable, "-c", CODE, "200000", "2000", str(tmp_path / "s")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    told = json.loads(done.stdout)
    print(told)
    assert told["peak"] < 1.5e9
    assert told["method"] == "incremental"
    assert told["error"] < 1e-3


@pytest.mark.parametrize("weighted", [False, True])
def test_memory_is_that_of_a_few_chunks(tmp_path, monkeypatch, weighted):
    n_nodes, n_snapshots = 12_000, 256  # 25 MB
    x = np.linspace(0, 1, n_nodes)

    def ridge(mu):
        return 1 / (0.3 + mu[0] + (x - mu[1]) ** 2)

    ridge.n_values = n_nodes
    monkeypatch.setattr(snapshots_module, "_CHUNK_BYTES", 1e6)
    monkeypatch.setattr(sources, "IN_MEMORY", 2**18)
    for module in (sources, pod_module):
        monkeypatch.setattr(module, "BLOCK", 2**17)
    mus = np.random.default_rng(0).uniform([0.5, 0.4], [1.0, 0.6], (n_snapshots, 2))
    product = None
    if weighted:
        import scipy.sparse

        diagonals = [np.full(n_nodes, 2 / 3), np.full(n_nodes - 1, 1 / 6), np.full(n_nodes - 1, 1 / 6)]
        matrix = scipy.sparse.diags(diagonals, [0, 1, -1]).tocsr()
        product = MatrixProduct(matrix.indptr, matrix.indices, matrix.data)

    def all_of_it(mus, folder):
        snapshots = ps.solve_many(ridge, mus, store=folder)
        basis = ps.pod(snapshots, tolerance=1e-5, weights=product)
        surrogate = ps.fit(snapshots, "polynomial", basis=basis)
        return snapshots, basis, ps.accuracy(surrogate, snapshots).errors

    all_of_it(mus[:40], tmp_path / "before")  # modules that are imported on the way are not counted
    tracemalloc.start()
    try:
        snapshots, basis, errors = all_of_it(mus, tmp_path / "s")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert basis.method == "incremental"
    # a matrix has factors of its own, as large whatever the number of snapshots
    assert peak < (0.9 if weighted else 0.6) * 8 * n_nodes * n_snapshots, peak
    assert np.max(errors) < 1e-3
    exact = ps.pod(snapshots.solutions, tolerance=1e-5, weights=product)
    assert exact.n_modes == basis.n_modes
    np.testing.assert_allclose(
        basis.singular_values[: basis.n_modes], exact.singular_values[: basis.n_modes], rtol=1e-6
    )
