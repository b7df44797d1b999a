"""An independent solution of the damped sine-Gordon equation in (−7, 7)² with free walls: plain finite differences.

    u_tt + beta u_t = u_xx + u_yy + rho sin u,   u(0) = 4 arctan exp(x + 1 − 2 sech(y + 7) − 2 sech(y − 7)),  u_t(0) = 0

Second order in space and time (leapfrog, mirrored walls), extrapolated from two lattices to fourth. Imports nothing of
parasol.
"""

from functools import lru_cache

import numpy as np


def initial(x, y):
    return 4 * np.arctan(np.exp(x + 1 - 2 / np.cosh(y + 7) - 2 / np.cosh(y - 7)))


def leapfrog(beta: float, rho: float, n: int, n_steps: int, keep: int) -> np.ndarray:
    """Values at 101 times in [0, 10] at every `keep`-th point of an n × n lattice, shape (101, m, m), x along axis 1."""
    ticks = np.linspace(-7, 7, n)
    h, dt = ticks[1] - ticks[0], 10 / n_steps
    x, y = np.meshgrid(ticks, ticks, indexing="ij")
    now = initial(x, y)

    def acceleration(u):
        wide = np.pad(u, 1, mode="reflect")  # mirrored at the wall: the slope there is zero
        laplacian = (wide[2:, 1:-1] + wide[:-2, 1:-1] + wide[1:-1, 2:] + wide[1:-1, :-2] - 4 * u) / h**2
        return laplacian + rho * np.sin(u)

    before = now + dt**2 / 2 * acceleration(now)  # u(−dt) = u(dt) since u_t(0) = 0
    stored = [now[::keep, ::keep]]
    for step in range(1, n_steps + 1):
        after = (2 * now - (1 - beta * dt / 2) * before + dt**2 * acceleration(now)) / (1 + beta * dt / 2)
        before, now = now, after
        if step % (n_steps // 100) == 0:
            stored.append(now[::keep, ::keep])
    return np.array(stored)


@lru_cache
def soliton(beta: float, rho: float) -> np.ndarray:
    """The solution at 101 times on the 57 × 57 lattice, shape (101, 57, 57)."""
    coarse = leapfrog(beta, rho, 113, 200, 2)
    fine = leapfrog(beta, rho, 225, 400, 4)
    return (4 * fine - coarse) / 3
