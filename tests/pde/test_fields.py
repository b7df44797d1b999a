import numpy as np
import pytest

import parasol as ps
from parasol.checks import ParasolError
from parasol.runtime.random_fields import spherical_harmonics


def sphere(n, rng):
    points = rng.standard_normal((n, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_harmonics_are_orthonormal():
    z, weight = np.polynomial.legendre.leggauss(20)
    angle = 2 * np.pi * np.arange(40) / 40
    zz, aa = np.meshgrid(z, angle, indexing="ij")
    ring = np.sqrt(1 - zz**2)
    points = np.stack([ring * np.cos(aa), ring * np.sin(aa), zz], axis=-1).reshape(-1, 3)
    weights = np.repeat(weight, 40) * 2 * np.pi / 40
    y = spherical_harmonics(points, 6)
    np.testing.assert_allclose((y * weights) @ y.T, np.eye(49), atol=1e-12)


@pytest.mark.parametrize(("degree", "energy"), [(4, 1.497202), (8, 1.523487), (16, 1.532234), (32, 1.534765)])
def test_variance_of_the_field_on_the_sphere(degree, energy):
    variance = np.sum(ps.SphereField(degree).modes(sphere(5, np.random.default_rng(0))) ** 2, axis=0)
    np.testing.assert_allclose(4 * np.pi * variance, energy, rtol=1e-6)  # the same at every point


def test_samples_have_that_variance():
    pole = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    samples = ps.SphereField(32).sample(20000, pole, 0)
    np.testing.assert_allclose(samples.var(axis=0), 0.122205713359, rtol=0.03)
    assert np.all(np.abs(samples.mean(axis=0)) < 0.01)


def test_samples_are_deterministic():
    points = sphere(10, np.random.default_rng(1))
    assert ps.SphereField(8).sample(3, points, 5).tobytes() == ps.SphereField(8).sample(3, points, 5).tobytes()


def test_bad_degree():
    with pytest.raises(ParasolError, match="integer from 0 to 128"):
        ps.SphereField(-1)
    with pytest.raises(ParasolError, match="integer from 0 to 128"):  # from a hostile file, say
        ps.SphereField(10**9)
