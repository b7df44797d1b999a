"""Networks that learn whole fields: without a reduced basis (DNN), and DeepONets; baselines to compare POD-DNN with.

Fair: one scale for all outputs around their mean, smooth activations, Adam with a rate that falls along a cosine, and
the last linear layer solved at the end where its size allows. Fields stay where they are, in whatever precision: they
travel to the device once if small, else a batch at a time.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import linalg

from parasol.checks import check_choice, check_count, check_shape
from parasol.errors import InputError
from parasol.fitting import (
    Adam,
    Network,
    NetworkRecipe,
    Scaling,
    TrainedNetwork,
    check_data,
    mean_relative_error,
    solve_last_layer,
)
from parasol.runtime import check_inputs

_SOLVABLE = 2 * 10**7  # values in the fields, above which the last layer is left as trained
_CHUNK = 2**24  # values handled at a time
_HELD_OUT = 0.1


@dataclass(frozen=True, eq=False)
class TrainedOperator:
    """u(x) = shift + values @ branch(x): `values` (n_values, n_terms) are the trunk's at the nodes, or POD modes."""

    branch: Network
    values: np.ndarray
    shift: np.ndarray
    trunk: Network | None
    history: tuple[dict[str, float], ...]
    seconds: float
    device: str
    best_epoch: int
    validation_error: float

    def predict(self, x) -> np.ndarray:
        """Fields (n, n_values) of inputs (n, p)."""
        out = self.branch(check_inputs(x, self.branch.n_inputs)) @ self.values.T
        out += self.shift
        return out

    def jacobian(self, x) -> np.ndarray:
        """Derivatives (n, n_values, p)."""
        return self.values @ self.branch.jacobian(check_inputs(x, self.branch.n_inputs))


@dataclass(frozen=True)
class DirectNetwork:
    """A network from features straight to nodal values, without POD; as large as the mesh: 165 million weights for the
    sine-Gordon trajectories, which is work for a GPU.

    >>> x = np.linspace(-1, 1, 40)[:, None]
    >>> fields = x * np.array([1.0, 2.0, 3.0])
    >>> net = DirectNetwork(widths=(8, 8), stage=Adam(20, 40)).fit(x, fields)
    >>> net.predict(x[:2]).shape
    (2, 3)
    """

    widths: tuple[int, ...] = (500, 500)
    stage: Adam = field(default_factory=lambda: Adam(2000, 100, 1e-3, "cosine"))
    activation: str = "silu"
    dtype: str = "float32"
    last_layer: str = "auto"  # "auto": solved where the fields are small enough; "trained"; "solved"
    patience: int | None = None
    device: str = "auto"

    @classmethod
    def paper(cls, *, epochs: int = 2000, batch_size: int = 100, device: str = "auto") -> DirectNetwork:
        """The paper's: 500-500 ReLU, Adam at 1e-4."""
        return cls((500, 500), Adam(epochs, batch_size, 1e-4, "constant"), "relu", last_layer="trained", device=device)

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0) -> TrainedNetwork:
        """Train on features (n, p) and fields (n, n_values), any float type or a memory map."""
        start = time.perf_counter()
        x, y, validation = _check_fields(x, y, validation)
        counts = (x.shape[1], *self.widths, y.shape[1])

        def forward(descent, weights, t):
            return descent.perceptron(weights, t, self.activation)

        run = _train(self, forward, lambda g: _layers(g, counts), x, y, validation, progress, rng)
        layers = [(np.asarray(w), np.asarray(b)) for w, b in run.weights]
        if _solves(self, y):
            hidden = _hidden(layers, run.scaling, self.activation)
            last = solve_last_layer(
                hidden(x[run.rows]), run.scaling.outputs(y[run.rows]),
                validation=(hidden(run.aside[0]), run.scaling.outputs(run.aside[1])), noise=float(np.finfo(self.dtype).eps) / 2,
            )  # fmt: skip
            layers[-1] = (last.weights, last.bias)
        network = run.scaling.network(layers, None, self.activation, self.dtype)
        error = _error(network, run.aside)
        return TrainedNetwork(
            network, run.history, time.perf_counter() - start, run.device, run.best_epoch, error, run.interrupted
        )


@dataclass(frozen=True, eq=False)
class DeepONet:
    """Unstacked DeepONet: u(x)(z) = Σ_k b_k(x) t_k(z) + b_0, branch b on features, trunk t on coordinates z.

    All samples share the nodes, so the trunk is evaluated once per step. `points` are the nodes' coordinates
    (n_values, dim), with the time as one more where the fields are trajectories.
    """

    points: np.ndarray
    n_terms: int = 128
    widths: tuple[int, ...] = (500, 500)
    stage: Adam = field(default_factory=lambda: Adam(2000, 100, 1e-3, "cosine"))
    activation: str = "silu"
    dtype: str = "float32"
    last_layer: str = "auto"
    patience: int | None = None
    device: str = "auto"

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0) -> TrainedOperator:
        """Train on features (n, p) and fields (n, n_values)."""
        start = time.perf_counter()
        x, y, validation = _check_fields(x, y, validation)
        points = check_shape(self.points, (y.shape[1], None), "points")
        check_count(self.n_terms, "n_terms")
        places = Scaling.of(points, np.zeros((len(points), 1)), "global")
        z = places.inputs(points).astype(self.dtype)
        branch, trunk = (x.shape[1], *self.widths, self.n_terms), (points.shape[1], *self.widths, self.n_terms)

        def initial(generator):
            layers = _layers(generator, branch)
            layers[-1] = (layers[-1][0] / np.sqrt(self.n_terms), layers[-1][1] * 0)
            return {"branch": layers, "trunk": _layers(generator, trunk), "bias": np.zeros(1)}

        def forward(descent, weights, t):
            modes = descent.perceptron(weights["trunk"], z, self.activation, last_active=True)
            return descent.perceptron(weights["branch"], t, self.activation) @ modes.T + weights["bias"]

        run = _train(self, forward, initial, x, y, validation, progress, rng)
        trained = {k: [tuple(np.asarray(a) for a in layer) for layer in run.weights[k]] for k in ("branch", "trunk")}
        active = [*trained["trunk"], (np.eye(self.n_terms), np.zeros(self.n_terms))]  # its last layer is active as well
        trunk_net = places.network(active, None, self.activation, "float64", outputs=False)
        values = np.concatenate([trunk_net(points[i : i + 20000]) for i in range(0, len(points), 20000)])
        scale, bias = float(run.scaling.output_scale[0]), float(np.asarray(run.weights["bias"])[0])
        layers = trained["branch"]
        if _solves(self, y):
            hidden = _hidden(layers, run.scaling, self.activation)
            q = np.linalg.qr(values)[0]

            def coordinates(fields):  # of the part of fields that the trunk can express
                return (run.scaling.outputs(fields) - bias) @ q

            last = solve_last_layer(
                hidden(x[run.rows]), coordinates(y[run.rows]),
                validation=(hidden(run.aside[0]), coordinates(run.aside[1])), noise=float(np.finfo(self.dtype).eps) / 2,
            )  # fmt: skip
            layers, values = [*layers[:-1], (last.weights, last.bias)], q
        net = run.scaling.network(layers, None, self.activation, self.dtype, outputs=False)
        shift = (run.scaling.output_shift + scale * bias).astype(self.dtype)
        fitted = (net, (scale * values).astype(self.dtype), shift, trunk_net, run.history)
        error = _error(TrainedOperator(*fitted, 0.0, run.device, run.best_epoch, 0.0).predict, run.aside)
        return TrainedOperator(*fitted, time.perf_counter() - start, run.device, run.best_epoch, error)


@dataclass(frozen=True)
class PodDeepONet:
    """DeepONet with POD modes for a trunk: u(x) = φ_0 + Σ_k b_k(x) φ_k, φ_0 the mean, φ_k modes of training fields only.

    It is POD-DNN with centred fields; `branch` is the recipe of its network.
    """

    n_terms: int = 32
    branch: NetworkRecipe = field(
        default_factory=lambda: NetworkRecipe(
            (500, 500), (Adam(2000, 100, 1e-3, "cosine"),), "silu", "float32", skip=False
        )
    )

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0) -> TrainedOperator:
        """Train on features (n, p) and fields (n, n_values)."""
        start = time.perf_counter()
        x, y, validation = _check_fields(x, y, validation)
        mean = _mean(y)
        modes = _modes(y, mean, check_count(self.n_terms, "n_terms"))

        def project(fields):
            return np.concatenate([(fields[i : i + 64] - mean) @ modes for i in range(0, len(fields), 64)])

        unseen = None if validation is None else (validation[0], project(validation[1]))
        net = self.branch.fit(x, project(y), validation=unseen, progress=progress, rng=rng)
        dtype = net.network.dtype
        fitted = (net.network, modes.astype(dtype), mean.astype(dtype), None, net.history)
        error = net.validation_error  # of the coefficients; of the fields where there are fields to compare with
        if validation is not None:
            error = _error(TrainedOperator(*fitted, 0.0, net.device, net.best_epoch, 0.0).predict, validation)
        return TrainedOperator(*fitted, time.perf_counter() - start, net.device, net.best_epoch, error)


@dataclass(frozen=True, eq=False)
class _Run:
    weights: Any
    scaling: Scaling
    rows: np.ndarray
    aside: tuple[np.ndarray, np.ndarray]
    history: tuple[dict[str, float], ...]
    device: str
    best_epoch: int
    interrupted: bool


def _train(recipe, forward, initial, x, y, validation, progress, rng) -> _Run:
    """Adam on whole fields; `forward(descent, weights, inputs)` predicts them scaled."""
    from parasol.fitting import descent

    check_choice(recipe.dtype, ("float32", "float64"), "dtype")
    check_choice(recipe.last_layer, ("auto", "trained", "solved"), "last_layer")
    check_choice(recipe.device, ("auto", "cpu", "gpu"), "device")
    generator = np.random.default_rng(rng)
    mean = _mean(y)
    variance = sum(float(np.sum((np.asarray(y[i : i + 16], dtype=float) - mean) ** 2)) for i in range(0, len(y), 16))
    scale = np.sqrt(variance / y.size)
    low, high = x.min(axis=0), x.max(axis=0)
    half = np.where(high > low, (high - low) / 2, 1.0)
    varies = scale > 1e-15 * np.max(np.abs(mean), initial=0.0)
    scaling = Scaling((low + high) / 2, 1 / half, mean, np.full(y.shape[1], scale if varies else 1.0), bool(varies))
    order = generator.permutation(len(x))
    if validation is None:
        n = int(np.clip(round(_HELD_OUT * len(x)), 1, max(16, 2 * 10**7 // y.shape[1])))
        rows, validation = order[n:], (x[order[:n]], y[order[:n]])
    else:
        rows = order
    with descent.computing(recipe.dtype, recipe.device) as device:
        jax = descent.require_jax()
        if not varies:  # constant fields: nothing to train
            nothing = jax.tree.map(np.zeros_like, initial(generator))
            return _Run(nothing, scaling, rows, validation, (), device.platform, 0, False)
        weights = jax.tree.map(lambda a: jax.numpy.asarray(a, recipe.dtype), initial(generator))
        watch = descent.Watch(recipe.patience, progress, recipe.stage.epochs)
        samples = descent.Samples(scaling.inputs(x), y, mean, scaling.output_scale[0], rows)
        best = descent.adam(
            lambda weights, t: forward(descent, weights, t), weights, samples, recipe.stage,
            validation=(scaling.inputs(validation[0]), validation[1]), seed=rng, device=device, watch=watch,
        )  # fmt: skip
        best = jax.tree.map(np.asarray, best)
        device = device.platform
    history = tuple(watch.history)
    return _Run(best, scaling, rows, validation, history, device, watch.best_epoch, watch.interrupted)


def _check_fields(x, y, validation):
    """Features as floats; fields as they are, checked a chunk at a time and never copied."""

    def checked(fields, name):
        fields = (
            fields if isinstance(fields, np.ndarray) and fields.dtype.kind == "f" else np.asarray(fields, dtype=float)
        )
        if fields.ndim != 2 or not fields.shape[1]:
            raise InputError(f"{name} has shape {fields.shape}, expected (n_samples, n_values).")
        bad = sum(int(np.sum(~np.isfinite(fields[i : i + 16]))) for i in range(0, len(fields), 16))
        if bad:
            raise InputError(
                f"{name} has {bad} of {fields.size} entries that are NaN or infinite. Repair or remove them first."
            )
        return fields

    y = checked(y, "y")
    if validation is not None:
        y_val = checked(validation[1], "validation y")
        if y_val.shape[1] != y.shape[1]:
            raise InputError(
                f"validation y has {y_val.shape[1]} values, y has {y.shape[1]}. Pass fields on the same nodes."
            )
        ones = (np.asarray(validation[0]), np.ones((len(y_val), 1)))
        x, _, pair = check_data(x, np.ones((len(y), 1)), ones)
        assert pair is not None
        return x, y, (pair[0], y_val)
    x, _, _ = check_data(x, np.ones((len(y), 1)))
    return x, y, None


def _modes(y, mean, n_modes: int) -> np.ndarray:
    """The leading singular vectors (n_values, n_modes) of centred fields, from the smaller of the two Gram matrices."""
    n, n_values = y.shape
    width = max(1, _CHUNK // n)
    parts = [slice(j, j + width) for j in range(0, n_values, width)]
    centred = [lambda s=s: np.asarray(y[:, s], dtype=float) - mean[s] for s in parts]  # made when asked for
    n_modes = min(n_modes, n, n_values)
    if n_values <= n:
        whole = np.concatenate([part() for part in centred], axis=1)
        return np.ascontiguousarray(_leading(whole.T @ whole, n_modes)[1])
    gram = np.zeros((n, n))
    for part in centred:
        a = part()
        gram += a @ a.T
    energy, vectors = _leading(gram, n_modes)
    kept = energy > 1e-14 * energy[0] if energy[0] > 0 else np.arange(len(energy)) == 0
    modes = np.concatenate([part().T @ vectors[:, kept] for part in centred])
    return np.linalg.qr(modes)[0]  # orthonormal again, which small eigenvalues have spoiled


def _leading(gram, n_modes: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues, falling, and their vectors."""
    energy, vectors = linalg.eigh(gram, subset_by_index=(len(gram) - n_modes, len(gram) - 1))
    return energy[::-1], vectors[:, ::-1]


def _layers(generator, counts) -> list[tuple[np.ndarray, np.ndarray]]:
    """He's initial weights, biases zero."""
    return [
        (generator.standard_normal((a, b), dtype=np.float32) * np.float32(np.sqrt(2 / a)), np.zeros(b, np.float32))
        for a, b in pairwise(counts)
    ]


def _hidden(layers, scaling: Scaling, activation: str) -> Network:
    """The network up to its last hidden layer, in double precision."""
    n = layers[-1][0].shape[0]
    return scaling.network([*layers[:-1], (np.eye(n), np.zeros(n))], None, activation, "float64", outputs=False)


def _solves(recipe, y) -> bool:
    return recipe.last_layer == "solved" or (recipe.last_layer == "auto" and y.size <= _SOLVABLE)


def _mean(y) -> np.ndarray:
    """Mean field, added up in double precision."""
    return np.sum([np.sum(y[i : i + 64], axis=0, dtype=float) for i in range(0, len(y), 64)], axis=0) / len(y)


def _error(predict, unseen) -> float:
    """Mean relative error on samples kept aside, a few fields at a time."""
    x, y = unseen
    rows = max(1, _CHUNK // y.shape[1])
    parts = [
        (len(x[i : i + rows]), mean_relative_error(predict(x[i : i + rows]), y[i : i + rows]))
        for i in range(0, len(x), rows)
    ]
    return float(sum(n * e for n, e in parts) / len(x))
