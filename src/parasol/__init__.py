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
    name: home
    for home, names in {
        "parasol.space": "Domain Nodes feature_spacing IMQ MQ IQ Gaussian PHS Matern Wendland Scheme default_scheme differentiate quality",
        "parasol.pde": "Model Parameter ParameterSpace problem_names Evolution Solution Weighted",
        "parasol.runtime": "Basis ReducedModel",
        "parasol.reduction": "Snapshots as_snapshots value_weights Greedy interpolate split space_basis pod_greedy open_snapshots",
        "parasol.fitting": "Network Linear Polynomial GaussianProcess Adam VariableProjection NetworkRecipe",
        "parasol.learning": "discretisation_error",
        "parasol.delivery": "make_app as_solution write_answer write_page to_xarray write_field",
        "parasol.report": "draw_budget draw_spectrum draw_nodes",
        "parasol_lab.theorem": "construct plan_construction examine draw_theorem",
        "parasol_lab.benchmarks.collocation": "collocate",
        "parasol_lab.paper": "DirectNetwork DeepONet PodDeepONet",
    }.items()
    for name in names.split()
}
_GONE = {  # names of 0.1.0 that are no more
    "choose": "compare maps with parasol.accuracy on snapshots kept aside",
    "RandomFeatures": "use parasol.fitting.Polynomial or parasol.fitting.GaussianProcess",
}
_REPLACED = {  # names of 0.1.0 that another does the work of now; they go with the next version
    "calibrated": ("parasol.fitting.fit", "parasol.calibrate(surrogate, snapshots)"),
    "serving": ("parasol.delivery.server.app", "parasol.serve(surrogate, background=True)"),
    "reduce_nonlinear": ("parasol.reduction.nonlinear", "parasol.reduce(model, basis, snapshots)"),
    "reduce_in_time": ("parasol.reduction.in_time", "parasol.reduce(model, basis, snapshots)"),
}


def __getattr__(name: str):
    if name in _GONE:
        raise AttributeError(f"parasol.{name} was removed in version 0.2: {_GONE[name]}.")
    if name not in _MOVED and name not in _REPLACED:
        return _find(name)
    from importlib import import_module

    home, instead = _REPLACED.get(name) or (_MOVED[name], f"{_MOVED[name]}.{name}")
    warn(f"parasol.{name} has moved: use {instead}.", DeprecationWarning, stacklevel=2)
    return getattr(import_module(home), name)
