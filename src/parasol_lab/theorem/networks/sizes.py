"""Depth and weights of a network before it is built: the counts follow the same steps as `calculus`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from parasol.errors import InputError
from parasol.fitting import Network


@dataclass(frozen=True)
class Size:
    """L and M of a network, and what its use inside another one needs to know.

    >>> sparse_concatenate_size(affine_size(1, 1), affine_size(1, 1, 1))
    Size(depth=2, n_weights=6, levels=0, first=2, last=2, n_outputs=1, n_neurons=3)
    """

    depth: int  # L
    n_weights: int  # M, weights and biases that are not zero
    levels: int  # the most sawtooth levels of a square in it
    first: int  # ‖W_1‖₀, without biases
    last: int  # M_L
    n_outputs: int
    n_neurons: int  # outputs of all layers together

    @property
    def n_bytes(self) -> int:
        """Bytes of its sparse layers if no two layers were shared, at most: a built network and its file take less."""
        return 12 * self.n_weights + 12 * self.n_neurons + 4 * self.depth  # a number and its column; row ends; biases


def size_of(network: Network, levels: int = 0) -> Size:
    """The size of a network that is there, counted."""
    counts, n_neurons = network.layer_weights, sum(network.widths[1:])
    first = counts[0] - int(np.count_nonzero(network.biases[0]))
    return Size(network.depth, sum(counts), levels, first, counts[-1], network.n_outputs, n_neurons)


def affine_size(n_outputs: int, n_entries: int, n_biases: int = 0) -> Size:
    """Size of `affine` of a matrix with `n_entries` that are not zero."""
    return Size(1, n_entries + n_biases, 0, n_entries, n_entries + n_biases, n_outputs, n_outputs)


def identity_size(n: int, depth: int) -> Size:
    """Size of `identity`."""
    return extend_size(affine_size(n, n), depth)


def sparse_concatenate_size(after: Size, before: Size) -> Size:
    """Size of `sparse_concatenate`: the layers that meet are doubled, but for the biases of the second."""
    return Size(
        depth=after.depth + before.depth,
        n_weights=after.n_weights + before.n_weights + after.first + before.last,
        levels=max(after.levels, before.levels),
        first=before.first * (2 if before.depth == 1 else 1),
        last=after.last + (after.first if after.depth == 1 else 0),
        n_outputs=after.n_outputs,
        n_neurons=after.n_neurons + before.n_neurons + before.n_outputs,
    )


def extend_size(size: Size, depth: int) -> Size:
    """Size of `extend`."""
    extra, n = depth - size.depth, size.n_outputs
    if extra < 0:
        raise InputError(f"a network of {size.depth} layers has no extension to {depth}. Use depth >= its own.")
    if extra == 0:
        return size
    return replace(
        size,
        depth=depth,
        n_weights=size.n_weights + size.last + 2 * n * extra,
        first=size.first * (2 if size.depth == 1 else 1),
        last=2 * n,
        n_neurons=size.n_neurons + 2 * n * extra,
    )


def parallel_size(*sizes: Size) -> Size:
    """Size of `parallel` and of `parallel_shared`."""
    depth = max(size.depth for size in sizes)
    parts = [extend_size(size, depth) for size in sizes]
    return Size(
        depth,
        sum(p.n_weights for p in parts),
        max(p.levels for p in parts),
        sum(p.first for p in parts),
        sum(p.last for p in parts),
        sum(p.n_outputs for p in parts),
        sum(p.n_neurons for p in parts),
    )


def add_size(*sizes: Size, n_biases: int = 0) -> Size:
    """Size of `add`, for networks whose last layer has no biases and sums that have `n_biases`."""
    n, every = sizes[0].n_outputs, parallel_size(*sizes)
    return replace(
        every,
        n_weights=every.n_weights + n_biases,
        last=every.last + n_biases,
        n_outputs=n,
        n_neurons=every.n_neurons - n * (len(sizes) - 1),
    )
