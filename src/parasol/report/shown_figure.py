"""Matplotlib's figure as notebooks show it where pyplot, which would teach them, was never imported."""

from io import BytesIO

from matplotlib import figure


class Figure(figure.Figure):
    """A figure that is a picture where it is the value of a cell."""

    def _repr_png_(self) -> bytes:
        out = BytesIO()
        self.savefig(out, format="png", dpi=100, bbox_inches="tight", pad_inches=0.12)
        return out.getvalue()
