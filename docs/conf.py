"""Sphinx configuration: ``make docs`` builds the site into site/."""
# ruff: noqa: INP001  # a script

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # sphinx_fairduel.py

import fairduel

project = "fairduel"
copyright = "the fairduel authors"  # noqa: A001  # Sphinx's name
version = release = fairduel.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "sphinx_fairduel"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
python_maximum_signature_line_length = 100
autodoc_default_options = {
    "members": True,
    "show-inheritance": True,
    "exclude-members": "title, full_title, colour, guarantee, assumes, published_settings, tuned_choices, "
    "AGENTS, ATTACKS, WORLDS",  # the pages show these three without their values
}
napoleon_numpy_docstring = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"fairduel {version}"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "source_repository": "https://github.com/fairduel/fairduel/",  # "Edit this page"
    "source_branch": "main",
    "source_directory": "docs/",
    "light_css_variables": {"color-brand-primary": "#a33c00", "color-brand-content": "#a33c00"},
    "dark_css_variables": {"color-brand-primary": "#ff9b61", "color-brand-content": "#ff9b61"},
}
pygments_style = "tango"
pygments_dark_style = "monokai"
copybutton_prompt_text = "$ "
copybutton_copy_empty_lines = False
