"""Numbers a network likes, and the measure of its errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from parasol.fitting.network import Network


@dataclass(frozen=True, eq=False)
class Scaling:
    """Inputs to [−1, 1], outputs centred and divided by one number, or each by its own."""

    input_shift: np.ndarray
    input_scale: np.ndarray
    output_shift: np.ndarray
    output_scale: np.ndarray
    varies: bool

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray, output_scaling: str) -> Scaling:
        """The scaling of data; deviations at rounding level count as none."""
        low, high = x.min(axis=0), x.max(axis=0)
        half = np.where(high > low, (high - low) / 2, 1.0)
        mean, deviation = y.mean(axis=0), y.std(axis=0)
        rounding = 1e-15 * np.max(np.abs(y), initial=0.0)
        one = float(np.sqrt(np.mean(deviation**2)))
        varies = one > rounding
        scale = (
            np.where(deviation > rounding, deviation, 1.0) if output_scaling == "z-score" else np.full(len(mean), one)
        )
        return cls((low + high) / 2, 1 / half, mean, scale if varies else np.ones(len(mean)), varies)

    def inputs(self, x: np.ndarray) -> np.ndarray:
        """Scaled inputs."""
        return (x - self.input_shift) * self.input_scale

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Scaled outputs."""
        return (y - self.output_shift) / self.output_scale

    def inputs_back(self, t: np.ndarray) -> np.ndarray:
        """Inputs as they were."""
        return t / self.input_scale + self.input_shift

    def outputs_back(self, u: np.ndarray) -> np.ndarray:
        """Outputs as they were."""
        return u * self.output_scale + self.output_shift

    def network(
        self,
        layers: Sequence[tuple[np.ndarray, ...]],
        skip: np.ndarray | None,
        activation: str,
        dtype: str,
        *,
        outputs: bool = True,
    ) -> Network:
        """The trained layers, W of shape (n_in, n_out), with these scalings."""
        weights = tuple(np.ascontiguousarray(w.T, dtype=dtype) for w, _ in layers)
        biases = tuple(np.asarray(b, dtype=dtype) for _, b in layers)
        path = None if skip is None else np.ascontiguousarray(skip.T, dtype=dtype)
        scalings = (self.input_shift, self.input_scale, *((self.output_shift, self.output_scale) if outputs else ()))
        return Network(weights, biases, activation, path, *scalings)


def mean_relative_error(outputs: np.ndarray, expected: np.ndarray) -> float:
    """Mean over samples of ‖outputs − expected‖ / ‖expected‖; samples that are zero count with the norm of the largest."""
    size = np.linalg.norm(expected, axis=1)
    size = np.where(size > 0, size, np.max(size, initial=0.0) or 1.0)
    return float(np.mean(np.linalg.norm(outputs - expected, axis=1) / size))
