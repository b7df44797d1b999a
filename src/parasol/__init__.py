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

from importlib import import_module

__version__ = "0.1.0"

# public name -> where it lives; imported when first used, so that `import parasol` is quick and light
_HOME = {
    name: home
    for home, names in {
        "parasol.checks": "ParasolError ParasolWarning",
        "parasol.space.geometry.primitives": "Box Ball Disc",
        "parasol.space.geometry.curves": "Star Curve",
        "parasol.space.geometry.polygon": "Polygon",
        "parasol.space.geometry.implicit": "Implicit",
        "parasol.space.geometry.surface": "Surface",
        "parasol.space.geometry.domain": "Domain",
        "parasol.space.nodes": "Nodes scatter lattice",
        "parasol.space.spacing": "feature_spacing",
        "parasol.space.quality": "quality",
        "parasol.space.kernels": "IMQ MQ IQ Gaussian PHS Matern Wendland",
        "parasol.space.stencils": "Scheme default_scheme",
        "parasol.space.operators": "differentiate",
        "parasol.pde.parameters": "Parameter FunctionParameter ParameterSpace parameters",
        "parasol.pde.fields": "SphereField",
        "parasol.pde.equation": "coordinates time unknown unknowns normal",
        "parasol.pde.vectors": "gradient divergence laplacian",
        "parasol.pde.problem": "Problem Dirichlet Neumann Robin Settings",
        "parasol.pde.quantities": "PointValue Average Integral Flux Weighted",
        "parasol.pde.model": "Model",
        "parasol.pde.discretize": "discretize",
        "parasol.pde.steady": "Solution",
        "parasol.pde.evolution": "Evolution",
        "parasol.pde.catalogue": "load_problem problem_names",
        "parasol.reduction.sampling": "sample split",
        "parasol.reduction.snapshots": "Snapshots solve_many open_snapshots as_snapshots",
        "parasol.reduction.basis": "Basis",
        "parasol.reduction.pod": "pod",
        "parasol.reduction.weights": "value_weights",
        "parasol.reduction.reduced": "ReducedModel reduce",
        "parasol.reduction.greedy": "Greedy greedy",
        "parasol.reduction.collocation": "collocate",
        "parasol.reduction.interpolation": "interpolate",
        "parasol.reduction.conformal": "calibrate",
        "parasol.reduction.nonlinear": "reduce_nonlinear",
        "parasol.reduction.in_time": "reduce_in_time",
        "parasol.reduction.pod_greedy": "pod_greedy space_basis",
        "parasol.networks.network": "Network",
        "parasol.surrogate.surrogate": "Surrogate",
        "parasol.surrogate.fit": "fit fit_snapshots accuracy calibrated",
        "parasol.surrogate.learning.learn": "learn plan",
        "parasol.surrogate.learning.nodes": "discretisation_error",
        "parasol.surrogate.construction.construct": "construct plan_construction",
        "parasol.surrogate.training": "NetworkRecipe Adam VariableProjection",
        "parasol.surrogate.maps": "choose Linear Polynomial GaussianProcess RandomFeatures",
        "parasol.surrogate.operator_nets": "DirectNetwork DeepONet PodDeepONet",
        "parasol.delivery.artifact": "save load",
        "parasol.delivery.files": "write_field",
        "parasol.delivery.server.app": "make_app serve serving",
        "parasol.delivery.onnx_export": "export",
        "parasol.delivery.answers": "as_solution write_answer",
        "parasol.delivery.datasets": "to_xarray",
        "parasol.delivery.page.explore": "explore write_page",
        "parasol.study.budget.check": "check",
        "parasol.study.budget.figure": "draw_budget",
        "parasol.study.figures": "draw draw_nodes",
        "parasol.study.theorem.examine": "examine",
        "parasol.study.theorem.figure": "draw_theorem",
        "parasol.study.spectra": "draw_spectrum",
        "sympy": "Eq",
    }.items()
    for name in names.split()
}
__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'parasol' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *_HOME]
