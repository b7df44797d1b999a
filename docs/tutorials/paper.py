"""
The paper, from one command
===========================

``parasol paper helmholtz`` repeats an experiment of the paper parasol began with: its tables beside the paper's numbers, all
figures, and the surrogate. This is the same call from Python, as a small version that takes a minute.
"""

# %%
# ``preset="few"`` is parasol's own way with few full solves, ``"paper"`` the paper's recipe, ``"best"`` as many samples as
# the paper, trained as parasol does. ``quick=True`` has fewer nodes, samples and modes: its numbers show that things work,
# not how well. Those of the full runs are in :doc:`the paper, item by item </paper>`.

import tempfile
from pathlib import Path

import parasol as ps
from parasol_lab.paper import reproduce

folder = Path(tempfile.mkdtemp(prefix="paper-"))
results = reproduce("helmholtz", folder / "helmholtz", preset="few", quick=True, seeds=1)

for name in ("LS-RRBFM", "POD-DNN"):
    error, paper = results["solvers"][name]["error"], results["paper"][name]["error"]
    print(f"{name:8}: error {error:.1e}; the paper, with 8100 full solves: {paper:.1e}")
print(
    f"{results['pde_solves']} full solves, {results['n_modes']} modes, projection error {results['projection_error']:.1e}"
)
assert results["solvers"]["POD-DNN"]["error"] < results["paper"]["POD-DNN"]["error"] / 5

# %%
# What it leaves: numbers, a report in one HTML file, figures, and the surrogate with its page.

print(sorted(path.name for path in (folder / "helmholtz").iterdir()))
surrogate = ps.load(folder / "helmholtz" / "model.parasol")
print(surrogate)

# %%
surrogate(a=0.927, k=1.697).plot()

# %%
# The page of this surrogate, which the report has inside too:

ps.explore(surrogate)
