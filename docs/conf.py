"""Settings of the site: sphinx-build -W docs docs/_build."""

import html
import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
os.environ.pop(
    "MOERANK_DATA", None
)  # the examples run on embedded data alone, whatever is on this machine

from docutils import nodes  # noqa: E402
from making.write import write_reference  # noqa: E402
from sphinx import addnodes  # noqa: E402

from moerank.version import VERSION  # noqa: E402

project = "moerank"
author = "moerank developers"
copyright = f"2026, moerank developers. This site describes moerank {VERSION}"
version = release = VERSION

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "making.mathml",
    "making.docstrings",
]
exclude_patterns = ["_build", "making", "examples", "**/README.md", "**/GALLERY_HEADER.rst"]
smartquotes = False  # they turn -- of an option into a dash
default_role = "py:obj"  # docstrings name classes in single backticks
highlight_language = "python"

myst_enable_extensions = ["amsmath", "attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"  # numpydoc says them, with shapes
numpydoc_show_class_members = False  # the pages of making/names.py show them
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "min_reported_time": 1,
    "image_scrapers": ("matplotlib", "making.figures.scrape"),
    "reset_modules": ("matplotlib", "making.figures.in_style"),
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # a page of its own, with scripts from the network
    "abort_on_example_error": True,
}

toc_object_entries_show_parents = "hide"  # long names do not fit beside the page
html_theme = "pydata_sphinx_theme"
html_title = f"moerank {VERSION}"
html_static_path = ["_static"]
html_css_files = ["moerank.css"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_copy_source = False
html_use_index = html_domain_indices = (
    False  # the search finds names, and no page leads to an index
)
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}
html_sidebars = {page: [] for page in ("index", "large_study", "changes")}


def for_the_search(app, page, template, context, doctree):
    """Let the page of the search find a text of each page where it may not read them."""
    if page == "search":
        app.add_js_file("first_paragraphs.js")
        app.add_js_file("search_from_files.js")


def write_first_paragraphs(app, error):
    """Write the first paragraph of each page."""
    if error or app.builder.name != "html":
        return
    first = {}
    for page in app.env.found_docs:
        texts = [
            text
            for text in app.env.get_doctree(page).findall(nodes.paragraph)
            if isinstance(text.parent, SECTIONS)
        ]
        first[page] = html.escape(texts[0].astext()) if texts else ""
    script = Path(app.outdir, "_static", "first_paragraphs.js")
    script.write_text(f"window.FIRST_PARAGRAPHS = {json.dumps(first)};\n", encoding="utf-8")


SECTIONS = (nodes.section, addnodes.desc_content)


def setup(app):
    """Write the pages that are made from the code before Sphinx looks for pages."""
    app.connect("html-page-context", for_the_search)
    app.connect("build-finished", write_first_paragraphs)
    app.connect(
        "builder-inited", lambda app: write_reference(HERE / "reference" / "made"), priority=100
    )
