"""Tutorials from `examples/`: pictures and explorer pages of what they compute, kept by the content of the script.

sphinx-gallery runs a script when its text is not the one whose results are kept in `docs/tutorials/`; these are committed,
so that a fresh clone runs none of them. Surrogates are kept as files, and their pages are written when the site is built:
they are always those of the present explorer.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from PIL import Image
from sphinx_gallery.scrapers import figure_rst

import parasol as ps

ORDER = [
    "helmholtz",
    "composite_plate",
    "sine_gordon",
    "random_field",
    "fem_thermal_block",
    "vtu_results",
    "inverse",
    "sobol_indices",
    "laptop_to_cluster",
    "paper",
    "theorem",
]
_IFRAME = """

.. raw:: html

    <iframe class="explorer" src="../pages/{name}.html" title="explorer: {name}" loading="lazy"></iframe>
    <p class="explorer-link"><a href="../pages/{name}.html">The explorer page by itself</a></p>

"""


def order(filename: str) -> tuple[int, str]:
    """Tutorials in the order in which they are meant to be read, then the rest by name."""
    stem = Path(filename).stem
    return (ORDER.index(stem) if stem in ORDER else len(ORDER), stem)


def scrape(block: tuple, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Figures and explorer pages that are the last expression of a block, as pictures and frames."""
    last = ast.parse(block[1]).body[-1:]
    if not last or not isinstance(last[0], ast.Expr):  # then ___ is what an earlier block left
        return ""
    value = block_vars["example_globals"].get("___")
    if value.__class__.__name__ == "Figure" and hasattr(value, "savefig"):
        path = next(block_vars["image_path_iterator"])
        value.savefig(path, dpi=110)
        smaller(path)
        return figure_rst([path], gallery_conf["src_dir"])
    if value.__class__.__name__ == "Page" and isinstance(block_vars["example_globals"].get("surrogate"), ps.Surrogate):
        name = Path(block_vars["src_file"]).stem
        folder = Path(gallery_conf["src_dir"]) / "tutorials" / "surrogates"
        folder.mkdir(exist_ok=True, parents=True)
        ps.save(block_vars["example_globals"]["surrogate"], folder / f"{name}.parasol")
        return _IFRAME.format(name=name)
    return ""


def smaller(path: str | Path) -> None:
    """A picture with 256 colours: a third of the bytes, and it is committed."""
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


def settings(here: Path) -> dict[str, Any]:
    """What sphinx-gallery is asked to do."""
    return {
        "examples_dirs": [str(here.parent / "examples")],
        "gallery_dirs": ["tutorials"],
        "filename_pattern": rf"/examples/({'|'.join(ORDER)})\.py",
        "ignore_pattern": r"__init__\.py",
        "within_subsection_order": "gallery.order",
        "image_scrapers": ("gallery.scrape",),
        "reset_modules": (),
        "capture_repr": ("__repr__",),
        "ignore_repr_types": r"matplotlib|Page",
        "remove_config_comments": True,
        "download_all_examples": False,
        "write_computation_times": False,
        "show_memory": False,
        "show_signature": False,
        "plot_gallery": "True",
        "abort_on_example_error": True,
        "copyfile_regex": r"",
        "backreferences_dir": None,
        "nested_sections": False,
    }


def _write_pages(app, error) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "pages"
    folder.mkdir(exist_ok=True)
    for path in sorted((Path(app.srcdir) / "tutorials" / "surrogates").glob("*.parasol")):
        ps.explore(ps.load(path), folder / f"{path.stem}.html")


def setup(app):
    """Write explorer pages when the site is built."""
    app.connect("build-finished", _write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
