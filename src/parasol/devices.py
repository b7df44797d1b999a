"""Where JAX computes: which device, in which precision; JAX is imported when it is first asked for."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from parasol.errors import InputError, NotInstalled

DEVICES = ("auto", "cpu", "gpu")
# what JAX reaches a GPU by; without one of these it is not worth importing to ask
_PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin", "jax_rocm7_plugin", "jax_rocm60_plugin", "jax_plugins.xla_cuda13")


def require_jax() -> Any:
    """JAX, or one line that says how to get it."""
    try:
        return importlib.import_module("jax")
    except ImportError:
        raise NotInstalled("a device needs JAX. Run: pip install 'parasol-pde[train]'") from None


def pick_device(device: str) -> Any:
    """The JAX device for "auto" (a GPU if there is one), "cpu" or "gpu"."""
    jax = require_jax()
    for kind in ("gpu", "cpu") if device == "auto" else (device,):
        try:
            return jax.devices(kind)[0]
        except RuntimeError:
            continue
    raise InputError(
        'device="gpu" but JAX sees none. Use device="cpu", or install JAX with CUDA: pip install "jax[cuda12]"'
    )


def gpu_device() -> Any:
    """The GPU that JAX sees, None where there is none; where JAX has no way to one it is not imported."""
    allowed = os.environ.get("JAX_PLATFORMS", "")
    if allowed and not {"cuda", "gpu", "rocm"} & set(allowed.lower().split(",")):
        return None
    if find_spec("jax") is None or not any(_installed(name) for name in _PLUGINS):
        return None
    try:
        device = pick_device("auto")
    except RuntimeError:  # a driver that does not fit, a device that somebody else holds
        return None
    return None if device.platform == "cpu" else device


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of its parent
        return False


@contextmanager
def computing(dtype: str, device: Any = "auto") -> Iterator[Any]:
    """JAX in that precision on that device (a name, or one of JAX's), inside a `with`, and nowhere else; gives the device."""
    jax = require_jax()
    chosen = pick_device(device) if isinstance(device, str) else device
    precise = dtype == "float64"
    if hasattr(jax, "enable_x64"):
        switch = jax.enable_x64(precise)
    else:
        switch = importlib.import_module("jax.experimental").enable_x64(precise)
    with switch, jax.default_device(chosen):
        yield chosen
