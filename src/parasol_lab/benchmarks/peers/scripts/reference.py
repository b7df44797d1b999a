"""What solvers are compared with: scikit-fem's elements of degree 4 on a fine mesh, at the points: `python reference.py REQUEST RESULT`."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from scikit_fem import fit

if __name__ == "__main__":
    request = json.loads(Path(sys.argv[1]).read_text())
    folder, fine_level = Path(request["data"]), request["refinements"]
    data = SimpleNamespace(points=np.load(folder / "points.npy"))
    fine, coarse = (fit(data, 0, degree=4, refinements=n) for n in (fine_level, fine_level - 1))
    mus = np.load(folder / "solver_mus.npy")
    values, before = (np.array([one["values"](one["solve"](mu)) for mu in mus]) for one in (fine, coarse))
    change = np.linalg.norm(values - before, axis=1) / np.linalg.norm(values, axis=1)
    np.save(folder / "reference.npy", values)
    facts = {"n_unknowns": int(fine["n_unknowns"]), "change_by_last_refinement": change.tolist()}
    Path(sys.argv[2]).write_text(json.dumps(facts))
