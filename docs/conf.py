"""How the site is made: `make docs` (Sphinx, pages in Markdown). Nothing on it comes from the network.

The theme, the search and the mathematics work from disk. Mathematics is MathML, which browsers draw themselves:
docutils makes it of LaTeX.
"""

from __future__ import annotations

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import bellcrank

project = "Bellcrank"
author = "The Bellcrank team"
copyright = "The Bellcrank team"
release = version = bellcrank.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build", "**/_build"]

# pages: headings can be linked to, as on code hosting sites
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]

# reference: a name in single backticks is code, in docstrings as on pages
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "alphabetical"
autodoc_default_options = {"members": True, "show-inheritance": False}
python_maximum_signature_line_length = 100
nitpicky = True
#: classes in annotations that have no page here: those of NumPy and xarray, and ours that users never write
nitpick_ignore_regex = [("py:class", ".*")]

html_theme = "furo"
html_title = "Bellcrank"
html_static_path = ["_static"]
html_css_files = ["bellcrank.css"]
html_show_sphinx = False
html_show_search_summary = False  # would be fetched, which browsers refuse for pages on disk
html_math_renderer = "mathml"
html_theme_options = {"navigation_with_keys": True}


def write_math(self: object, node: nodes.Element) -> None:
    """LaTeX as MathML: inline, or as a block of its own."""
    block = isinstance(node, nodes.math_block)
    markup = tex2mathml(node.astext(), as_block=block)
    self.body.append(f'<div class="math">{markup}</div>\n' if block else markup)  # type: ignore[attr-defined]
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
