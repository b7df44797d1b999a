"""Networks of one shape trained together by Adam: other first weights, other orders of batches, other scalings of the data.

On a GPU a small network leaves the device idle, and thirty of them cost little more than one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from parasol.cache import replacing
from parasol.checks import check_choice
from parasol.fitting import Scaling

_HELD_OUT = 0.1  # of the samples, where no validation data are given
_LARGE = 5 * 10**7  # weights, above which products are left to the device's faster, rounded arithmetic (TF32)
_ALIGNED = 128  # outputs of such a network are filled up with zeros to a multiple of it: 4.1 → 1.7 ms a step on an H200
_CHUNKS = 100  # looks at the validation error during a training


@dataclass(frozen=True)
class Reading:
    """What a description of a training may leave open: the scales of inputs and outputs, the first weights, the loss.

    The default is the simplest: data as they are, weights and biases uniform in ±1/√(number of inputs of the layer), as
    the usual frameworks draw them, and mean squares.

    >>> print(Reading(), Reading(outputs="z-score", initial="He"), sep="; ")
    data as they are, uniform weights, mean squares; raw inputs, outputs by z-score, He's weights, mean squares
    """

    inputs: str = "raw"  # or "box": to [−1, 1]; "log": the logarithm where the parameter's scale is logarithmic
    outputs: str = "raw"  # or "one scale": centred, divided by one number; "z-score": each by its own deviation
    initial: str = "uniform"  # or "He": normal, variance 2/n, biases zero
    loss: str = "squares"  # or "relative squares": each sample's divided by its own size

    def __post_init__(self):
        check_choice(self.inputs, ("raw", "box", "log"), "inputs")
        check_choice(self.outputs, ("raw", "one scale", "z-score"), "outputs")
        check_choice(self.initial, ("uniform", "He"), "initial")
        check_choice(self.loss, ("squares", "relative squares"), "loss")

    def __str__(self) -> str:
        inputs = {"raw": "raw inputs", "box": "inputs to [−1, 1]", "log": "logarithmic inputs to [−1, 1]"}[self.inputs]
        outputs = {"raw": "raw outputs", "one scale": "outputs by one scale", "z-score": "outputs by z-score"}
        data = f"{inputs}, {outputs[self.outputs]}"
        if (self.inputs, self.outputs) == ("raw", "raw"):
            data = "data as they are"
        weights = "uniform weights" if self.initial == "uniform" else "He's weights"
        return f"{data}, {weights}, mean {self.loss}"

    def layers(self, generator, counts: Sequence[int]) -> list[tuple[np.ndarray, np.ndarray]]:
        """The first weights (n_in, n_out) and biases of layers with these numbers of neurons."""
        out = []
        for a, b in pairwise(counts):
            if self.initial == "He":
                weights = generator.standard_normal((a, b), dtype=np.float32) * np.float32(np.sqrt(2 / a))
                out.append((weights, np.zeros(b, np.float32)))
            else:
                end = np.float32(1 / np.sqrt(a))
                weights = (2 * generator.random((a, b), dtype=np.float32) - 1) * end
                out.append((weights, (2 * generator.random(b, dtype=np.float32) - 1) * end))
        return out

    def scaling(self, x: np.ndarray, y: np.ndarray) -> Scaling:
        """The scales of these samples; fields are read a few at a time."""
        shift, scale = np.zeros(x.shape[1]), np.ones(x.shape[1])
        if self.inputs != "raw":
            low, high = x.min(axis=0), x.max(axis=0)
            shift, scale = (low + high) / 2, 1 / np.where(high > low, (high - low) / 2, 1.0)
        mean, square = mean_of(y), np.zeros(y.shape[1])
        for i in range(0, len(y), 16):
            square += np.sum((np.asarray(y[i : i + 16], dtype=float) - mean) ** 2, axis=0)
        deviation = np.sqrt(square / len(y))
        rounding = 1e-15 * np.max(np.abs(mean), initial=0.0)
        one = float(np.sqrt(np.mean(deviation**2)))
        varies = one > rounding
        if not varies or self.outputs == "one scale":
            return Scaling(shift, scale, mean, np.full(len(mean), one if varies else 1.0), bool(varies))
        if self.outputs == "z-score":
            return Scaling(shift, scale, mean, np.where(deviation > rounding, deviation, 1.0), True)
        return Scaling(shift, scale, np.zeros(len(mean)), np.ones(len(mean)), True)


OURS = Reading("box", "one scale", "He")


def readings_from(base: Reading, *, logs: bool) -> list[Reading]:
    """Readings that differ from a base in one thing, and the one with all scalings; `logs`: parameters have such a scale."""
    changes: list[dict[str, str]] = [{"initial": "He"}, {"inputs": "box"}]
    if logs:
        changes.append({"inputs": "log"})
    changes += [{"outputs": outputs} for outputs in ("raw", "one scale", "z-score") if outputs != base.outputs]
    changes.append({"loss": "relative squares"})
    return [*(replace(base, **change) for change in changes), OURS]


@dataclass(frozen=True, eq=False)
class Trained:
    """Weights after training: those of the smallest validation error, and the last ones."""

    best: Any
    last: Any
    scaling: Scaling
    rows: np.ndarray  # samples that were trained on
    aside: tuple[np.ndarray, np.ndarray]  # and those that validated
    history: tuple[dict[str, float], ...]
    best_epoch: int
    device: str
    seconds: float  # of all trained together, divided by their number


def train(
    recipes: Sequence[Any],
    xs: Sequence[np.ndarray],
    y: np.ndarray,
    validation: tuple[Sequence[np.ndarray], np.ndarray] | None,
    seeds: Sequence[int],
    *,
    progress: Callable[[float], Any] | None = None,
    state: Path | None = None,
) -> list[Trained]:
    """Train recipes that differ in their `reading` only, each with its inputs (n, p) and seed, on the same outputs (n, d).

    A recipe has `reading`, `stage`, `dtype`, `device`, `initial(generator, n_inputs, n_outputs)` and
    `forward(descent, weights, inputs)`; `rounded` lets a GPU round the factors of its products (TF32). Ctrl-C leaves what was done in the file `state`, from which the next call goes on, and
    the seconds of both count.
    """
    from parasol.fitting import descent

    recipe = recipes[0]
    start = time.perf_counter()
    if validation is None:
        order = np.random.default_rng(seeds[0]).permutation(len(y))
        n = int(np.clip(round(_HELD_OUT * len(y)), 1, max(16, 2 * 10**7 // y.shape[1])))
        rows, validation = order[n:], ([x[order[:n]] for x in xs], y[order[:n]])
    else:
        rows = np.arange(len(y))
    scalings = [r.reading.scaling(x, y) for r, x in zip(recipes, xs, strict=True)]
    first = [
        r.initial(np.random.default_rng(s), xs[0].shape[1], y.shape[1]) for r, s in zip(recipes, seeds, strict=True)
    ]
    with descent.computing(recipe.dtype, recipe.device) as device:
        jax = descent.require_jax()
        if not scalings[0].varies:  # constant outputs: nothing to train
            nothing = jax.tree.map(np.zeros_like, first[0])
            results, earlier = [(nothing, nothing, (), 0)] * len(recipes), 0.0
        else:
            large = sum(a.size for a in jax.tree.leaves(first[0])) >= _LARGE
            rounded = large or getattr(recipe, "rounded", False)
            with jax.default_matmul_precision("default" if rounded else "highest"):
                filling = -y.shape[1] % _ALIGNED if large and isinstance(first[0], list) else 0
                loop = _Loop(recipe, scalings, y, rows, validation[1], [r.reading.loss for r in recipes], filling)
                results, earlier = loop.run(first, xs, validation[0], seeds, progress, state)
    seconds = (earlier + time.perf_counter() - start) / len(recipes)
    return [
        Trained(best, last, scaling, rows, (x, validation[1]), history, epoch, device.platform, seconds)
        for (best, last, history, epoch), scaling, x in zip(results, scalings, validation[0], strict=True)
    ]


@dataclass(frozen=True, eq=False)
class _Loop:
    """The compiled loop over epochs and batches, for all networks at once."""

    recipe: Any
    scalings: list[Scaling]
    y: np.ndarray
    rows: np.ndarray
    unseen: np.ndarray
    losses: list[str]
    filling: int = 0  # outputs that are zero, with weights that are zero and stay so: only for speed

    def run(self, first, xs, unseen_xs, seeds, progress, state: Path | None):
        """The best and the last weights, the history and the best epoch of each; and the seconds of earlier calls."""
        import jax
        import jax.numpy as jnp
        import optax

        dtype, stage, n = self.recipe.dtype, self.recipe.stage, len(self.rows)
        batch = min(stage.batch_size, n)
        steps = n // batch
        rate = stage.learning_rate
        if stage.schedule == "cosine":
            rate = optax.cosine_decay_schedule(rate, steps * stage.epochs, alpha=1e-3)
        optimiser = optax.adam(rate)
        seen, unseen = self._data(xs, self.y, self.rows), self._data(unseen_xs, self.unseen, slice(None))
        slope = jax.vmap(jax.value_and_grad(self._loss), in_axes=(0, 0, None, 0, 0, 0, 0))
        judge = jax.jit(jax.vmap(self._loss, in_axes=(0, 0, None, 0, 0, 0, None)))

        def step(carry, picked, data):
            weights, memory = carry
            values, slopes = slope(weights, *data, picked)
            slopes = jax.lax.optimization_barrier(slopes)  # weights are read for the last time before they change
            change, memory = optimiser.update(slopes, memory, weights)
            return (optax.apply_updates(weights, change), memory), values

        @jax.jit
        def epochs(carry, data, count):
            def epoch(_, carry):
                state, keys, _ = carry
                both = jax.vmap(jax.random.split)(keys)
                order = jax.vmap(lambda key: jax.random.permutation(key, n))(both[:, 1])[:, : steps * batch]
                picked = order.reshape(len(order), steps, batch).swapaxes(0, 1)
                state, values = jax.lax.scan(lambda c, p: step(c, p, data), state, picked)
                return state, both[:, 0], jnp.mean(values, axis=0)

            return jax.lax.fori_loop(0, count, epoch, carry)

        @jax.jit
        def better(best, weights, improved):
            return jax.tree.map(lambda a, b: jnp.where(improved.reshape(-1, *[1] * (a.ndim - 1)), b, a), best, weights)

        weights = jax.tree.map(lambda *a: jnp.asarray(np.stack(a), dtype), *first)
        if self.filling:
            weights[-1] = tuple(_filled(a, a.shape[-1] + self.filling) for a in weights[-1])
        keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, dtype=jnp.uint32))
        carry = ((weights, optimiser.init(weights)), keys, jnp.zeros(len(first), dtype))
        kept = {"best": weights, "errors": np.full(len(first), np.inf), "epoch": np.zeros(len(first), int), "done": 0}
        history: list = []
        begin, earlier = time.perf_counter(), 0.0
        if state is not None and state.exists():
            carry, kept, history, earlier = _load(state, carry, kept)
        chunk, whole = max(1, stage.epochs // _CHUNKS), np.arange(len(self.unseen))
        try:
            while kept["done"] < stage.epochs:
                count = min(chunk, stage.epochs - kept["done"])
                moved = epochs(carry, seen, count)
                errors = np.sqrt(np.asarray(judge(moved[0][0], *unseen, whole), dtype=float))
                improved, done = errors < kept["errors"], kept["done"] + count
                best = better(kept["best"], moved[0][0], jnp.asarray(improved))
                history.append((done, np.sqrt(np.asarray(moved[2], dtype=float)), errors))
                epoch = np.where(improved, done, kept["epoch"])
                carry, kept = (
                    moved,
                    {"best": best, "errors": np.fmin(errors, kept["errors"]), "epoch": epoch, "done": done},
                )
                if progress is not None:
                    progress(done / stage.epochs)
        except KeyboardInterrupt:
            if state is not None and kept["done"]:
                _save(state, carry, kept, history[: kept["done"] // chunk], earlier + time.perf_counter() - begin)
            raise
        if state is not None:
            state.unlink(missing_ok=True)
        best, last = (jax.tree.map(np.asarray, tree) for tree in (kept["best"], carry[0][0]))
        if self.filling:
            for layers in (best, last):
                layers[-1] = tuple(a[..., : -self.filling] for a in layers[-1])
        out = []
        for i in range(len(first)):
            curve = tuple({"epoch": done, "training": float(a[i]), "validation": float(b[i])} for done, a, b in history)
            out.append(
                (*(jax.tree.map(lambda a, i=i: a[i], tree) for tree in (best, last)), curve, int(kept["epoch"][i]))
            )
        return out, earlier

    def _data(self, xs, y, rows):
        """Scaled inputs (r, n, p), outputs (n, d) as they are, their shifts and scales (r, d), and each sample's part in the loss."""
        import jax.numpy as jnp

        dtype = self.recipe.dtype
        inputs = np.stack([s.inputs(x[rows]) for s, x in zip(self.scalings, xs, strict=True)])
        sizes = np.array([np.sum(np.asarray(field, dtype=float) ** 2) for field in y[rows]])
        sizes = np.where(sizes > 0, sizes, np.max(sizes, initial=0.0) or 1.0)
        relative = (1 / sizes) / np.mean(1 / sizes)
        parts = np.stack([relative if loss == "relative squares" else np.ones(len(sizes)) for loss in self.losses])
        shift, scale = (np.stack([getattr(s, f"output_{k}") for s in self.scalings]) for k in ("shift", "scale"))
        one = scale[:, :1] if np.ptp(scale, axis=1).max() == 0 else scale
        inputs, y, shift, one, parts = (jnp.asarray(a, dtype) for a in (inputs, y[rows], shift, one, parts))
        width = y.shape[1] + self.filling
        one = one if one.shape[1] == 1 else _filled(one, width, 1.0)
        return inputs, _filled(y, width), _filled(shift, width), one, parts

    def _loss(self, weights, x, y, shift, scale, part, picked):
        import jax.numpy as jnp

        from parasol.fitting import descent

        gap = self.recipe.forward(descent, weights, x[picked]) - (y[picked] - shift) / scale
        whole = gap.shape[-1] / (gap.shape[-1] - self.filling)
        return jnp.mean(part[picked][:, None] * gap**2) * whole


def _filled(array, width: int, value: float = 0.0):
    """The last axis as long as `width`."""
    import jax.numpy as jnp

    missing = width - array.shape[-1]
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, missing)], constant_values=value) if missing else array


def _save(path: Path, carry, kept: dict, history: list, seconds: float) -> None:
    import jax

    trees = (carry[0], jax.random.key_data(carry[1]), carry[2], kept["best"])
    arrays = {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(trees))}
    rows = np.array([[done, *a, *b] for done, a, b in history])
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        known = {"errors": kept["errors"], "epoch": kept["epoch"], "done": kept["done"], "history": rows}
        np.savez(file, **arrays, **known, seconds=seconds)  # type: ignore[arg-type]


def _load(path: Path, carry, kept: dict) -> tuple[Any, dict, list, float]:
    import jax
    import jax.numpy as jnp

    trees = (carry[0], jax.random.key_data(carry[1]), carry[2], kept["best"])
    leaves, shape = jax.tree.flatten(trees)
    with np.load(path) as file:
        arrays = [jnp.asarray(file[f"leaf{i}"]) for i in range(len(leaves))]
        # written by a version that did not fill them up
        arrays = [_filled(a, leaf.shape[-1]) if a.ndim else a for a, leaf in zip(arrays, leaves, strict=True)]
        state, keys, values, best = jax.tree.unflatten(shape, arrays)
        half = (file["history"].shape[1] - 1) // 2
        history = [(int(row[0]), row[1 : 1 + half], row[1 + half :]) for row in file["history"]]
        kept = {"best": best, "errors": file["errors"], "epoch": file["epoch"], "done": int(file["done"])}
        seconds = float(file["seconds"]) if "seconds" in file else 0.0  # of a version that did not keep them
    return (state, jax.random.wrap_key_data(keys), values), kept, history, seconds


def mean_of(y) -> np.ndarray:
    """Mean field, added up in double precision."""
    return np.sum([np.sum(y[i : i + 64], axis=0, dtype=float) for i in range(0, len(y), 64)], axis=0) / len(y)
