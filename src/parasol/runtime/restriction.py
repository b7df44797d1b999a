"""A surrogate of values at some places or times only."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from parasol.errors import InputError
from parasol.runtime.above import borrowed
from parasol.runtime.layout import check_nodes

if TYPE_CHECKING:
    from parasol.runtime.surrogate import Surrogate

_PLACES: dict[str, Any] = {"n_interior": 0, "regions": (), "cells": None, "given_jumps": None}  # of chosen places


def restricted(
    surrogate: Surrogate, *, nodes: ArrayLike | None, points: ArrayLike | None, times: ArrayLike | None
) -> Surrogate:
    """The surrogate of values at nodes or points, and at stored times, as `Surrogate.restricted` takes them."""
    if surrogate.readout is not None:
        raise InputError("this surrogate is restricted already. Restrict the original one.")
    if nodes is not None and points is not None:
        raise InputError("give either nodes or points, not both.")
    layout, quantities, parts, scalars = surrogate.layout, surrogate.quantities, surrogate.parts, surrogate.scalars
    modes = surrogate.basis.modes.reshape(layout.n_times, len(layout.names), -1, surrogate.basis.n_modes)
    widths = None if parts is None or parts.profile is None else parts.profile.reshape(*modes.shape[:3], 1)
    if times is not None:
        chosen = layout.time_indices(times)
        modes, layout = modes[chosen], replace(layout, times=layout.times[chosen])  # type: ignore[index]
        widths = None if widths is None else widths[chosen]
        quantities = None if quantities is None else quantities.at(chosen)
        scalars = None if scalars is None else scalars.restricted(times=times)
    if nodes is not None:
        chosen = check_nodes(nodes, modes.shape[2])
        modes = modes[:, :, chosen]
        widths = None if widths is None else widths[:, :, chosen]
        some = None if layout.points is None else layout.points[chosen]
        layout = replace(layout, points=some, **_PLACES)
    if points is not None:
        weights = borrowed("interpolation_weights")(layout, points)  # sparse
        modes = np.stack([np.stack([weights @ field for field in fields]) for fields in modes])
        if widths is not None:  # errors at all nodes at once: interpolated, they add up at most
            widths = np.stack([np.stack([abs(weights) @ field for field in fields]) for fields in widths])
        layout = replace(layout, points=np.atleast_2d(np.asarray(points, dtype=float)), **_PLACES)
    readout = np.ascontiguousarray(modes.reshape(-1, surrogate.basis.n_modes))
    parts = None if parts is None else replace(parts, profile=None if widths is None else widths.ravel())
    restriction = replace(
        surrogate, readout=readout, layout=layout, quantities=quantities, parts=parts, scalars=scalars
    )
    vars(restriction)["distributions"] = surrogate.distributions  # functions are given at all nodes still
    return restriction
