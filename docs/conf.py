"""The site: `make docs` builds it from these pages, without a network, and takes warnings for errors."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "agg")

import gallery  # noqa: E402
import parasol  # noqa: E402

project, author = "parasol", "The parasol developers"
project_copyright = "The parasol developers, BSD-3-Clause"
version = release = parasol.__version__

extensions = [
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "api",
    "commands",
    "mathml",
    "typography",
    "gallery",
]
exclude_patterns = ["_build", "_ext", "results/*", "**/GALLERY_HEADER.rst"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_dmath_double_inline = True
suppress_warnings = ["config.cache", "misc.copy_overwrite"]
nitpicky = False
smartquotes_action = "qe"  # quotes and dots; two dashes are those of options
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
add_module_names = False

sphinx_gallery_conf = gallery.settings(HERE)
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True

html_theme = "pydata_sphinx_theme"
html_title = f"parasol {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": False,
    "collapse_navigation": True,  # the whole tree on each page would take most of the time and of the bytes
    "navigation_depth": 2,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "errors": []}
html_context = {"default_mode": "auto"}
