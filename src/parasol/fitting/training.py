"""Networks fitted to coefficients by gradients: settings as data, training in presets, the paper's and better ones."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from parasol.checks import Progress, check_choice, check_count, check_positive
from parasol.errors import InputError
from parasol.fitting.gaussian_process import GaussianProcess
from parasol.fitting.last_layer import solve_last_layer
from parasol.fitting.maps import Pair, check_data
from parasol.fitting.network import ACTIVATIONS, Network, NetworkMap
from parasol.fitting.scaling import Scaling, mean_relative_error

_SPREADS = (0.25, 0.5, 0.7, 1.0, 1.4)  # sizes of initial weights worth trying
_HELD_OUT = 0.15  # of the samples, where no validation is given
_FEW, _FEW_INPUTS = 600, 12  # samples and inputs up to which a Gaussian process may know better what lies between
_TAUGHT = 2048  # labels it gives


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
    check_every: int = 25

    def __post_init__(self):
        for name in ("iterations", "n_samples", "check_every"):
            check_count(getattr(self, name), name)
        check_positive(self.ridge, "ridge")

    @property
    def epochs(self) -> int:
        """An iteration sees all its samples."""
        return self.iterations


@dataclass(frozen=True, eq=False)
class TrainedNetwork(NetworkMap):
    """A network and how it came about; `validation_error` is the mean relative error of the outputs of samples unseen."""

    network: Network
    history: tuple[dict[str, float], ...]  # epoch, training and validation error (RMS in units of the output scale)
    seconds: float
    device: str
    best_epoch: int
    validation_error: float
    interrupted: bool = False


@dataclass(frozen=True)
class NetworkRecipe:
    """How to train a network: its hidden widths and activation, the stages of training, and what is solved, not trained.

    Inputs are mapped to [−1, 1]. `output_scaling` "global" divides all centred outputs by one number, which for
    coefficients of an orthonormal basis is the error of the field; "z-score" divides each by its deviation.
    `skip` adds a linear path. `last_layer="solved"` ends with exact least squares in float64, the ridge chosen on
    validation data, or by leaving samples out. `dtype` is what the network will be evaluated in: with "float32" the
    last layer is kept small enough for it. `initial_scale` None tries a few and keeps what a solved last layer makes
    the best of. The weights with the smallest validation error are kept; `patience` (epochs) stops training that no
    longer lowers it. `teacher`: with few samples (600) of few parameters (12) a Gaussian process fitted to them labels
    2048 more, if it errs less on samples kept aside than a network does. Without validation data 15 % of the samples are kept aside during training.

    >>> x = np.linspace(-1, 1, 60)[:, None]
    >>> wave = NetworkRecipe.best(widths=(8, 12), iterations=30).fit(x, np.sin(3 * x))
    >>> bool(abs(wave.predict([[0.123]])[0, 0] - np.sin(0.369)) < 1e-5)
    True
    """

    widths: tuple[int, ...] | None  # None: 32 and an eighth of the samples, 40 to 200
    stages: tuple[Adam | VariableProjection, ...]
    activation: str = "tanh"
    dtype: str = "float64"
    skip: bool = True
    output_scaling: str = "global"
    last_layer: str = "solved"
    initial_scale: float | None = None
    teacher: bool = False
    patience: int | None = None
    device: str = "auto"

    def __post_init__(self):
        if self.widths == ():
            raise InputError("widths=() has no hidden layer. Name at least one width, e.g. widths=(32, 200).")
        for width in self.widths or ():
            check_count(width, "widths")
        if not self.stages:
            raise InputError("stages=() trains nothing. Use (VariableProjection(),) or (Adam(),).")
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
            raise InputError('variable projection solves the last layer. Use last_layer="solved", or end with Adam.')

    @classmethod
    def paper(
        cls, *, epochs: int = 2000, batch_size: int = 100, z_score: bool = False, device: str = "auto"
    ) -> NetworkRecipe:
        """The paper's network and Adam (two hidden layers of 500 ReLU, rate 1e-4, mean squares, single precision), on scaled data
        and from He's weights. It states neither; `parasol paper --preset paper` trains on raw data."""
        stage = Adam(epochs, batch_size, 1e-4, "constant")
        scaling = "z-score" if z_score else "global"
        options = {"skip": False, "output_scaling": scaling, "last_layer": "trained", "device": device}
        return cls((500, 500), (stage,), "relu", "float32", **options)

    @classmethod
    def best(
        cls, *, widths: tuple[int, ...] | None = None, iterations: int = 150, dtype: str = "float64"
    ) -> NetworkRecipe:
        """The default: two hidden layers of tanh by variable projection, a linear path, the last layer solved; on the CPU."""
        return cls(widths, (VariableProjection(iterations),), dtype=dtype, teacher=True, patience=75, device="cpu")

    @classmethod
    def compact(
        cls, *, widths: tuple[int, ...] = (16, 32), iterations: int = 500, dtype: str = "float32"
    ) -> NetworkRecipe:
        """As `best`, but small: its forward pass costs less than the product of modes and coefficients after it."""
        return replace(cls.best(widths=widths, iterations=iterations, dtype=dtype), patience=None)

    def fit(
        self, x: ArrayLike, y: ArrayLike, *, validation: Pair = None, progress: Progress = None, rng: int = 0
    ) -> TrainedNetwork:
        """Train on inputs (n, p) and outputs (n, d); `validation` = (x, y), `progress` is called with the fraction done."""
        start = time.perf_counter()
        x, y, validation = check_data(x, y, validation)
        scaling = Scaling.of(x, y, self.output_scaling)
        if not scaling.varies:  # constant outputs: nothing to train
            layers = [(np.zeros((a, b)), np.zeros(b)) for a, b in self._shapes(x, y)]
            network = scaling.network(layers, None, self.activation, self.dtype)
            return TrainedNetwork(network, (), time.perf_counter() - start, "cpu", 0, 0.0)
        from parasol.fitting import descent  # JAX is imported here, and only by those who train

        descent.pick_device(self.device)
        generator = np.random.default_rng(rng)
        samples = (scaling.inputs(x), scaling.outputs(y))
        given = None if validation is None else (scaling.inputs(validation[0]), scaling.outputs(validation[1]))
        data = Data.of(*samples, given, generator)
        if self.teacher and len(x) <= _FEW and x.shape[1] <= _FEW_INPUTS:
            data = self._taught(data, generator)
        total = sum(stage.epochs for stage in self.stages)
        layers, skip = self._initial(data, generator), np.zeros((x.shape[1], y.shape[1]))
        history, watch, device = [], None, "cpu"
        for stage in self.stages:
            watch = descent.Watch(self.patience, progress, total, epoch=0 if watch is None else watch.epoch)
            if isinstance(stage, Adam):
                layers, skip, device = self._adam(stage, layers, skip, data, rng, watch)
            else:
                layers = self._projected(stage, layers, data, watch)
            history += watch.history
            if watch.interrupted:
                break
        assert watch is not None
        if self.last_layer == "solved":
            last = self._last(layers, data.seen, data.aside)
            layers, skip = [*layers[:-1], (last.weights, last.bias)], last.skip
        network = scaling.network(layers, skip if self.skip else None, self.activation, self.dtype)
        pairs = [(scaling.outputs(network(scaling.inputs_back(data.aside[0]))), data.aside[1]), *data.judged]
        error = max(mean_relative_error(*(scaling.outputs_back(u) for u in pair)) for pair in pairs)
        if self.last_layer == "solved" and data.reusable:  # judged; now the samples kept aside may help as well
            last = self._last(layers, data.all, None, like=last)
            layers = [*layers[:-1], (last.weights, last.bias)]
            network = scaling.network(layers, last.skip if self.skip else None, self.activation, self.dtype)
        if progress is not None:
            progress(1.0)
        seconds = time.perf_counter() - start
        return TrainedNetwork(network, tuple(history), seconds, device, watch.best_epoch, error, watch.interrupted)

    def untrained(self, x: ArrayLike, y: ArrayLike, *, rng: int = 0) -> Network:
        """The network before training: hidden layers drawn at random, the last one solved. It needs no JAX."""
        x, y, _ = check_data(x, y)
        scaling, generator = Scaling.of(x, y, self.output_scaling), np.random.default_rng(rng)
        data = Data.of(scaling.inputs(x), scaling.outputs(y), None, generator)
        layers = self._initial(data, generator)
        last = self._last(layers, data.seen, data.aside)
        layers = [*layers[:-1], (last.weights, last.bias)]
        return scaling.network(layers, last.skip if self.skip else None, self.activation, self.dtype)

    def _shapes(self, x, y) -> list[tuple[int, int]]:
        widths = self.widths or (32, int(np.clip(len(x) // 8, 40, 200)))
        counts = (x.shape[1], *widths, y.shape[1])
        return list(pairwise(counts))

    def _taught(self, data: Data, generator) -> Data:
        """With few samples: labels between them by a Gaussian process, if it errs less on the samples kept aside."""
        from scipy.stats import qmc  # here: it takes a second to import

        process = GaussianProcess().fit(*data.seen)
        predicted = process.predict(data.aside[0])
        error = np.sqrt(np.mean((predicted - data.aside[1]) ** 2))
        if error >= self._last(self._initial(data, generator), data.seen, data.aside).error:
            return data
        if data.reusable:
            process = GaussianProcess().fit(*data.all)
        n_inputs = data.seen[0].shape[1]
        drawn = qmc.Sobol(n_inputs, rng=generator).random(_TAUGHT) * 2.1 - 1.05  # the samples' box, and a little more
        taught = Data.of(drawn, process.predict(drawn), None, generator)
        return replace(taught, judged=((predicted, data.aside[1]),))

    def _initial(self, data: Data, generator) -> list[tuple[np.ndarray, np.ndarray]]:
        """Layers drawn at random: He's for relu and its kind. For tanh and few samples, as spread as a solved last layer
        likes best; many samples train a start that bends more to smaller errors than the one that starts best."""
        shapes = self._shapes(*data.all)
        normal = [generator.standard_normal(shape) for shape in shapes]
        uniform = [generator.uniform(-1, 1, shape[1]) for shape in shapes]
        sizes = [1 / np.sqrt(shape[0]) for shape in shapes]
        if self.activation != "tanh":
            return [(np.sqrt(2) * s * w, s * b) for w, b, s in zip(normal, uniform, sizes, strict=True)]
        sizes[0] = np.sqrt(1 / 3 / np.mean(np.sum(data.seen[0] ** 2, axis=1)))  # inputs uniform in [−1, 1]: 1/√p again

        def drawn(spread):
            return [(spread * s * w, spread * b) for w, b, s in zip(normal, uniform, sizes, strict=True)]

        if self.initial_scale is not None:
            return drawn(self.initial_scale)
        if len(data.seen[0]) > 4 * shapes[-1][0]:
            return drawn(1.0)
        return drawn(min(_SPREADS, key=lambda spread: self._last(drawn(spread), data.seen, data.aside).error))

    def _hidden(self, layers, t) -> np.ndarray:
        """Outputs of the last hidden layer."""
        n = layers[-1][0].shape[0]
        weights = (*[np.asarray(w.T, dtype=float) for w, _ in layers[:-1]], np.eye(n))
        biases = (*[np.asarray(b, dtype=float) for _, b in layers[:-1]], np.zeros(n))
        return Network(weights, biases, self.activation)(t)

    def _last(self, layers, seen, unseen, like=None):
        """The last layer by least squares."""
        held = None
        if unseen is not None:
            held = (self._hidden(layers, unseen[0]), *((unseen[0],) if self.skip else ()), unseen[1])
        noise = float(np.finfo(self.dtype).eps) / 2
        inputs = seen[0] if self.skip else None
        return solve_last_layer(
            self._hidden(layers, seen[0]), seen[1], inputs=inputs, validation=held, like=like, noise=noise
        )

    def _adam(self, stage, layers, skip, data: Data, rng, watch):
        from parasol.fitting import descent

        with descent.computing(self.dtype, self.device) as device:
            weights = {"layers": [(w.astype(self.dtype), b.astype(self.dtype)) for w, b in layers]}
            if self.skip:
                weights["skip"] = skip.astype(self.dtype)

            def forward(weights, x):
                out = descent.perceptron(weights["layers"], x, self.activation)
                return out + x @ weights["skip"] if self.skip else out

            best = descent.adam(
                forward, weights, descent.Samples(*data.seen), stage,
                validation=data.aside, seed=rng, device=device, watch=watch,
            )  # fmt: skip
            layers = [(np.asarray(w), np.asarray(b)) for w, b in best["layers"]]
            return layers, np.asarray(best["skip"]) if self.skip else skip, device.platform

    def _projected(self, stage, layers, data: Data, watch):
        from parasol.fitting import descent

        some, more = ((data.seen[0][:n], data.seen[1][:n]) for n in (stage.n_samples, 6 * stage.n_samples))
        aside = (data.aside[0][:1000], data.aside[1][:1000])
        ridge = max(stage.ridge, float(np.finfo(self.dtype).eps / 2) ** 2)
        n_columns = layers[-1][0].shape[0] + (some[0].shape[1] if self.skip else 0) + 1
        if len(some[0]) < 2 * n_columns:  # too few to tell fit from truth: as smooth as samples not used would have it
            ridge = max(ridge, self._last(layers, some, aside).ridge)
        with descent.computing("float64", "cpu"):
            hidden = descent.variable_projection(
                layers[:-1], *some, replace(stage, ridge=ridge), self.activation,
                skip=self.skip, more=more, validation=aside, watch=watch,
            )  # fmt: skip
        return [*hidden, layers[-1]]


@dataclass(frozen=True, eq=False)
class Data:
    """Scaled samples (inputs, outputs): `seen` by training, in random order, and those kept `aside`."""

    seen: tuple[np.ndarray, np.ndarray]
    aside: tuple[np.ndarray, np.ndarray]
    reusable: bool  # those aside may be used in the end: they are not the caller's validation data
    judged: tuple[tuple[np.ndarray, np.ndarray], ...] = ()  # predicted and true outputs that tell a teacher's error

    @property
    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """What may be used for the last layer."""
        if not self.reusable:
            return self.seen
        return np.concatenate([self.seen[0], self.aside[0]]), np.concatenate([self.seen[1], self.aside[1]])

    @classmethod
    def of(cls, t, u, validation, generator) -> Data:
        """Shuffled samples; without validation data some are kept aside."""
        order = generator.permutation(len(t))
        if validation is not None:
            return cls((t[order], u[order]), validation, False)
        n = min(max(1, round(_HELD_OUT * len(t))), 1000)
        return cls((t[order[n:]], u[order[n:]]), (t[order[:n]], u[order[:n]]), True)
