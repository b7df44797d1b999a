"""Networks that learn whole fields: without a reduced basis (DNN), and DeepONets; baselines to compare POD-DNN with.

Fair: one scale for all outputs around their mean, smooth activations, Adam with a rate that falls along a cosine, and
the last linear layer solved at the end where its size allows; or as the paper has it, in one of several readings.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

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
from parasol_lab.paper.together import OURS, Reading, Trained, mean_of, train

_SOLVABLE = 2 * 10**7  # values in the fields, above which the last layer is left as trained
_CHUNK = 2**24  # values handled at a time


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
    """A network from features straight to outputs: to nodal values without POD, as large as the mesh (165 million weights for
    the sine-Gordon trajectories, which is work for a GPU), or to the coefficients of a basis, as the paper's POD-DNN.

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
    device: str = "auto"
    reading: Reading = OURS

    @classmethod
    def paper(
        cls, *, epochs: int = 2000, batch_size: int = 100, reading: Reading | None = None, device: str = "auto"
    ) -> DirectNetwork:
        """The paper's: 500-500 ReLU, Adam at 1e-4; what it leaves open is in `reading`."""
        stage = Adam(epochs, batch_size, 1e-4, "constant")
        return cls((500, 500), stage, "relu", last_layer="trained", device=device, reading=reading or Reading())

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0) -> TrainedNetwork:
        """Train on features (n, p) and fields (n, n_values), any float type or a memory map."""
        return _fit_one(self, x, y, validation, progress, rng)

    def initial(self, generator, n_inputs: int, n_outputs: int):
        """The first weights."""
        return self.reading.layers(generator, (n_inputs, *self.widths, n_outputs))

    def forward(self, descent, weights, t):
        """Scaled outputs of scaled inputs."""
        return descent.perceptron(weights, t, self.activation)

    def mapped(self, run: Trained, weights, x, y) -> TrainedNetwork:
        """The map with these weights; the last layer solved on the samples (x, y) where it is to be."""
        layers = [(np.asarray(w), np.asarray(b)) for w, b in weights]
        if _solves(self, y):
            hidden = _hidden(layers, run.scaling, self.activation)
            last = solve_last_layer(
                hidden(x[run.rows]), run.scaling.outputs(y[run.rows]),
                validation=(hidden(run.aside[0]), run.scaling.outputs(run.aside[1])), noise=float(np.finfo(self.dtype).eps) / 2,
            )  # fmt: skip
            layers[-1] = (last.weights, last.bias)
        network = run.scaling.network(layers, None, self.activation, self.dtype)
        error = _error(network, run.aside)
        return TrainedNetwork(network, run.history, run.seconds, run.device, run.best_epoch, error)


@dataclass(frozen=True, eq=False)
class DeepONet:
    """Unstacked DeepONet: u(x)(z) = Σ_k b_k(x) t_k(z) + b_0, branch b on features, trunk t on coordinates z.

    All samples share the nodes, so the trunk is evaluated once per step. `points` are the nodes' coordinates
    (n_values, dim), with the time as one more where the fields are trajectories.
    """

    rounded: ClassVar[bool] = True  # the trunk at all nodes in every step is too much for a GPU's full precision

    points: np.ndarray
    n_terms: int = 128
    widths: tuple[int, ...] = (500, 500)
    stage: Adam = field(default_factory=lambda: Adam(2000, 100, 1e-3, "cosine"))
    activation: str = "silu"
    dtype: str = "float32"
    last_layer: str = "auto"
    device: str = "auto"
    reading: Reading = OURS
    scale_points: bool = True  # coordinates to [−1, 1]

    def __post_init__(self):
        check_count(self.n_terms, "n_terms")
        check_shape(self.points, (None, None), "points")

    def fit(self, x, y, *, validation=None, progress=None, rng: int = 0) -> TrainedOperator:
        """Train on features (n, p) and fields (n, n_values)."""
        return _fit_one(self, x, y, validation, progress, rng)

    @cached_property
    def _places(self) -> Scaling:
        """The scale of the coordinates."""
        reading = OURS if self.scale_points else Reading()
        return reading.scaling(np.asarray(self.points, dtype=float), np.zeros((len(self.points), 1)))

    def initial(self, generator, n_inputs: int, n_outputs: int):
        """The first weights."""
        check_shape(self.points, (n_outputs, None), "points")
        layers = self.reading.layers(generator, (n_inputs, *self.widths, self.n_terms))
        if self.reading.initial == "He":  # else the sum of all terms begins at √n_terms
            layers[-1] = (layers[-1][0] / np.sqrt(self.n_terms), layers[-1][1] * 0)
        trunk = self.reading.layers(generator, (np.shape(self.points)[1], *self.widths, self.n_terms))
        return {"branch": layers, "trunk": trunk, "bias": np.zeros(1)}

    def forward(self, descent, weights, t):
        """Scaled fields of scaled inputs."""
        z = self._places.inputs(np.asarray(self.points, dtype=float)).astype(self.dtype)
        modes = descent.perceptron(weights["trunk"], z, self.activation, last_active=True)
        return descent.perceptron(weights["branch"], t, self.activation) @ modes.T + weights["bias"]

    def mapped(self, run: Trained, weights, x, y) -> TrainedOperator:
        """The map with these weights; the last layer of the branch solved on the samples (x, y) where it is to be."""
        trained = {k: [tuple(np.asarray(a) for a in layer) for layer in weights[k]] for k in ("branch", "trunk")}
        active = [*trained["trunk"], (np.eye(self.n_terms), np.zeros(self.n_terms))]  # its last layer is active as well
        trunk = self._places.network(active, None, self.activation, "float64", outputs=False)
        values = np.concatenate([trunk(self.points[i : i + 20000]) for i in range(0, len(self.points), 20000)])
        bias, layers = float(np.asarray(weights["bias"])[0]), trained["branch"]
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
        scale = run.scaling.output_scale[:, None]
        shift = (run.scaling.output_shift + run.scaling.output_scale * bias).astype(self.dtype)
        fitted = (
            net,
            (scale * values).astype(self.dtype),
            shift,
            trunk,
            run.history,
            run.seconds,
            run.device,
            run.best_epoch,
        )
        error = _error(TrainedOperator(*fitted, 0.0).predict, run.aside)
        return TrainedOperator(*fitted, error)


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
        mean = mean_of(y)
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


def fit_together(recipes, xs, y, validation, seeds, *, progress=None, state=None) -> list[dict[str, Any]]:
    """Maps of recipes that differ in their readings and seeds, trained at once on the same outputs y (n, d).

    `xs` are the inputs (n, p) of each, `validation` = (inputs of each, outputs). For each recipe there are two maps: "best" by
    validation error, and "last".
    """
    for recipe in recipes:
        check_choice(recipe.dtype, ("float32", "float64"), "dtype")
        check_choice(recipe.last_layer, ("auto", "trained", "solved"), "last_layer")
        check_choice(recipe.device, ("auto", "cpu", "gpu"), "device")
    runs = train(recipes, xs, y, validation, seeds, progress=progress, state=state)
    return [
        {
            name: recipe.mapped(run, getattr(run, name), x, y)
            for name in (("best", "last") if recipe.last_layer == "trained" and y.size <= _SOLVABLE else ("best",))
        }
        for recipe, run, x in zip(recipes, runs, xs, strict=True)
    ]


def _fit_one(recipe, x, y, validation, progress, rng: int) -> Any:
    """One recipe, one seed, the best weights."""
    x, y, validation = _check_fields(x, y, validation)
    unseen = None if validation is None else ([validation[0]], validation[1])
    return fit_together([recipe], [x], y, unseen, [rng], progress=progress)[0]["best"]


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


def _hidden(layers, scaling: Scaling, activation: str) -> Network:
    """The network up to its last hidden layer, in double precision."""
    n = layers[-1][0].shape[0]
    return scaling.network([*layers[:-1], (np.eye(n), np.zeros(n))], None, activation, "float64", outputs=False)


def _solves(recipe, y) -> bool:
    return recipe.last_layer == "solved" or (recipe.last_layer == "auto" and y.size <= _SOLVABLE)


def _error(predict, unseen) -> float:
    """Mean relative error on samples kept aside, a few fields at a time."""
    x, y = unseen
    rows = max(1, _CHUNK // y.shape[1])
    parts = [
        (len(x[i : i + rows]), mean_relative_error(predict(x[i : i + rows]), y[i : i + rows]))
        for i in range(0, len(x), rows)
    ]
    return float(sum(n * e for n, e in parts) / len(x))
