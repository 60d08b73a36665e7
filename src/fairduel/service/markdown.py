"""Markdown as safe HTML: no scripts, styles, links, forms or anything that a browser fetches."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.token import Token

_TAGS = {"p", "br", "hr", "h3", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "s"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}
_LEVELS = {f"level{number}" for number in range(1, 7)}
_KEPT = 2000  # texts
_MOST_CELLS = 20_000  # of tables that are shown as such


def _link_end(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    """Write a link's address after its text, unless that is its text."""
    opened, level = place, 1
    while level:
        opened -= 1
        level += {"link_open": -1, "link_close": 1}.get(tokens[opened].type, 0)
    address = str(tokens[opened].attrGet("href") or "")
    text = "".join(token.content for token in tokens[opened:place])
    return "" if text == address else f" ({nh3.clean_text(address)})"


def _image(_: Any, tokens: Sequence[Token], place: int, *__: Any) -> str:
    return f"[image: {nh3.clean_text(tokens[place].content)}]"


def _headings_below_h2(state: Any) -> None:
    """Make all headings h3, below the page's own, with their level as a class."""
    for token in state.tokens:
        if token.type in {"heading_open", "heading_close"}:
            if token.nesting == 1:
                token.attrSet("class", f"level{token.tag[1]}")
            token.tag = "h3"


def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("link_open", lambda *_: "")
    parser.add_render_rule("link_close", _link_end)
    parser.add_render_rule("image", _image)
    parser.core.ruler.push("headings_below_h2", _headings_below_h2)
    return parser


_PARSER, _WITHOUT_TABLES = _parser(), _parser().disable("table")


@lru_cache(_KEPT)
def rendered(text: str) -> str:
    r"""Return Markdown as HTML that can be put into a page.

    HTML in it is shown as text, links and images as their text and address.

    >>> rendered("**tea** <b>or</b> [milk](https://example.org)")
    '<p><strong>tea</strong> &lt;b&gt;or&lt;/b&gt; milk (https://example.org)</p>\n'
    """
    lines, environment = text.split("\n"), dict[str, Any]()
    cells = len(lines) * max(line.count("|") for line in lines)  # a short row is filled up to the width of its table
    parser = _PARSER if cells <= _MOST_CELLS else _WITHOUT_TABLES
    return nh3.clean(
        parser.render(text, environment),
        tags=_TAGS,
        attributes={"ol": {"start"}},
        tag_attribute_values={"h3": {"class": _LEVELS}},
        url_schemes=set(),
    )
