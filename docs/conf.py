"""The settings of the site for Sphinx; `make docs` builds it, from the copies of the pages that `building/site.py` writes."""

import json
import os
import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import cygrad
from building.versions import folder_of

project, author, copyright = "cygrad", "the authors of cygrad", "the authors of cygrad"
version = release = cygrad.__version__
extensions = ["myst_parser", "sphinx_copybutton", "sphinx_design"]
root_doc = "index"
exclude_patterns = ["conf.py"]
highlight_language = "text"
nitpicky = True

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_allow_space = myst_dmath_allow_digits = False
suppress_warnings = ["myst.header"]         # a page of the API has headings of names, below no other

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "pydata_sphinx_theme"
html_title = f"cygrad {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"               # browsers draw it: no script, no network
html_context = {"default_mode": "auto"}
SERVED = os.environ.get("CYGRAD_SITE", "")  # the address with a folder for each version and their list; without it there is no switcher
html_theme_options = {
    "github_url": "https://github.com/cygrad/cygrad",
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 1,
    "navigation_with_keys": False,
    "show_prev_next": False,
    "navbar_persistent": ["search-button"],
    "navbar_end": [*["version-switcher"] * bool(SERVED), "theme-switcher", "navbar-icon-links"],
    "switcher": {"json_url": f"{SERVED}/switcher.json", "version_match": folder_of(version)},
    "check_switcher": False,                # it is not served yet while it is built
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "examples": []}


def visit_math(translator, node):
    """Write a formula as MathML, which is part of HTML."""
    is_block = isinstance(node, nodes.math_block)
    formula = str(tex2mathml(node.astext(), as_block=is_block))
    translator.body.append(f'<div class="formula">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


def note_names(app, env):
    """Add each public name to the index of names, which the search reads and other projects refer to."""
    for name, (page, anchor) in json.loads((Path(app.srcdir) / "names.json").read_text()).items():
        env.current_document.docname = page.removesuffix(".md")
        env.get_domain("py").note_object(name, "module" if name in sys.modules else "function", anchor)


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.connect("env-updated", note_names)
