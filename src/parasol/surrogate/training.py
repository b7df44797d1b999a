"""Networks fitted to coefficients by gradients: settings as data, training in two presets, the paper's and ours."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from parasol.checks import ParasolError, check_choice, check_count, check_positive
from parasol.networks.network import ACTIVATIONS, Network
from parasol.surrogate.last_layer import solve_last_layer
from parasol.surrogate.linear import check_data, check_inputs

_SPREADS = (0.25, 0.5, 0.7, 1.0, 1.4)  # sizes of initial weights worth trying
_HELD_OUT = 0.15  # of the samples, where no validation is given


@dataclass(frozen=True)
class Adam:
    """Adam on shuffled batches; the rate stays constant or falls along a cosine to a thousandth."""

    epochs: int = 2000
    batch_size: int = 100
    learning_rate: float = 1e-3
    schedule: str = "cosine"

    def __post_init__(self):
        check_count(self.epochs, "epochs")
        check_count(self.batch_size, "batch_size")
        check_positive(self.learning_rate, "learning_rate")
        check_choice(self.schedule, ("constant", "cosine"), "schedule")


@dataclass(frozen=True)
class VariableProjection:
    """L-BFGS in float64 on the hidden layers, the last one eliminated by least squares at every step.

    On at most `n_samples` samples drawn at random (the others validate); `ridge` per sample, in units of the targets.
    """

    iterations: int = 150
    n_samples: int = 1000
    ridge: float = 1e-22
    check_every: int = 10

    def __post_init__(self):
        for name in ("iterations", "n_samples", "check_every"):
            check_count(getattr(self, name), name)
        check_positive(self.ridge, "ridge")

    @property
    def epochs(self) -> int:
        """An iteration sees all its samples."""
        return self.iterations


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network and how it came about; `validation_error` is the mean relative error of the outputs of samples unseen."""

    network: Network
    history: tuple[dict[str, float], ...]  # epoch, training and validation error (RMS in units of the output scale)
    seconds: float
    device: str
    best_epoch: int
    validation_error: float
    interrupted: bool = False

    def predict(self, x) -> np.ndarray:
        """Outputs (n, d) of inputs (n, p)."""
        return self.network(check_inputs(x, self.network.n_inputs))

    def jacobian(self, x) -> np.ndarray:
        """Derivatives (n, d, p)."""
        return self.network.jacobian(check_inputs(x, self.network.n_inputs))


@dataclass(frozen=True)
class NetworkRecipe:
    """How to train a network: its hidden widths and activation, the stages of training, and what is solved, not trained.

    Inputs are mapped to [−1, 1]. `output_scaling` "global" divides all centred outputs by one number, which for
    coefficients of an orthonormal basis is the error of the field; "z-score" divides each by its deviation.
    `skip` adds a linear path. `last_layer="solved"` ends with exact least squares in float64, the ridge chosen on
    validation data, or by leaving samples out. `dtype` is what the network will be evaluated in: with "float32" the
    last layer is kept small enough for it. `initial_scale` None tries a few and keeps what a solved last layer makes
    the best of. The weights with the smallest validation error are kept; `patience` (epochs) stops training that no
    longer lowers it. Without validation data 15 % of the samples are kept aside during training.

    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> wave = NetworkRecipe.best(widths=(8, 12), iterations=30).fit(x, np.sin(3 * x))
    >>> bool(abs(wave.predict([[0.123]])[0, 0] - np.sin(0.369)) < 1e-5)
    True
    """

    widths: tuple[int, ...]
    stages: tuple[Adam | VariableProjection, ...]
    activation: str = "tanh"
    dtype: str = "float64"
    skip: bool = True
    output_scaling: str = "global"
    last_layer: str = "solved"
    initial_scale: float | None = None
    patience: int | None = None
    device: str = "auto"

    def __post_init__(self):
        if not self.widths:
            raise ParasolError("widths=() has no hidden layer. Name at least one width, e.g. widths=(32, 200).")
        for width in self.widths:
            check_count(width, "widths")
        if not self.stages:
            raise ParasolError("stages=() trains nothing. Use (VariableProjection(),) or (Adam(),).")
        check_choice(self.activation, ACTIVATIONS, "activation")
        check_choice(self.dtype, ("float32", "float64"), "dtype")
        check_choice(self.output_scaling, ("global", "z-score"), "output_scaling")
        check_choice(self.last_layer, ("trained", "solved"), "last_layer")
        check_choice(self.device, ("auto", "cpu", "gpu"), "device")
        if self.patience is not None:
            check_count(self.patience, "patience")
        if self.initial_scale is not None:
            check_positive(self.initial_scale, "initial_scale")
        if self.last_layer == "trained" and not isinstance(self.stages[-1], Adam):
            raise ParasolError('variable projection solves the last layer. Use last_layer="solved", or end with Adam.')

    @classmethod
    def paper(cls, *, epochs: int = 2000, batch_size: int = 100, z_score: bool = False, device: str = "auto"):
        """The paper's: two hidden layers of 500 ReLU, Adam at 1e-4, mean squares, single precision."""
        stage = Adam(epochs, batch_size, 1e-4, "constant")
        scaling = "z-score" if z_score else "global"
        return cls(
            (500, 500), (stage,), "relu", "float32", skip=False, output_scaling=scaling, last_layer="trained", device=device
        )

    @classmethod
    def best(cls, *, widths: tuple[int, ...] = (32, 200), iterations: int = 150, dtype: str = "float64"):
        """Ours: two hidden layers of tanh by variable projection, a linear path, the last layer solved; on the CPU."""
        return cls(tuple(widths), (VariableProjection(iterations),), dtype=dtype, device="cpu")

    @classmethod
    def compact(cls, *, widths: tuple[int, ...] = (16, 32), iterations: int = 500, dtype: str = "float32"):
        """As `best`, but small: its forward pass costs less than the product of modes and coefficients after it."""
        return cls.best(widths=widths, iterations=iterations, dtype=dtype)

    def fit(
        self, x, y, *, validation=None, progress: Callable[[float], Any] | None = None, rng: int = 0
    ) -> TrainedNetwork:
        """Train on inputs (n, p) and outputs (n, d); `validation` = (x, y), `progress` is told the fraction done."""
        start = time.perf_counter()
        x, y, validation = check_data(x, y, validation)
        scaling = Scaling.of(x, y, self.output_scaling)
        if not scaling.varies:  # constant outputs: nothing to train
            network = scaling.network([(np.zeros((a, b)), np.zeros(b)) for a, b in self._shapes(x, y)], None, self)
            return TrainedNetwork(network, (), time.perf_counter() - start, "cpu", 0, 0.0)
        from parasol.surrogate import descent  # JAX is imported here, and only by those who train

        descent.pick_device(self.device)
        generator = np.random.default_rng(rng)
        t, u = scaling.inputs(x), scaling.outputs(y)
        order = generator.permutation(len(t))
        if validation is None:
            n_aside = max(1, round(_HELD_OUT * len(t)))
            aside = (t[order[:n_aside]], u[order[:n_aside]])
            rows = order[n_aside:] if len(t) > 2 else order
        else:
            aside = (scaling.inputs(validation[0]), scaling.outputs(validation[1]))
            rows = order
        total = sum(stage.epochs for stage in self.stages)
        layers, skip = self._initial(t, u, rows, aside, generator), np.zeros((t.shape[1], u.shape[1]))
        history, watch, device = [], None, "cpu"
        for stage in self.stages:
            watch = descent.Watch(self.patience, progress, epoch=0 if watch is None else watch.epoch)
            if isinstance(stage, Adam):
                layers, skip, device = self._adam(stage, layers, skip, t[rows], u[rows], aside, rng, watch, total)
            else:
                layers = self._projected(stage, layers, t, u, rows, aside, validation is None, watch, total)
            history += watch.history
            if watch.interrupted:
                break
        assert watch is not None
        if self.last_layer == "solved":
            layers, skip = self._solved(layers, t, u, aside if validation is not None else None)
        network = scaling.network(layers, skip if self.skip else None, self)
        back = (aside[0] / scaling.input_scale + scaling.input_shift, aside[1] * scaling.output_scale + scaling.output_shift)
        if progress is not None:
            progress(1.0)
        return TrainedNetwork(
            network, tuple(history), time.perf_counter() - start, device, watch.best_epoch,
            mean_relative_error(network(back[0]), back[1]), watch.interrupted,
        )  # fmt: skip

    def _shapes(self, x, y) -> list[tuple[int, int]]:
        counts = (x.shape[1], *self.widths, y.shape[1])
        return list(zip(counts[:-1], counts[1:], strict=True))

    def _initial(self, t, u, rows, aside, generator) -> list[tuple[np.ndarray, np.ndarray]]:
        """Layers drawn at random: He's for relu and its kind; for tanh a spread that a solved last layer likes best."""
        shapes = self._shapes(t, u)
        normal = [generator.standard_normal(shape) for shape in shapes]
        uniform = [generator.uniform(-1, 1, shape[1]) for shape in shapes]
        sizes = [1 / np.sqrt(shape[0]) for shape in shapes]
        if self.activation != "tanh":
            return [(np.sqrt(2) * s * w, s * b) for w, b, s in zip(normal, uniform, sizes, strict=True)]
        sizes[0] = np.sqrt(1 / 3 / np.mean(np.sum(t**2, axis=1)))  # inputs uniform in [−1, 1]: 1/√p again
        some, few = rows[:1000], tuple(a[:1000] for a in aside)

        def drawn(spread):
            return [(spread * s * w, spread * b) for w, b, s in zip(normal, uniform, sizes, strict=True)]

        def error(spread):
            return self._last(drawn(spread)[:-1], t[some], u[some], few).error

        spreads = _SPREADS if self.initial_scale is None else (self.initial_scale,)
        return drawn(min(spreads, key=error) if len(spreads) > 1 else spreads[0])

    def _hidden(self, hidden, t) -> np.ndarray:
        """Outputs of the last hidden layer."""
        n = hidden[-1][1].size
        weights, biases = (*[w.T for w, _ in hidden], np.eye(n)), (*[b for _, b in hidden], np.zeros(n))
        return Network(weights, biases, self.activation)(t)

    def _last(self, hidden, t, u, unseen):
        """The last layer by least squares."""
        inputs = t if self.skip else None
        held = None
        if unseen is not None:
            held = (self._hidden(hidden, unseen[0]), *((unseen[0],) if self.skip else ()), unseen[1])
        noise = float(np.finfo(self.dtype).eps) / 2
        return solve_last_layer(self._hidden(hidden, t), u, inputs=inputs, validation=held, noise=noise)

    def _solved(self, layers, t, u, unseen):
        hidden = [(np.asarray(w, dtype=float), np.asarray(b, dtype=float)) for w, b in layers[:-1]]
        last = self._last(hidden, t, u, unseen)
        return [*hidden, (last.weights, last.bias)], last.skip

    def _adam(self, stage, layers, skip, t, u, aside, rng, watch, total):
        from parasol.surrogate import descent

        with descent.computing(self.dtype, self.device) as device:
            weights = {"layers": [(w.astype(self.dtype), b.astype(self.dtype)) for w, b in layers]}
            if self.skip:
                weights["skip"] = skip.astype(self.dtype)

            def forward(weights, x):
                out = descent.perceptron(weights["layers"], x, self.activation)
                return out + x @ weights["skip"] if self.skip else out

            best = descent.adam(
                forward, weights, t, u, 0.0, 1.0, stage,
                validation=aside, seed=rng, device=device, watch=watch, total=total,
            )  # fmt: skip
            layers = [(np.asarray(w), np.asarray(b)) for w, b in best["layers"]]
            return layers, np.asarray(best["skip"]) if self.skip else skip, device.platform

    def _projected(self, stage, layers, t, u, rows, aside, all_ours, watch, total):
        from parasol.surrogate import descent

        if len(rows) > stage.n_samples and all_ours:  # samples not used for the steps judge them as well
            rows, spare = rows[: stage.n_samples], rows[stage.n_samples :][:1000]
            aside = tuple(np.concatenate(pair) for pair in zip(aside, (t[spare], u[spare]), strict=True))
        rows = rows[: stage.n_samples]
        aside = tuple(a[:2000] for a in aside)
        ridge = max(stage.ridge, float(np.finfo(self.dtype).eps / 2) ** 2)
        n_columns = layers[-1][0].shape[0] + (t.shape[1] if self.skip else 0) + 1
        if len(rows) < 2 * n_columns:  # too few to tell fit from truth: as smooth as data not used would have it
            ridge = max(ridge, self._last(layers[:-1], t[rows], u[rows], aside).ridge / len(rows))
        with descent.computing("float64", "cpu"):
            hidden = descent.variable_projection(
                layers[:-1], t[rows], u[rows], replace(stage, ridge=ridge), self.activation,
                skip=self.skip, validation=aside, watch=watch, total=total,
            )  # fmt: skip
        return [*hidden, layers[-1]]


@dataclass(frozen=True, eq=False)
class Scaling:
    """Inputs to [−1, 1], outputs centred and divided by one number, or each by its own."""

    input_shift: np.ndarray
    input_scale: np.ndarray
    output_shift: np.ndarray
    output_scale: np.ndarray
    varies: bool

    @classmethod
    def of(cls, x, y, output_scaling: str) -> Scaling:
        low, high = x.min(axis=0), x.max(axis=0)
        half = np.where(high > low, (high - low) / 2, 1.0)
        mean, deviation = y.mean(axis=0), y.std(axis=0)
        rounding = 1e-15 * np.max(np.abs(y), initial=0.0)
        one = float(np.sqrt(np.mean(deviation**2)))
        varies = one > rounding
        scale = np.where(deviation > rounding, deviation, 1.0) if output_scaling == "z-score" else np.full(len(mean), one)
        return cls((low + high) / 2, 1 / half, mean, scale if varies else np.ones(len(mean)), varies)

    def inputs(self, x) -> np.ndarray:
        return (x - self.input_shift) * self.input_scale

    def outputs(self, y) -> np.ndarray:
        return (y - self.output_shift) / self.output_scale

    def network(self, layers, skip, recipe: NetworkRecipe) -> Network:
        """The trained layers, W of shape (n_in, n_out), with these scalings."""
        weights = tuple(np.ascontiguousarray(w.T, dtype=float) for w, _ in layers)
        biases = tuple(np.asarray(b, dtype=float) for _, b in layers)
        path = None if skip is None else np.ascontiguousarray(skip.T, dtype=float)
        scalings = (self.input_shift, self.input_scale, self.output_shift, self.output_scale)
        return Network(weights, biases, recipe.activation, path, *scalings).astype(recipe.dtype)


def mean_relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    """Mean over samples of ‖found − expected‖ / ‖expected‖; samples that are zero count with the norm of the largest."""
    size = np.linalg.norm(expected, axis=1)
    size = np.where(size > 0, size, np.max(size, initial=0.0) or 1.0)
    return float(np.mean(np.linalg.norm(found - expected, axis=1) / size))
