"""Small additions to Sphinx: formulas as MathML, tables of settings and columns, notebooks, links of pictures."""
# ruff: noqa: INP001  # loaded by conf.py

import dataclasses
import importlib
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from latex2mathml.converter import convert
from myst_parser.parsers.sphinx_ import MystParser
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

HOMES = ("fairduel.agents", "fairduel.adversaries", "fairduel.worlds", "fairduel.votes")
_LONG_TYPES = {
    r"[~\w.]*ndarray\[tuple\[[~\w.]*Any, \.\.\.\], [~\w.]*dtype\[[^\]]*\]\]": "ndarray",
    r"[~\w.]*(_Buffer|_SupportsArray)\b.*_NestedSequence\[[^\[\]]*\]": "ArrayLike",
    r"<factory>": "...",
}
_log = logging.getLogger(__name__)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the additions with Sphinx."""
    app.add_html_math_renderer("mathml", (_visit_math, None), (_visit_math_block, None))
    app.add_directive("agent-settings", SettingsTable)
    app.add_directive("columns", ColumnsTable)
    app.add_source_suffix(".ipynb", "notebook")
    app.add_source_parser(NotebookParser)
    app.connect("doctree-read", _link_pictures)
    app.connect("missing-reference", _resolve_reexport)
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)  # before napoleon
    app.connect("autodoc-process-signature", _shorten_arrays)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# Formulas: browsers render MathML themselves, so pages need neither a network nor scripts.


def _visit_math(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, "inline"))
    raise nodes.SkipNode


def _visit_math_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(f'<div class="math-block">{_mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def _mathml(node: nodes.Element, display: str) -> str:
    mathml = convert(node.astext(), display=display)
    if "\\" in mathml:  # latex2mathml passes on the commands it does not know
        _log.warning("cannot typeset %s", node.astext(), location=node)
    return mathml


class SettingsTable(SphinxDirective):
    """The settings of an agent (attack, world, estimator) as a table: name, default, meaning.

    ``:without:`` names a class whose settings the reader knows already.
    """

    required_arguments = 1
    option_spec: ClassVar = {"without": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Build the table as Markdown and let MyST parse it."""
        known = _settings(_find(self.options["without"])) if "without" in self.options else {}
        rows = [
            f"| `{name}` | {default} | {meaning} |"
            for name, (default, meaning) in _settings(_find(self.arguments[0])).items()
            if name not in known
        ]
        table = ["| setting | default | meaning |", "|---|---|---|", *rows]
        return self.parse_text_to_nodes("\n".join(table))


class ColumnsTable(SphinxDirective):
    """The columns of a table, such as ``fairduel.votes.ranking.standings.RANKING``: heading, name in files, meaning."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Build the table as Markdown and let MyST parse it."""
        module, name = self.arguments[0].rsplit(".", 1)
        rows = [
            f"| {each.heading if each.cell else ''} | {f'`{each.name}`' if each.values else ''} | {each.meaning} |"
            for each in getattr(importlib.import_module(module), name)
        ]
        table = ["| column | in files | meaning |", "|---|---|---|", *rows]
        return self.parse_text_to_nodes("\n".join(table))


class NotebookParser(MystParser):
    """A notebook as a page: its texts, its code, and what the code showed when it was last run."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: nodes.document) -> None:
        """Turn the cells into Markdown and let MyST parse it."""
        cells = json.loads(inputstring)["cells"]
        super().parse("\n\n".join(part for cell in cells for part in _cell_parts(cell)), document)


def _cell_parts(cell: dict[str, Any]) -> Iterator[str]:
    """Yield a notebook's cell, and each of its outputs, as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"````python\n{source}\n````"
    for output in cell["outputs"]:
        shown = output.get("data", {})
        if "text/html" in shown:
            table = "".join(shown["text/html"]).replace("<table>", '<table class="docutils align-default">')
            yield f'````{{raw}} html\n<div class="table-wrapper">{table}</div>\n````'
        else:
            yield f"````text\n{''.join(output.get('text') or shown['text/plain']).rstrip()}\n````"


def _find(name: str) -> type:
    """Return a class by its name in one of the subpackages."""
    for home in HOMES:
        found = getattr(importlib.import_module(home), name, None)
        if isinstance(found, type):
            return found
    raise ValueError(f"{name} is not a class in {', '.join(HOMES)}.")


def _settings(cls: type) -> dict[str, tuple[str, str]]:
    """Map each keyword of the constructor to its default and its meaning, both as Markdown."""
    meanings: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        meanings |= _field_docstrings(base) | _documented_args(base)
    return {
        parameter.name: (_default(parameter), meanings.get(parameter.name, ""))
        for parameter in inspect.signature(cls).parameters.values()
        if parameter.name != "rng"  # given by the simulation
    }


def _default(parameter: inspect.Parameter) -> str:
    if parameter.default is parameter.empty:
        return "required"
    if repr(parameter.default) == "<factory>":  # how dataclasses show one: a new object each time
        return ""
    return f"`{parameter.default}`" if dataclasses.is_dataclass(parameter.default) else f"`{parameter.default!r}`"


def _documented_args(cls: type) -> dict[str, str]:
    """Read the ``Args:`` section of a Google-style docstring."""
    section = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)+)", inspect.cleandoc(vars(cls).get("__doc__") or ""), re.MULTILINE)
    found = re.findall(r"^ {4}(\w+)(?: \([^)]*\))?:\s*(.+(?:\n {5,}.+)*)", section[1], re.MULTILINE) if section else []
    return {name: _markdown(text) for name, text in found}


def _field_docstrings(cls: type) -> dict[str, str]:
    """Read the string literals below the fields of a class."""
    if cls.__module__ == "builtins":
        return {}
    documented = ModuleAnalyzer.for_module(cls.__module__).find_attr_docs()
    return {
        name: _markdown(" ".join(lines)) for (owner, name), lines in documented.items() if owner == cls.__qualname__
    }


def _markdown(rest: str) -> str:
    """Turn the reST of one sentence into a Markdown table cell."""
    text = re.sub(r":math:`([^`]*)`", r"$\1$", " ".join(rest.split()))
    text = re.sub(r":\w+:`~?([^`]*)`", lambda found: f"`{found[1].rsplit('.', 1)[-1]}`", text)
    return text.replace("``", "`").replace("|", "\\|")


def _link_pictures(_app: Sphinx, doctree: nodes.document) -> None:
    """Give every picture a width, so that Sphinx links it to its full size."""
    for picture in doctree.findall(nodes.image):
        picture.setdefault("width", "100%")


def _resolve_reexport(app: Sphinx, env: Any, node: Any, contnode: nodes.Element) -> nodes.Element | None:
    """Link a name to the page where it is documented, regardless of the module it was imported from."""
    module, _, name = node.get("reftarget", "").rpartition(".")
    if node.get("refdomain") != "py" or not module.startswith("fairduel"):
        return None
    try:
        found = getattr(importlib.import_module(module), name)
        canonical = f"{found.__module__}.{found.__qualname__}"
    except (ImportError, AttributeError):
        return None
    domain = env.get_domain("py")
    if canonical not in domain.objects:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", canonical, node, contnode)


def _keep_colons(_app: Sphinx, what: str, _name: str, _obj: Any, _options: Any, lines: list[str]) -> None:
    """Stop napoleon from reading "α: the trust" below an attribute as "type: meaning"."""
    if what in {"attribute", "data", "property"}:
        lines.insert(0, "")


def _shorten_arrays(  # the arguments of the event
    _app: Sphinx, _what: str, _name: str, _obj: Any, _options: Any, signature: str | None, result: str | None
) -> tuple[str | None, str | None]:
    """Write the types of arrays by name; their shapes stand in the docstrings."""
    for long, short in _LONG_TYPES.items():
        signature, result = (text and re.sub(long, short, text) for text in (signature, result))
    return signature, result
