"""Install a wheel and an sdist into bare environments and run a small test there: `python tests/bare_install.py FOLDER`.

Of Python 3.11, 3.12 and 3.13 those that are there; the default dependencies and nothing else.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

VERSIONS = ("3.11", "3.12", "3.13")
TEST = """
import pathlib, subprocess, sys, time
start = time.perf_counter()
import parasol as ps
seconds = time.perf_counter() - start
import numpy as np
x, y = ps.coordinates("x y")
(a,), u = ps.parameters(a=(1.0, 2.0)), ps.unknown("u", x, y)
problem = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0))
surrogate = ps.learn(problem, 1e-3, n_nodes=200, recipe="polynomial")
answer = surrogate(a=1.5)
exact = (1 - (answer.nodes**2).sum(axis=1)) / 1.5
assert np.linalg.norm(answer.values - exact) < 1e-3 * np.linalg.norm(exact)
path = ps.save(surrogate, "disc.parasol")
assert np.array_equal(ps.load(path)(a=1.5).values, answer.values)
assert "<script" in ps.explore(surrogate, "disc.html").html
command = str(pathlib.Path(sys.executable).with_name("parasol"))
said = subprocess.run([command, "predict", str(path), "a=1.5"], capture_output=True, text=True)
assert said.returncode == 0, said.stderr
assert "theorem" in subprocess.run([command, "--help"], capture_output=True, text=True).stdout
print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}: ok, import parasol {1e3 * seconds:.0f} ms")
"""


def interpreters() -> list[str]:
    """Those that are on the path, or among pyenv's versions, and start."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = []
    for version in VERSIONS:
        places = [*sorted(root.glob(f"{version}.*/bin/python")), shutil.which(f"python{version}")]
        works = (p for p in places if p and not subprocess.run([p, "-c", ""], capture_output=True).returncode)
        found += [str(place) for place in works][:1]
    return found


def check(python: str, package: Path) -> str:
    """What the small test says of a package in a new environment of this Python."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", f"{folder}/bare"], check=True)
        bare = f"{folder}/bare/bin/python"
        quiet = ["--quiet", "--no-compile", "--disable-pip-version-check"]
        subprocess.run(
            [bare, "-m", "pip", "install", *quiet, str(package.resolve())], check=True, stderr=subprocess.PIPE
        )
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        ran = subprocess.run([bare, "-c", TEST], cwd=folder, env=environment, capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{package.name} with {python}:\n{ran.stderr}")
    return ran.stdout.strip()


if __name__ == "__main__":
    wheel, sdist = (next(Path(sys.argv[1]).glob(f"*.{suffix}")) for suffix in ("whl", "tar.gz"))
    pythons = interpreters()
    for package, python in [*((wheel, python) for python in pythons), (sdist, pythons[-1])]:
        sys.stdout.write(f"{package.name}, {package.stat().st_size / 1e6:.1f} MB: {check(python, package)}\n")
