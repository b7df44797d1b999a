"""
PyTorch's gradients
===================

A surrogate inside a PyTorch program: conductivities from temperatures, by its gradients.
"""

import torch

import parasol as ps

(x,), (a, b) = ps.coordinates("x"), ps.parameters(a=(0.5, 2.0), b=(0.5, 2.0))
u = ps.unknown("u", x)
flux = ps.by_region(left=a, otherwise=b) * ps.gradient(u)  # a rod of two materials, cooled on the left
boundary = {"left": ps.Dirichlet(0), "right": ps.NormalFlux(0)}
rod = ps.Problem(ps.Box(0, 1).regions(left=x < 0.5), ps.Eq(-ps.divergence(flux), 1), boundary)
temperatures = ps.learn(rod, 1e-5).restricted(points=[[0.5], [1.0]]).as_torch()

# exactly 3/8 / a in the middle, and 1/8 / b more at the end
seen = torch.tensor([0.375 / 0.8, 0.375 / 0.8 + 0.125 / 1.5], dtype=torch.float64)
mu = torch.ones(2, dtype=torch.float64, requires_grad=True)
optimizer = torch.optim.LBFGS([mu], max_iter=50, line_search_fn="strong_wolfe", tolerance_grad=1e-12)


def misfit():
    """The loss, with its gradient in mu."""
    optimizer.zero_grad()
    loss = torch.sum((temperatures(mu) - seen) ** 2)
    loss.backward()
    return loss


optimizer.step(misfit)
print(f"a, b = {mu.detach().numpy().round(5)}")
assert torch.allclose(mu, torch.tensor([0.8, 1.5], dtype=torch.float64), rtol=1e-3)
