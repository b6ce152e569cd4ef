"""A line as HTML: escaped, its YAML in the classes of Pygments, what differs in it marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape

from django.utils.safestring import SafeString, mark_safe
from pygments.lexers.data import YamlLexer
from pygments.token import STANDARD_TYPES, _TokenType

from approvals.web.requests.changes.folding import Span
from provisioner.review.base.difference import Form

# Longer lines are shown in one colour.
MAX_COLOURED = 2_000
_LEXER = YamlLexer(stripnl=False, ensurenl=False)
Token = tuple[str, str]


def html_of(text: str, form: Form, marked: Sequence[Span] = ()) -> SafeString:
    """`text`, which is `visible` already, as HTML. `marked` are spans of its characters, in order."""
    parts = (_written(css, part, is_marked) for css, part, is_marked in _cut(_tokens(text, form), marked))
    return mark_safe("".join(parts))  # noqa: S308 - `_written` escapes every part


def _tokens(text: str, form: Form) -> list[Token]:
    if form is Form.TEXT or len(text) > MAX_COLOURED:
        return [("s" if form is Form.TEXT else "", text)]
    found = [(_css(kind), part) for kind, part in _LEXER.get_tokens(text)]
    # Whatever a lexer makes of a line, every character of it is shown.
    return found if "".join(part for _, part in found) == text else [("", text)]


def _css(kind: _TokenType) -> str:
    """The short name of a token's class, or of the nearest that has one."""
    while kind not in STANDARD_TYPES and kind.parent is not None:
        kind = kind.parent
    css = STANDARD_TYPES.get(kind, "")
    return "" if css == "w" else css


def _cut(tokens: Iterable[Token], marked: Sequence[Span]) -> Iterator[tuple[str, str, bool]]:
    """The tokens, cut where a mark begins or ends."""
    at = number = 0
    for css, text in tokens:
        end = at + len(text)
        while at < end:
            while number < len(marked) and marked[number][1] <= at:
                number += 1
            first, last = marked[number] if number < len(marked) else (end, end)
            is_marked = first <= at < last
            stop = min(last if is_marked else max(first, at), end)
            stop = end if stop == at else stop
            yield css, text[len(text) - (end - at) : len(text) - (end - stop)], is_marked
            at = stop


def _written(css: str, text: str, is_marked: bool) -> str:
    inner = f'<span class="{css}">{escape(text)}</span>' if css else escape(text)
    return f"<mark>{inner}</mark>" if is_marked else inner
