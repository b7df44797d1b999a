"""
From laptop to cluster
======================

Full solves begin in one process and go on with the workers of a Dask cluster, one of which dies. The numbers are the same to the last bit.
"""

# %%
# A small model and 64 parameters. With a store every finished chunk is on disk at once. Here the laptop solves the first 16.

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import parasol as ps

temporary = tempfile.TemporaryDirectory()
runs = Path(temporary.name)  # on a cluster: a folder that all machines see
problem = ps.load_problem("helmholtz")
model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=500, rng=0))
mus = ps.sample(model, 64, design="random", rng=1)
first = ps.solve_many(model, mus[:16], store=runs / "store", chunk_size=4)
print(f"{len(first)} solves here")

# %%
# A cluster is a scheduler and workers, started by the commands of Dask. On one machine these are processes; on many they are
# the same commands, started by SLURM for instance (`From a laptop to a cluster <../scaling.html>`_ has the script).
# They meet by a file.

meeting = runs / "dask.json"


def dask(*words):
    """A process of the cluster."""
    command = [sys.executable, "-m", "dask", *words, "--scheduler-file", str(meeting), "--no-dashboard"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


scheduler = dask("scheduler", "--port", "0", "--host", "127.0.0.1")
workers = [dask("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1") for _ in range(2)]

# %%
# ``solve_many`` takes the cluster as an executor and goes on with the same store: the 16 solves that are there are not made
# again. When half of all is done, one of the two workers is killed. What it was working on is solved by the other.

from distributed import Client

client = Client(scheduler_file=str(meeting))
client.wait_for_workers(2, timeout=120)


def at_half(done):
    """Kill a worker."""
    if done >= 0.5 and workers[0].poll() is None:
        workers[0].kill()


executor = client.get_executor(pure=False)
snapshots = ps.solve_many(model, mus, store=runs / "store", chunk_size=4, executor=executor, progress=at_half)
print(
    f"{len(snapshots)} solves in the store, worker 1 ended with {workers[0].wait()}, worker 2 is alive: {workers[1].poll() is None}"
)
assert len(snapshots) == 64
assert workers[0].returncode != 0
client.close()
for process in (workers[1], scheduler):
    process.terminate()
    process.wait()

# %%
# The same solves in this process alone: not one bit differs.

alone = ps.solve_many(model, mus)
assert snapshots.solutions.tobytes() == alone.solutions.tobytes()

# %%
# The store needs no solver to be read, on the laptop again. The map is fitted to what is in it, and asked at parameters that it has not seen.

kept = ps.reduction.open_snapshots(runs / "store")
surrogate = ps.fit(kept, "polynomial", basis=ps.pod(kept, tolerance=1e-6), model=model)
fresh = ps.solve_many(model, ps.sample(model, 20, design="random", rng=2))
error = ps.accuracy(surrogate, fresh)
print(
    f"{surrogate.basis.n_modes} modes, mean relative error {error.mean:.1e}, of the projection alone {error.projection:.1e}"
)
assert error.mean < 1e-4

# %%
# Many answers go into a file, block by block: the memory does not grow with their number.

many = ps.sample(model, 5000, design="random", rng=3)
ps.write_answers(surrogate, many, runs / "answers.npy")
answers = np.load(runs / "answers.npy", mmap_mode="r")
assert answers.shape == (5000, 500)
assert np.allclose(answers[123], surrogate(many[123]).values, rtol=1e-10, atol=1e-12)
del answers
temporary.cleanup()

# %%
surrogate(a=0.5, k=1.0).plot()

# %%
# The page:

ps.explore(surrogate)
