"""
A program run as a subprocess
=============================

A program that reads parameters and writes a result file, run as a subprocess, learned as it is: with a store, and a failure recorded.
"""

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

import parasol as ps

# Stands for anybody's program: the deflection of a cable under its weight, by Newton's method. It gives up where the cable
# is too slack.
PROGRAM = """
import json, math, sys
with open(sys.argv[1]) as file:
    given = json.load(file)
length, weight = given["length"], given["weight"]
if length > 1.9:
    sys.exit(f"no convergence after 25 iterations, length {length:g}")
s = 3.0  # sinh(s) / s = length, from above
for _ in range(25):
    s -= (math.sinh(s) - length * s) / (math.cosh(s) - length)
x = [i / 50 - 1 for i in range(101)]
with open(sys.argv[2], "w") as file:
    file.write("\\n".join(repr(weight * (math.cosh(s * v) - math.cosh(s)) / s) for v in x))
"""


class Cable:
    """Runs the program in a folder of its own for each parameter."""

    def __init__(self, program: Path):
        self.program = program
        self.parameters = {"length": (1.05, 2.0), "weight": (1.0, 3.0)}  # in the order of mu

    def fingerprint(self) -> str:
        """What the answers depend on: the program's text, not where it lies."""
        return self.program.read_text()

    def solve(self, mu: np.ndarray) -> np.ndarray:
        """Deflection (101,); where the program ends with an error, parasol records why and goes on."""
        with tempfile.TemporaryDirectory() as folder:
            given, result = Path(folder) / "input.json", Path(folder) / "result.txt"
            given.write_text(json.dumps(dict(zip(self.parameters, mu.tolist(), strict=True))))
            command = [sys.executable, "-S", "-E", str(self.program), str(given), str(result)]
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
            return np.loadtxt(result)


with tempfile.TemporaryDirectory() as folder:
    program = Path(folder) / "cable.py"
    program.write_text(PROGRAM)
    cable, store = Cable(program), Path(folder) / "solves"

    verification = ps.verify(cable)
    print(verification)
    assert verification.ok  # a solve that fails somewhere is doubtful, not wrong
    assert "no convergence after 25 iterations" in verification.findings[0].text

    options = {"store": store, "solves": 100, "recipe": "polynomial"}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        surrogate = ps.learn(cable, 5e-3, **options)
    report = surrogate.facts["learn"]
    print(f"{report['solves']} runs of the program, bound {report['bound']:.1e} at level {report['level']:g}")
    print(said[0].message)
    assert "no convergence after 25 iterations" in str(said[0].message)
    assert report["met"]
    low, high = surrogate.parameters.solved[0]  # answers end where the program's do
    assert 1.85 < high <= 1.9

    # the store has all of them: nothing is run again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.ParasolWarning)
        again = ps.learn(cable, 5e-3, **options)
    print(f"again: {again.facts['learn']['solves']} solves, {again.facts['learn']['new_solves']} of them new")
    assert again.facts["learn"]["new_solves"] == 0

    # against the program, at parameters it has not been run at
    mus = np.random.default_rng(7).uniform([low, 1.0], [high, 3.0], (20, 2))
    truth = np.array([cable.solve(mu) for mu in mus])
    errors = np.linalg.norm(surrogate(mus).values - truth, axis=1) / np.linalg.norm(truth, axis=1)
    print(f"error at 20 others: at most {errors.max():.1e}")
    assert np.mean(errors <= 5e-3) >= 0.9
    assert surrogate({"length": 1.5, "weight": 2.0}).bound <= 5e-3

print(json.dumps({"solves": report["solves"], "error": float(f"{errors.max():.1e}")}))
