"""A map whose proven bound is above the tolerance gives way to the reduced model, whose bound is not."""

import numpy as np
import pytest
import skfem as fem
from skfem.helpers import dot, grad

import parasol as ps


@pytest.mark.slow
def test_the_reduced_model_answers_where_a_map_is_not_proven_good_enough(monkeypatch):
    # by its estimate the polynomial is good to 4e-4, by its proven bound to 1e-3; the reduced model to 1e-4
    monkeypatch.setattr("parasol.learning.linear.maps_to_try", lambda model: ("polynomial",))
    basis = fem.Basis(fem.MeshTri.init_tensor(*2 * [np.linspace(0, 1, 33)]), fem.ElementTriP1())
    free = basis.complement_dofs(basis.get_dofs())
    form = fem.BilinearForm(lambda u, v, w: (2 * (w.x[0] > 0.5) + (w.x[1] > 0.5) == w["i"]) * dot(grad(u), grad(v)))
    blocks = [form.assemble(basis, i=i)[free][:, free] for i in range(4)]
    load = fem.LinearForm(lambda v, w: 1.0 * v).assemble(basis)[free]
    thetas = ps.parameters(a=(0.1, 1), b=(0.1, 1), c=(0.1, 1), d=(0.1, 1))
    model = ps.AffineModel(dict(zip(thetas, blocks, strict=True)), {1: load}, product=sum(blocks))
    proven = ps.learn(model, 1e-3, recipe="polynomial").facts["learn"]["bound"]
    account = ps.learn(model, 0.97 * proven).facts["learn"]
    assert account["met"]
    assert account["map"] == "reduced model"
    assert account["bound"] < 0.97 * proven
