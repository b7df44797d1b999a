import tracemalloc
import warnings

import numpy as np
import pytest
from scipy.linalg import hilbert, subspace_angles

from parasol.checks import ParasolError, ParasolWarning
from parasol.reduction import pod as pod_module
from parasol.reduction import sources
from parasol.reduction.pod import METHODS, pod

SHAPES = [(40, 500), (500, 40), (120, 120)]


def known(n, n_values, decay=10**-0.5, n_known=30, seed=0):
    """Snapshots (n, n_values) with singular values decay^i, and their left singular vectors."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n_values, n_known)))[0]
    right = np.linalg.qr(rng.standard_normal((n, n_known)))[0]
    s = decay ** np.arange(float(n_known))
    return (right * s) @ left.T, left, s


class Stream:
    """Snapshots that come in blocks of uneven size and know nothing else."""

    def __init__(self, rows, cuts=(1, 2, 9, 10, 31)):
        self.rows, self.cuts = rows, [c for c in cuts if c < len(rows)]

    def blocks(self):
        return iter(np.split(self.rows, self.cuts))


def quiet(*args, **kwargs):
    """pod with every word of warning an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ParasolWarning)
        return pod(*args, **kwargs)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", [None, *METHODS])
def test_every_way_finds_the_known_modes(method, shape):
    rows, left, s = known(*shape)
    basis = quiet(rows, tolerance=2e-6, method=method)
    assert basis.n_modes == 12
    assert subspace_angles(basis.modes, left[:, :12]).max() < 1e-8
    np.testing.assert_allclose(basis.singular_values[:12], s[:12], rtol=1e-8)
    assert basis.method == (method or "svd")
    assert basis.n_snapshots == shape[0]
    assert basis.total_energy == pytest.approx(np.sum(s**2), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_identities(method, weighted):
    rng = np.random.default_rng(3)
    rows, _, _ = known(40, 300, seed=5)
    weights = rng.uniform(0.2, 5.0, 300) if weighted else None
    basis = pod(rows, tolerance=2e-6, weights=weights, method=method)
    x, v = np.ones(300) if weights is None else weights, basis.modes
    root, d = np.sqrt(x), basis.n_modes
    u, s, _ = np.linalg.svd(root[:, None] * rows.T, full_matrices=False)
    np.testing.assert_allclose(v.T @ (x[:, None] * v), np.eye(d), atol=1e-12)
    left_over = root[:, None] * (rows - basis.lift(basis.project(rows))).T
    assert np.linalg.norm(left_over) ** 2 == pytest.approx(np.sum(s[d:] ** 2), rel=1e-10)
    assert np.linalg.norm(left_over, 2) == pytest.approx(s[d], rel=1e-6)
    assert basis.energy_discarded[d] == pytest.approx(np.linalg.norm(left_over) / np.linalg.norm(s), rel=1e-4)
    # Vᵀ X S = diag(s) Wᵀ: its rows are orthogonal and as long as the singular values
    coefficients = basis.project(rows)
    np.testing.assert_allclose(coefficients.T @ coefficients, np.diag(s[:d] ** 2), atol=1e-14 * s[0] ** 2)
    assert subspace_angles(root[:, None] * v, u[:, :d]).max() < (1e-8 if d < 15 else 1e-6)


def test_the_dimension_is_the_smallest_that_keeps_the_promise():
    rows, _, s = known(60, 200, decay=0.6, n_known=40)
    dimensions = []
    for tolerance in 10.0 ** -np.arange(0.5, 7.0, 0.5):
        basis = pod(rows, tolerance=tolerance)
        d = basis.n_modes
        assert np.sum(s[d:] ** 2) <= tolerance**2 * np.sum(s**2) < np.sum(s[d - 1 :] ** 2)
        dimensions.append(d)
    assert dimensions == sorted(dimensions)


@pytest.mark.parametrize("method", METHODS)
def test_hilbert_s_matrix(method):
    rows = hilbert(50)[:, :40]
    basis = quiet(rows, n_modes=6, method=method)
    u, s, _ = np.linalg.svd(rows.T, full_matrices=False)
    assert subspace_angles(basis.modes, u[:, :6]).max() < 1e-8
    np.testing.assert_allclose(basis.singular_values[:6], s[:6], rtol=1e-9)


@pytest.mark.filterwarnings("ignore:tolerance=0.0001 needs")
@pytest.mark.parametrize("tolerance", [0.3, 1e-2, 1e-4])
def test_pieces_keep_the_promise_where_singular_values_decay_slowly(tolerance):
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((n, 150)))[0] for n in (400, 200))
    s = 1.0 / np.arange(1, 151) ** 2
    rows = (right * s) @ left.T
    basis = pod(Stream(rows, (20, 21, 60, 130)), tolerance=tolerance, method="incremental")
    error = np.linalg.norm(rows - basis.lift(basis.project(rows))) / np.linalg.norm(rows)
    best = pod(rows, tolerance=tolerance).n_modes
    assert error <= tolerance
    assert basis.n_modes <= best + 1
    assert error <= basis.energy_discarded[basis.n_modes] * (1 + 1e-10)
    total = np.sum(basis.singular_values**2) + basis.lost_energy
    assert total == pytest.approx(basis.total_energy, rel=1e-12)


def test_what_was_dropped_on_the_way_is_counted_and_told():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((200, 300))  # no decay at all
    with pytest.warns(ParasolWarning, match="dropped energy on the way"):
        basis = pod(rows, n_modes=3, method="incremental")
    assert basis.lost_energy > 0.1 * basis.total_energy
    error = np.linalg.norm(rows - basis.lift(basis.project(rows))) / np.linalg.norm(rows)
    assert error <= basis.energy_discarded[3]


def test_short_snapshots_are_streamed_exactly():
    rows, left, _ = known(300, 40)
    basis = quiet(Stream(rows), tolerance=2e-6)
    assert (basis.method, basis.n_modes) == ("svd", 12)
    assert subspace_angles(basis.modes, left[:, :12]).max() < 1e-8
    assert len(basis.singular_values) == 40


def test_large_sets_are_taken_block_by_block(monkeypatch):
    rows, left, _ = known(60, 500)
    monkeypatch.setattr(pod_module, "_SHORT", 100)
    monkeypatch.setattr(sources, "BLOCK", 4000)
    basis = quiet(Stream(rows), tolerance=2e-6)
    assert basis.method == "incremental"
    assert subspace_angles(basis.modes, left[:, :12]).max() < 1e-8


def test_a_stream_is_never_in_memory_as_a_whole(monkeypatch):
    monkeypatch.setattr(sources, "BLOCK", 20 * 10_000)
    left = np.linalg.qr(np.random.default_rng(0).standard_normal((10_000, 8)))[0]

    class Endless:
        def blocks(self):
            rng = np.random.default_rng(1)
            for _ in range(40):
                yield (rng.standard_normal((20, 8)) * 0.1 ** np.arange(8)) @ left.T

    tracemalloc.start()
    basis = quiet(Endless(), tolerance=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (basis.method, basis.n_snapshots) == ("incremental", 800)
    assert peak < 0.25 * 8 * 800 * 10_000
    assert subspace_angles(basis.modes, left).max() < 1e-8


def test_a_long_set_decomposed_as_a_whole_by_name_is_read_once(monkeypatch):
    rows, left, _ = known(60, 500)
    monkeypatch.setattr(pod_module, "_SHORT", 100)
    monkeypatch.setattr(sources, "IN_MEMORY", 100)
    assert subspace_angles(quiet(Stream(rows), tolerance=2e-6, method="svd").modes, left[:, :12]).max() < 1e-8

    class Stored(Stream):
        solutions, mus = rows, np.zeros((60, 1))

    assert quiet(Stored(rows), tolerance=2e-6).method == "incremental"
    stored = Stored(rows)
    monkeypatch.setattr(np, "concatenate", None)  # no second copy
    assert quiet(stored, tolerance=2e-6, method="svd").n_modes == 12


def test_a_stored_set_small_enough_is_read_as_a_whole():
    rows, _, _ = known(60, 5000)
    whole = Stream(rows)
    whole.mus, whole.solutions = np.zeros((60, 1)), rows
    assert quiet(whole, tolerance=2e-6).method == "svd"


@pytest.mark.parametrize("method", [None, "incremental"])
def test_hidden_values_are_combined_like_the_modes(method):
    rows, _, _ = known(60, 500)
    seen = Stream(rows[:, :470])
    seen.hidden = rows[:, 470:]
    basis = pod(seen, tolerance=2e-6, method=method)
    assert basis.hidden.shape == (30, basis.n_modes)
    # modes of full vectors, in the product that does not look at the hidden part, contain both
    together = np.vstack([basis.modes, basis.hidden])
    combination = np.linalg.lstsq(rows[:, :470].T, basis.modes, rcond=1e-10)[0]
    np.testing.assert_allclose(rows.T @ combination, together, atol=1e-6)
    lifted = basis.project(rows[:, :470]) @ basis.hidden.T
    assert np.abs(lifted - rows[:, 470:]).max() < 1e-5


def test_held_out_error_is_the_mean_of_relative_errors():
    rows, _, _ = known(60, 200)
    basis = quiet(rows[:50], n_modes=5, held_out=rows[50:])
    errors = [np.linalg.norm(u - basis.modes @ (basis.modes.T @ u)) / np.linalg.norm(u) for u in rows[50:]]
    assert basis.held_out_error == pytest.approx(np.mean(errors), rel=1e-10)
    assert pod(rows[:50], n_modes=5, held_out=Stream(rows[50:], (3,))).held_out_error == basis.held_out_error


def test_weights_change_which_directions_count():
    rows = np.array([[3.0, 0.0], [0.0, 4.0]])
    np.testing.assert_allclose(np.abs(pod(rows, n_modes=1).modes.T), [[0, 1]])
    heavy = pod(rows, n_modes=1, weights=[4.0, 1.0])
    np.testing.assert_allclose(heavy.modes.T, [[0.5, 0]], atol=1e-15)
    np.testing.assert_allclose(heavy.singular_values, [6, 4])


def test_single_precision_is_accumulated_in_double():
    rows, left, _ = known(100, 3000)
    basis = pod(rows.astype(np.float32), tolerance=1e-3)
    assert basis.modes.dtype == float
    np.testing.assert_allclose(basis.modes.T @ basis.modes, np.eye(basis.n_modes), atol=1e-12)
    assert subspace_angles(basis.modes, left[:, : basis.n_modes]).max() < 1e-4


def test_the_snapshots_are_left_as_they_are():
    rows, _, _ = known(40, 100)
    for method in METHODS:
        before = rows.copy()
        pod(rows, n_modes=5, method=method, weights=np.full(100, 2.0))
        np.testing.assert_array_equal(rows, before)


def test_signs_do_not_depend_on_the_method():
    rows, _, _ = known(40, 100)
    exact = pod(rows, n_modes=5).modes
    for method in METHODS:
        np.testing.assert_allclose(pod(rows, n_modes=5, method=method).modes, exact, atol=1e-7)


# ---- words of warning ----------------------------------------------------------------------------------------------
def test_more_modes_than_the_snapshots_span():
    rows, _, _ = known(40, 100, n_known=3)
    with pytest.warns(ParasolWarning, match="span 3 directions only"):
        assert pod(rows, n_modes=7).n_modes == 3


def test_slow_decay_gets_a_word():
    rows = np.random.default_rng(0).standard_normal((30, 500))
    with pytest.warns(ParasolWarning, match="decay too slowly to reduce") as said:
        pod(rows, tolerance=1e-3)
    assert not any("more snapshots, or" in str(w.message) for w in said)
    quiet(rows[:, :1], tolerance=1e-3)  # a quantity: one number is not there to be reduced


def test_too_few_snapshots_of_a_quick_decay_get_another_word():
    rows, _, _ = known(20, 500, decay=10**-0.6, n_known=20)
    with pytest.warns(ParasolWarning, match=r"needs 1\d modes of 20 snapshots.*decay.*Use more snapshots") as said:
        pod(rows, tolerance=1e-9)
    assert "too slowly" not in str(said[0].message)
    quiet(known(200, 500, decay=10**-0.6, n_known=20)[0], tolerance=1e-9)
    quiet(known(200, 20, decay=10**-0.6, n_known=20)[0], tolerance=1e-9)  # all the directions there are


def test_few_modes_say_nothing_of_decay():
    rows = np.random.default_rng(0).standard_normal((200, 5))
    quiet(rows[:, :1], tolerance=1e-3)  # one value has one mode
    quiet(rows, tolerance=1e-3)
    with pytest.warns(ParasolWarning, match=r"needs 5 modes of 5 snapshots: so few snapshots may not") as said:
        pod(rows.T, tolerance=1e-3)
    assert "too slowly" not in str(said[0].message)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (np.eye(3), {}, "either a tolerance or a number of modes"),
        (np.eye(3), {"tolerance": 0.1, "n_modes": 2}, "either a tolerance or a number of modes"),
        (np.eye(3), {"tolerance": 1.0}, "not between 0 and 1"),
        (np.eye(3), {"tolerance": 0.0}, "not between 0 and 1"),
        (np.eye(3), {"tolerance": "small"}, "must be a number"),
        (np.eye(3), {"n_modes": 0}, "n_modes must be a whole number"),
        (np.eye(3), {"n_modes": 1, "method": "magic"}, "Use one of: svd, incremental"),
        (np.eye(3), {"n_modes": 1, "method": "gram"}, "Use one of: svd, incremental"),
        (np.full((3, 3), np.nan), {"n_modes": 1}, "NaN or infinite"),
        (np.full((3, 3), 1e200), {"n_modes": 1}, "overflow"),
        (np.zeros((3, 4)), {"n_modes": 1}, "all snapshots are zero"),
        (np.ones((1, 4)), {"n_modes": 1}, "one snapshot"),
        (np.ones((0, 4)), {"n_modes": 1}, "empty"),
        (np.ones(4), {"n_modes": 1}, "samples on axis 0"),
        (np.eye(3) * 1j, {"n_modes": 1}, "real numbers, got ndarray of complex128"),
        (None, {"n_modes": 1}, "snapshots must be real numbers, got NoneType"),
        (np.eye(3), {"n_modes": 1, "held_out": "x"}, "held_out must be real numbers, got str"),
        (np.eye(3), {"n_modes": 1, "weights": np.ones(4)}, "weights has shape"),
        (np.eye(3), {"n_modes": 1, "weights": -np.ones(3)}, "3 of 3 weights are not positive"),
        (np.eye(3), {"n_modes": 1, "held_out": np.ones((2, 4))}, "held_out has 4 values"),
        (np.eye(3), {"n_modes": 1, "held_out": np.full((2, 3), np.nan)}, "held_out has 6 entries"),
    ],
)
def test_bad_input_gets_one_clear_line(rows, options, message):
    with pytest.raises(ParasolError, match=message) as raised:
        pod(rows, **options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("method", METHODS)
def test_bad_numbers_are_found_by_every_way(method):
    rows, _, _ = known(40, 100)
    rows[37, 5] = np.nan
    with pytest.raises(ParasolError, match="1 entry"):
        pod(rows, n_modes=2, method=method)
    for empty in (np.zeros((4, 9)), np.ones((1, 9))):
        with pytest.raises(ParasolError):
            pod(empty, n_modes=1, method=method)
