"""Descriptions of packages: Markdown as structure, and nothing of a publisher's that could run, load or lead astray."""

from __future__ import annotations

import time
from html.parser import HTMLParser

import pytest
from django.utils.html import strip_tags
from hypothesis import given
from hypothesis import strategies as st

from approvals.web.catalogs.descriptions import render_description
from tests.support.patience import scaled

TAGS = {*("p", "h3", "h4", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong", "a", "br", "hr")}
ATTRIBUTES = {"a": {"href", "rel"}, "ol": {"start"}, "pre": {"class", "tabindex"}, "p": {"class"}}


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements(text: str) -> list[tuple[str, dict[str, str | None]]]:
    shown, parser = render_description(text), _Elements()
    parser.feed(shown.first + shown.rest)
    return parser.found


def test_markdown_is_shown_as_structure_below_the_headings_of_the_page() -> None:
    shown = render_description(
        "# Harbour\n\nKeeps *ships*, as `dock` does.\n\n## Berths\n\n- one\n- two\n\n```yaml\na: <b>\n```\n"
    )
    assert shown.rest == ""
    assert shown.first == (
        "<h3>Harbour</h3>\n<p>Keeps <em>ships</em>, as <code>dock</code> does.</p>\n<h4>Berths</h4>\n"
        '<ul>\n<li>one</li>\n<li>two</li>\n</ul>\n<pre class="code" tabindex="0">a: &lt;b&gt;\n</pre>'
    )


@pytest.mark.parametrize(
    "text", ["[docs](https://e.example/?a=1&b=2)", "<http://e.example>", "[docs]\n\n[docs]: HTTPS://e.example"]
)
def test_a_link_of_the_web_is_one_and_tells_nobody_more_than_it_must(text: str) -> None:
    ((_, attributes),) = [one for one in elements(text) if one[0] == "a"]
    assert attributes["rel"] == "noopener nofollow"
    assert str(attributes["href"]).lower().startswith("http")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[the docs](https://evil.example/a)", "the docs (evil.example)"),
        ("[https://good.example](https://evil.example/a)", "https://good.example (https://evil.example/a)"),
        ("[good.example/b](https://evil.example/a)", "good.example/b (https://evil.example/a)"),
        ("[good\u3002example](https://evil.example/a)", "good\u3002example (https://evil.example/a)"),
        ("[ https://good.example  ](https://evil.example)", "https://good.example   (https://evil.example)"),
        ("[https://good.example]( https://good.example/@evil )", "https://good.example (https://good.example/@evil)"),
        ("[`https://good.example`](https://evil.example)", "https://good.example (https://evil.example)"),
        ("[![good.example](https://x.example/x.png)](https://evil.example)", "good.example (https://evil.example)"),
        ("[good.example (evil.example)](https://worse.example)", "good.example (evil.example) (https://worse.example)"),
        (
            "[g\u043e\u043ed.example](https://g\u043e\u043ed.example)",
            "g\u043e\u043ed.example (https://xn--gd-fmca.example)",
        ),
        ('[a](https://evil.example "https://good.example")', "a (evil.example)"),
        ("[https://e.example](https://e.example)", "https://e.example"),
        ("<https://e.example/a>", "https://e.example/a"),
        ("[a](https://e.example) [b](https://f.example)", "a (e.example) b (f.example)"),
    ],
)
def test_S24_a_link_says_where_it_leads_whatever_its_words_look_like(text: str, shown: str) -> None:
    found = render_description(text).first
    assert strip_tags(found).strip() == shown
    assert "title=" not in found


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:x",
        "data:text/html,x",
        "vbscript:x",
        "/me/tokens",
        "//e.example",
        "mailto:a@b",
        "ftp://e",
        "https://good.example@e.example",
        "http://good.example:x@e",
        "https:///good.example@e.example/x",
    ],
)
def test_any_other_address_is_text(address: str) -> None:
    for text in (f"[a]({address})", f"<{address}>", f"[a]\n\n[a]: {address}"):
        assert [tag for tag, _ in elements(text)] == ["p"] * text.count("\n\n") + ["p"]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <img src=x onerror=alert(1)> b",
        "<svg/onload=alert(1)>",
        "<!-- a -->",
        "![a<b>](https://e/x.png)",
    ],
)
def test_html_is_text_and_a_picture_the_words_in_place_of_it(text: str) -> None:
    assert {tag for tag, _ in elements(text)} == {"p"}


@given(st.text(alphabet=st.sampled_from("a<>[]()!*_`#-1.:/\"'&\\\n \tjhtps"), max_size=300))
def test_whatever_is_written_makes_no_other_element_or_attribute(text: str) -> None:
    for tag, attributes in elements(text):
        assert tag in TAGS
        assert attributes.keys() <= ATTRIBUTES.get(tag, set())
        assert tag != "a" or str(attributes["href"]).lower().startswith(("http://", "https://"))


def test_what_is_long_begins_and_is_folded_and_nothing_is_left_out() -> None:
    paragraphs = [f"paragraph {at} {'word ' * 60}end{at}." for at in range(8)]
    shown = render_description("\n\n".join(paragraphs))
    assert shown.first.count("<p>") == 2
    assert shown.rest.count("<p>") == 6
    assert all(f"end{at}." in shown.first + shown.rest for at in range(8))


def test_one_paragraph_that_is_too_long_is_folded_whole() -> None:
    shown = render_description("word " * 5_000)
    assert shown.first == ""
    assert shown.rest.count("word") == 5_000


def test_what_is_beyond_what_is_read_as_markdown_is_shown_as_text() -> None:
    shown = render_description("a\n" * (16 * 1024 // 2) + "\n\n**bold** <b>\n\n# far")
    assert shown.rest.endswith('<p class="preserve">**bold** &lt;b&gt;</p><p class="preserve"># far</p>')


SLOW = {
    "brackets": "[",
    "half links": "[a](b",
    "a list": "1. a\n",
    "quotes": ">",
    "stars": "*a **b",
    "ticks": "`a``b",
    "pictures": "![[]()",
}


@pytest.mark.parametrize("piece", SLOW.values(), ids=SLOW)
def test_nothing_takes_long_to_be_shown(piece: str) -> None:
    began = time.process_time()
    render_description(piece * (64 * 1024 // len(piece)))
    assert time.process_time() - began < scaled(3)
