"""Gradient training, compiled: the one module that imports JAX and optax, and only when something is trained."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from parasol import devices
from parasol.checks import Progress
from parasol.devices import computing as computing
from parasol.errors import NotInstalled, ParasolWarning

_RESIDENT = {"cpu": 2**29, "gpu": 2**34}  # bytes of targets kept on the device; more are sent a batch at a time


def require_jax():
    """JAX, or one line that says how to get it."""
    try:
        import jax
        import optax  # noqa: F401
    except ImportError:
        raise NotInstalled("training needs JAX and optax. Run: pip install 'parasol-pde[train]'") from None
    return jax


def pick_device(device: str):
    """The JAX device for "auto" (a GPU if there is one), "cpu" or "gpu"; refused where training is not possible at all."""
    require_jax()
    return devices.pick_device(device)


@dataclass
class Watch:
    """What happened so far: the best weights by validation, the history, and whether to go on."""

    patience: int | None = None  # epochs without a better validation error
    progress: Progress = None
    total: int = 1  # epochs of all stages
    history: list[dict[str, float]] = field(default_factory=list)
    best: Any = None
    best_epoch: int = 0
    best_error: float = np.inf
    epoch: int = 0
    interrupted: bool = False

    def see(self, epoch: int, training: float, validation: float, weights) -> bool:
        """Note the errors (RMS, in units of the output scale) after an epoch; True if the stage should end."""
        self.epoch = epoch
        self.history.append({"epoch": epoch, "training": float(training), "validation": float(validation)})
        if validation < self.best_error:
            self.best, self.best_epoch, self.best_error = weights, epoch, float(validation)
        if self.progress is not None:
            self.progress(min(epoch / self.total, 1.0))
        if not np.isfinite(training):
            warnings.warn("training diverged; the best weights so far are kept.", ParasolWarning, stacklevel=4)
            return True
        return self.patience is not None and epoch - self.best_epoch >= self.patience

    @contextmanager
    def interruptible(self):
        """Ctrl-C ends the training, not the program: the best weights so far are the answer."""
        try:
            yield
        except KeyboardInterrupt:
            if self.best is None:
                raise
            self.interrupted = True
            warnings.warn(
                f"interrupted after epoch {self.epoch}; the best weights so far are kept.", ParasolWarning, stacklevel=4
            )


def activation_of(name: str):
    """The activation as a JAX function; the same formulas as in runtime/operations.py."""
    jax = require_jax()
    return {"relu": jax.nn.relu, "tanh": jax.numpy.tanh, "silu": jax.nn.silu, "gelu": jax.nn.gelu}[name]


def perceptron(layers, x, activation: str, *, last_active: bool = False):
    """x → W_L σ(… σ(x W_1 + b_1) …) + b_L for layers [(W, b), ...], W of shape (n_in, n_out)."""
    act = activation_of(activation)
    for i, (w, b) in enumerate(layers):
        x = x @ w + b
        if last_active or i < len(layers) - 1:
            x = act(x)
    return x


@dataclass(frozen=True, eq=False)
class Samples:
    """Inputs (n, p) and targets (n, d), which are trained as (y − shift) / scale; `rows` are those to use (all)."""

    x: np.ndarray
    y: np.ndarray
    shift: Any = 0.0
    scale: Any = 1.0
    rows: np.ndarray | None = None


def adam(forward, weights, samples: Samples, stage, *, validation, seed: int, device, watch: Watch):
    """Minimise the mean of (forward(weights, x) − (y − shift)/scale)² over shuffled batches by Adam.

    Between chunks of epochs the validation error is taken, weights are kept if best, and the caller may interrupt. The
    best weights end up in `watch`. Targets too large for the device stay in the host's memory and travel a batch at a time.
    """
    import jax
    import jax.numpy as jnp
    import optax

    dtype = jax.tree.leaves(weights)[0].dtype
    rows = np.arange(len(samples.x)) if samples.rows is None else samples.rows
    batch = min(stage.batch_size, len(rows))
    rate = stage.learning_rate
    if stage.schedule == "cosine":
        rate = optax.cosine_decay_schedule(rate, len(rows) // batch * stage.epochs, alpha=1e-3)
    optimiser = optax.adam(rate)
    shift, scale = jnp.asarray(samples.shift, dtype), jnp.asarray(samples.scale, dtype)

    def squares(weights, xb, yb):
        return (forward(weights, xb) - (yb - shift) / scale) ** 2

    def step(weights, state, xb, yb):
        value, slope = jax.value_and_grad(lambda *a: jnp.mean(squares(*a)))(weights, xb, yb)
        change, state = optimiser.update(slope, state, weights)
        return optax.apply_updates(weights, change), state, value

    total = jax.jit(lambda *a: jnp.sum(squares(*a)))

    def error(weights, x, y):
        n = max(1, min(len(x), 2**26 // max(y.shape[1], 1)))
        pairs = [(x[i : i + n], y[i : i + n]) for i in range(0, len(x), n)]
        parts = [float(total(weights, jnp.asarray(xb, dtype), jnp.asarray(yb, dtype))) for xb, yb in pairs]
        return float(np.sqrt(sum(parts) / y.size))

    kind = device.platform if device.platform in _RESIDENT else "gpu"
    resident = samples.y.size * np.dtype(dtype).itemsize <= _RESIDENT[kind]
    loop = _resident_epochs if resident else _streamed_epochs
    start = watch.epoch
    with watch.interruptible():
        chunks = loop(step, weights, optimiser.init(weights), samples, rows, batch, stage.epochs, seed)
        for done, value, weights in chunks:
            missed = error(weights, *validation)
            best = jax.tree.map(jnp.copy, weights) if missed < watch.best_error else None  # the loop reuses its memory
            if watch.see(start + done, float(jnp.sqrt(value)), missed, best):
                break
    return watch.best


def _resident_epochs(step, weights, state, samples: Samples, rows, batch: int, epochs: int, seed: int) -> Iterator:
    """Epochs done, the mean loss of the last one and the weights, after each chunk of epochs: one compiled loop.

    An epoch is a scan over its batches.
    """
    import jax
    import jax.numpy as jnp

    dtype = jax.tree.leaves(weights)[0].dtype
    n, steps = len(rows), len(rows) // batch
    xs, ys = jnp.asarray(samples.x[rows], dtype), jnp.asarray(samples.y[rows], dtype)

    @jax.jit
    def run(weights, state, key, xs, ys, count):
        def one(carry, batch):
            weights, state, value = step(carry[0], carry[1], xs[batch], ys[batch])
            return (weights, state), value

        def epoch(i, carry):
            weights, state, key, _ = carry
            key, use = jax.random.split(key)
            order = jax.random.permutation(use, n)[: steps * batch].reshape(steps, batch)
            (weights, state), values = jax.lax.scan(one, (weights, state), order)
            return weights, state, key, jnp.mean(values)

        return jax.lax.fori_loop(0, count, epoch, (weights, state, key, jnp.zeros((), dtype)))

    key, done, chunk = jax.random.key(seed), 0, max(1, epochs // 100)
    while done < epochs:
        count = min(chunk, epochs - done)
        weights, state, key, value = run(weights, state, key, xs, ys, count)
        done += count
        yield done, value, weights


def _streamed_epochs(step, weights, state, samples: Samples, rows, batch: int, epochs: int, seed: int) -> Iterator:
    """The same with the loss of the last batch; batches are sent to the device one after the other."""
    import jax
    import jax.numpy as jnp

    dtype = jax.tree.leaves(weights)[0].dtype
    rng, steps, chunk = np.random.default_rng(seed), len(rows) // batch, max(1, epochs // 100)
    run = jax.jit(step, donate_argnums=(0, 1))
    weights, value = jax.tree.map(jnp.copy, weights), 0.0
    for done in range(1, epochs + 1):
        for some in rows[rng.permutation(len(rows))[: steps * batch]].reshape(steps, batch):
            weights, state, value = run(
                weights, state, jnp.asarray(samples.x[some], dtype), jnp.asarray(samples.y[some], dtype)
            )
        if done % chunk == 0 or done == epochs:
            yield done, value, weights


@cache
def _projection(shapes: tuple[tuple[int, int], ...], activation: str, skip: bool):
    """Compiled functions of variable projection, kept for the next network of the same shape."""
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    shaped = ravel_pytree([(jnp.zeros(shape), jnp.zeros(shape[1])) for shape in shapes])[1]

    def columns(vector, x):
        parts = [perceptron(shaped(vector), x, activation, last_active=True), jnp.ones((len(x), 1))]
        return jnp.concatenate([*parts, x] if skip else parts, axis=1)

    def eliminated(h, y, ridge):
        m = h.shape[1]
        q, r = jnp.linalg.qr(jnp.concatenate([h, jnp.sqrt(len(h) * ridge) * jnp.eye(m)]))
        y = jnp.concatenate([y, jnp.zeros((m, y.shape[1]))])
        first = q.T @ y
        rest = y - q @ first
        second = q.T @ rest
        return jax.scipy.linalg.solve_triangular(r, first + second), rest - q @ second

    @jax.jit
    def value_and_slope(vector, x, y, ridge):
        h, pull_back = jax.vjp(lambda v: columns(v, x), vector)
        w, rest = eliminated(h, y, ridge)
        value = jnp.sum(rest**2) / len(x)
        (slope,) = pull_back(-2 / len(x) * rest[: len(x)] @ w.T)
        return 0.5 * jnp.log(value), 0.5 * slope / value

    @jax.jit
    def judged(vector, seen, unseen, ridge):
        w, _ = eliminated(columns(vector, seen[0]), seen[1], ridge)
        return jnp.sqrt(jnp.mean((columns(vector, unseen[0]) @ w - unseen[1]) ** 2))

    return value_and_slope, judged


def variable_projection(hidden, x, y, stage, activation: str, *, skip, more, validation, watch: Watch):
    """Train the hidden layers with the last one eliminated: minimise log min_W ‖[H(θ), x, 1] W − Y‖² + ridge ‖W‖².

    L-BFGS in float64 on the samples (x, y). Weights are judged by the last layer solved on `more` = (x, y), a larger
    set, as it will be in the end, and by its error on `validation`. With W the optimal last layer and E = Y − H W, the gradient is that
    with W held fixed, −2 E Wᵀ pulled back through H. What H can almost express, E must not contain: tangents of H lie
    nearly in its span, and with E merely rounded the gradient drowns once errors fall below 1e-7. So E is made
    orthogonal to an orthonormal basis of the columns twice; then errors fall on to 1e-11. The logarithm keeps the
    steps of the optimiser meaningful over all these orders of magnitude.
    """
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree
    from scipy import optimize

    hidden = jax.tree.map(jnp.asarray, hidden)
    flat, shaped = ravel_pytree(hidden)
    value_and_slope, judged = _projection(tuple(w.shape for w, _ in hidden), activation, skip)

    class Enough(Exception):
        pass

    xs, ys = jnp.asarray(x), jnp.asarray(y)
    seen, unseen = (tuple(jnp.asarray(a) for a in pair) for pair in (more, validation))
    start, latest, ridge = watch.epoch, {}, stage.ridge

    def evaluate(vector):
        value, slope = value_and_slope(vector, xs, ys, ridge)
        latest.update(vector=vector.copy(), value=float(value))
        return float(value), np.asarray(slope, dtype=float)

    def look(iteration):
        error = float(judged(latest["vector"], seen, unseen, ridge))
        layers = [(np.asarray(w), np.asarray(b)) for w, b in shaped(jnp.asarray(latest["vector"]))]
        training = float(np.exp(latest["value"])) / np.sqrt(ys.shape[1])
        return watch.see(start + iteration, training, error, layers)

    count = 0

    def callback(vector):
        nonlocal count
        count += 1
        if count % stage.check_every == 0:
            if not np.array_equal(vector, latest["vector"]):
                evaluate(vector)
            if look(count):
                raise Enough

    with watch.interruptible():
        evaluate(np.asarray(flat))
        if np.isfinite(latest["value"]):  # −∞: the targets are met exactly, there is nothing to train
            look(0)
            counts = {"maxiter": stage.iterations, "maxfun": 2 * stage.iterations, "maxcor": 30}
            options = {**counts, "ftol": 0.0, "gtol": 0.0}
            try:
                optimize.minimize(
                    evaluate, np.asarray(flat), jac=True, method="L-BFGS-B", callback=callback, options=options
                )
                look(count)
            except Enough:
                pass
    return watch.best if watch.best is not None else [(np.asarray(w), np.asarray(b)) for w, b in hidden]
