"""What the paper states: its settings (tables of the appendix) and its results (tables of section 4)."""

from __future__ import annotations

from dataclasses import dataclass

PROBLEMS = ("helmholtz", "sine-gordon", "schrodinger")
PRESETS = ("paper", "best", "few")


@dataclass(frozen=True)
class Stated:
    """One experiment as the paper states it, and how small it gets in a quick run."""

    title: str
    n_values: int  # N, times included
    kernel: str
    stencil_size: int
    n_snapshots: int
    tolerance: float
    n_modes: int
    n_train: int
    n_validation: int
    n_test: int
    batch_size: int
    solvers: dict[str, dict[str, float | None]]
    few: int  # full solves of our own way
    quick: tuple[int, int, int, int]  # snapshots, training, validation, test
    outputs: str = "raw"  # of POD-DNN: the only scaling that the paper states is a z-score
    epochs: int = 2000
    learning_rate: float = 1e-4
    widths: tuple[int, ...] = (500, 500)

    @property
    def pde_solves(self) -> int:
        """Full solves that built its model: snapshots, training and validation."""
        return self.n_snapshots + self.n_train + self.n_validation


STATED = {
    "helmholtz": Stated(
        title="2-D Helmholtz equation",
        n_values=1036,
        kernel="IMQ, ε = 3",
        stencil_size=50,
        n_snapshots=100,
        tolerance=1e-6,
        n_modes=17,
        n_train=6000,
        n_validation=2000,
        n_test=2000,
        batch_size=100,
        solvers={
            "RBF-FD": {"error": None, "inference_seconds": 32.54843},
            "LS-RRBFM": {"error": 0.00133, "inference_seconds": 0.93357},
            "DNN": {"error": 0.00215, "inference_seconds": 0.01631},
            "POD-DNN": {"error": 0.00068, "inference_seconds": 0.00976},
        },
        few=30,
        quick=(25, 120, 40, 40),
    ),
    "sine-gordon": Stated(
        title="(2+1)-D sine-Gordon equation",
        n_values=328149,
        kernel="IMQ, ε = 1",
        stencil_size=25,
        n_snapshots=100,
        tolerance=0.01,
        n_modes=27,
        n_train=768,
        n_validation=128,
        n_test=128,
        batch_size=16,
        solvers={
            "DNN": {"error": 0.03590, "fit_seconds": 124 * 60.0},
            "POD-DNN": {"error": 0.03718, "fit_seconds": 15 * 60.0},
        },
        few=50,
        quick=(20, 40, 10, 12),
        outputs="z-score",
    ),
    "schrodinger": Stated(
        title="3-D static Schrödinger equation",
        n_values=2276,
        kernel="IMQ, ε = 1",
        stencil_size=50,
        n_snapshots=300,
        tolerance=0.03,
        n_modes=57,
        n_train=300,
        n_validation=100,
        n_test=100,
        batch_size=10,
        solvers={
            "DNN": {"error": 0.09291, "inference_seconds": 0.00052},
            "POD-DNN": {"error": 0.09908, "inference_seconds": 0.00028},
            "DeepONet": {"error": 0.10700, "inference_seconds": 0.00076},
        },
        few=100,
        quick=(60, 60, 20, 20),
    ),
}
