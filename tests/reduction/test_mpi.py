"""The offline phase by mpi4py, in three real ranks; runs where mpi4py and an MPI are installed (`pip install mpi4py mpich`)."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import parasol as ps
from mpi4py.futures import MPIPoolExecutor

if __name__ == "__main__":
    problem = ps.load_problem("helmholtz")
    model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
    mus = ps.sample(model, 24)
    with MPIPoolExecutor() as executor:
        snapshots = ps.solve_many(model, mus, store="there", chunk_size=4, executor=executor)
        there = ps.pod(snapshots, n_modes=6, executor=executor)
    here = ps.solve_many(model, mus, store="here", chunk_size=4)
    print(abs(ps.pod(here, n_modes=6).modes - there.modes).max())
"""


def tree(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(Path(folder).rglob("*")) if p.is_file()}


@pytest.mark.slow
def test_ranks_of_mpi_solve_and_decompose_as_one_process_does(tmp_path):
    pytest.importorskip("mpi4py")
    mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    if mpiexec is None:
        pytest.skip("no mpiexec")
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1e-6
    assert tree(tmp_path / "there") == tree(tmp_path / "here")
    assert len(tree(tmp_path / "there")) > 12
