"""Parameter-to-solution maps of PDEs: declare a parametric PDE, solve it mesh-free on any geometry.

>>> import parasol as ps
>>> x, y = ps.coordinates("x y")
>>> u = ps.unknown("u", x, y)
>>> a, = ps.parameters(a=(1.0, 2.0))
>>> problem = ps.Problem(ps.Disc(), ps.Eq(-a * ps.laplacian(u), 4), ps.Dirichlet(0), exact=(1 - x**2 - y**2) / a)
>>> model = ps.discretize(problem, ps.scatter(problem.domain, n_nodes=300))
>>> bool(model.solve([1.5]).error < 1e-8)
True
"""

from warnings import warn

from parasol.faces import face

__version__ = "0.2.0.dev0"
_find, __dir__, __all__ = face(__name__)
_MOVED = {  # names of 0.1.0 that live elsewhere now; they go with the next version
    "construct": "parasol_lab.theorem",
    "plan_construction": "parasol_lab.theorem",
    "examine": "parasol_lab.theorem",
    "draw_theorem": "parasol_lab.theorem",
    "DirectNetwork": "parasol_lab.paper",
    "DeepONet": "parasol_lab.paper",
    "PodDeepONet": "parasol_lab.paper",
}


def __getattr__(name: str):
    if name not in _MOVED:
        return _find(name)
    from importlib import import_module

    home = _MOVED[name]
    warn(f"parasol.{name} has moved: use {home}.{name}.", DeprecationWarning, stacklevel=2)
    return getattr(import_module(home), name)
