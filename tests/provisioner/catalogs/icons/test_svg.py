"""An SVG is kept where it is a picture and nothing else: no script, nothing from outside, nothing that grows."""

from __future__ import annotations

import time

import pytest

from provisioner.catalogs.icons.svg import MOST_DRAWN, svg_refusal
from tests.support.patience import scaled
from tests.support.pictures import svg

ILLUSTRATOR = b"""<?xml version="1.0" encoding="utf-8"?>
<!-- Generator: a program -->
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg version="1.1" id="Layer_1" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
  xmlns:inkscape="http://www.inkscape.org/namespaces/inkscape" x="0px" viewBox="0 0 40 40"
  style="enable-background:new 0 0 40 40;" inkscape:export-filename="C:\\pictures\\url(a).png">
  <metadata><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" rdf:resource="http://example.com"/></metadata>
  <style type="text/css">
    @media screen { .st0{fill:url(#sky);} }
    .st1, .st2 { clip-path: url( "#window" ); fill: #316192 }
  </style>
  <defs>
    <linearGradient id="sky"><stop offset="0"/></linearGradient>
    <linearGradient id="dusk" xlink:href="#sky"/>
    <clipPath id="window"><rect class="st0" width="40" height="40"/></clipPath>
    <path id="wave" d="M0 0h40"/>
  </defs>
  <g class="st1"><use xlink:href="#wave" y="5"/><use href="#wave"/><path class="st0" fill="url(#dusk)" d="M1 1z"/></g>
</svg>"""

DESIGNED = b"""<!DOCTYPE svg>
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" aria-label="Boat(s)" data-name="Layer 1(copy)" label="Bob's (1)">
  <title>A boat (blue)</title>
  <style>/* me@example.com: it's "dark" */ @media (prefers-color-scheme: dark) { g:not(.b) { fill: rgba(0, 0, 0, .5) } }</style>
  <defs>
    <filter id="filter0_d_1:2" x="-4" width="72"><feGaussianBlur stdDeviation="2"/><feBlend in2="x"/></filter>
    <linearGradient id="paint0" gradientTransform="matrix(1 0 0 1 0 0)"><stop offset="0.5" stop-color="hsl(1,2%,3%)"/></linearGradient>
  </defs>
  <g filter="url(#filter0_d_1:2)" transform="translate(1 2) rotate(3)"><path stroke-dasharray="none" fill="url('#paint0')" d="M0 0h9"/></g>
  <path stroke-dasharray="0" d="M0 0"/><g style="stroke-dasharray: 0 ; stroke-dasharray:none;font-family:'Open Sans';fill:#F00;fill:color(display-p3 1 0 0)"/>
</svg>"""


@pytest.mark.parametrize(
    "data",
    [
        svg("<path d='M0 0h9'/>"),
        ILLUSTRATOR,
        DESIGNED,
        svg("<path stroke-dasharray='4 2' d='M0 0'/>" * 18),
        svg("<path d='M0 0'/>").decode().encode("utf-16"),
        svg("<g/>" * 5_000),
    ],
    ids=["a path", "as drawing programs write it", "as design tools write it", "dashes", "UTF-16", "many shapes"],
)
def test_a_picture_is_kept(data: bytes) -> None:
    assert svg_refusal(data) == ""


def doubled(levels: int, one: str) -> str:
    """Each level draws the one below twice; `one` refers to a level."""
    return "<g id='a0'><rect/></g>" + "".join(
        f"<g id='a{at}'>{one.format(at - 1)}{one.format(at - 1)}</g>" for at in range(1, levels)
    )


REFUSED = {
    "a script": ("<script>alert(1)</script>", "scripts"),
    "a script in capitals": ("<SCRIPT/>", "scripts"),
    "a script of another namespace": ("<h:script xmlns:h='http://www.w3.org/1999/xhtml'/>", "scripts"),
    "a handler": ("<rect onclick='alert(1)'/>", "scripts"),
    "a script that an animation sets": ("<a><set attributeName='href' to='javascript:alert(1)'/></a>", "moves"),
    "an animation": ("<rect><animateTransform/></rect>", "moves"),
    "a page": ("<foreignObject><p/></foreignObject>", "embeds something else (foreignobject)"),
    "XHTML": ("<h:form xmlns:h='http://www.w3.org/1999/xhtml'/>", "embeds something else (form)"),
    "a picture in it": ("<image href='data:image/png;base64,AAAA'/>", "embeds something else (image)"),
    "a link": ("<a href='https://example.com'><rect/></a>", "outside of it"),
    "a link that runs": ("<a href='javascript:alert(1)'/>", "outside of it"),
    "a link by XLink": ("<x:g xmlns:x='u' xmlns:l='http://www.w3.org/1999/xlink' l:href='//e'/>", "outside of it"),
    "shapes of another file": ("<use href='other.svg#a'/>", "outside of it"),
    "another base": ("<g xml:base='https://example.com'/>", "outside of it"),
    "paint of elsewhere": ("<rect fill='URL( https://example.com/#a )'/>", "outside of it"),
    "a style of elsewhere": ("<rect style='fill:url(https://example.com)'/>", "outside of it"),
    "a sheet of elsewhere": ("<style>.a{fill:url(//example.com)}</style>", "outside of it"),
    "an import": ("<style>@import 'https://example.com';</style>", "nobody can tell"),
    "an import by url": ("<style>@import url(https://example.com);</style>", "nobody can tell"),
    "a style that escapes": ("<style>.a{fill:\\75 rl(#a)}</style>", "nobody can tell"),
    "a variable": ("<g style='--a:url(#b);fill:var(--a)'/>", "nobody can tell"),
    "a percent": ("<use href='#%61'/>", "nobody can tell"),
    "a block in another": ("<style>.a{mask:url(#m);.b{fill:red}}</style>", "nobody can tell"),
    "inherited masks": ("<mask id='m'><rect/></mask><g mask='url(#m)'><g mask='inherit'/></g>", "nobody can tell"),
    "what repeats paint": ("<pattern id='p'><rect/></pattern>", "repeats what it draws"),
    "a marker": ("<marker/>", "repeats what it draws"),
    "itself": ("<g id='a'><use href='#a'/></g>", "repeats itself"),
    "a class behind comments": (
        "<style>.c{/*}.z{*/mask:url(#m)}</style><mask id='m'><g class='c'/></mask>",
        "repeats itself",
    ),
    "a class behind texts": ("<style>.c{font-family:'}';x:'.z{';mask:url(#m)}</style>", "nobody can tell"),
    "a text without end": ("<style>.c{x:'} .z{mask:url(#m)}</style>", "nobody can tell"),
    "a variable in a block with another": (
        "<style>.c{mask:var(--x);b{}}</style><mask id='m'><g class='c' style='--x:url(#m)'/></mask>",
        "nobody can tell",
    ),
    "inherited in a block with another": (
        "<style>.c{mask:inherit;b{}}</style><mask id='m'><rect/></mask><g mask='url(#m)'><g class='c'/></g>",
        "nobody can tell",
    ),
    "dashes in a block with another": (
        "<style>path{stroke-dasharray:.1;b{}}</style>" + "<path d='M0 0'/>" * 50,
        "lines of dashes",
    ),
    "dashes behind a comment": ("<g style='stroke-dasharray/**/:.1'>" + "<g/>" * 50 + "</g>", "lines of dashes"),
    "two sheets": ("<style>.z</style><style>g{mask:url(#m)}</style><mask id='m'><g/></mask>", "repeats itself"),
    "layers": ("<mask id='m'/><g mask='url(#m),url(#m)'/>", "nobody can tell"),
    "layers of a sheet": ("<style>.c{mask:url(#m),url(#m)}</style><mask id='m'/>", "nobody can tell"),
    "dashes": ("<path stroke-dasharray='.1 .1' d='M0 0'/>" * 50, "lines of dashes"),
    "dashes by style": ("<g style='stroke-dasharray : .1'>" + "<path d='M0 0'/>" * 50 + "</g>", "lines of dashes"),
    "dashes by a sheet": ("<style>path{stroke-dasharray:.1}</style>" + "<path d='M0 0'/>" * 50, "lines of dashes"),
    "what doubles behind a tab": (doubled(40, "<use href='#a&#9;{}'/>"), "nobody can tell"),
    "what doubles behind a blank": ("<g id='a '><use href='#a '/></g>", "nobody can tell"),
    "what doubles behind a blank of print": ("<g id='a&#160;'><use href='#a&#160;'/></g>", "nobody can tell"),
    "masks behind a bracket": ("<mask id='m)'><g mask='url(\"#m)\")'/></mask>", "nobody can tell"),
    "masks behind a quote": ("<mask id='m'><g mask='url(\"#m\"x)'/></mask>", "nobody can tell"),
    "classes that double": (
        "<style>.c{mask:url(#m)}</style><mask id='m'><g class='c' CLASS='n' x:class='n' xmlns:x='u'/></mask>",
        "repeats itself",
    ),
    "an import that escapes": ("<style>@\\69mport 'https://example.com';</style>", "nobody can tell"),
    "pictures by another function": ("<style>.a{background:image-set('https://e/x' 1x)}</style>", "nobody can tell"),
    "paint by another function": ("<g fill='src(\"https://e/x\")'/>", "nobody can tell"),
    "filters of styles": ("<g filter='blur(60px) blur(60px)'/>", "nobody can tell"),
    "frames": ("<style>@-webkit-keyframes k{from{opacity:0}}</style>", "moves"),
    "an animation by style": ("<g style='-webkit-animation : k 1s infinite'/>", "moves"),
    "an animation by a sheet": ("<style>.a{fill:red;animation-name:k}</style>", "moves"),
    "filters": ("<filter id='f'><feTurbulence/></filter>" + "<g filter='url(#f)'/>" * 1_500, "draws more than"),
    "what doubles": (doubled(40, "<use href='#a{}'/>"), "repeats itself"),
    "masks that double": (doubled(40, "<g mask='url(#a{})'/>"), "repeats itself"),
    "styles that double": (
        "<style>"
        + "".join(f".c{at}{{mask:url(#a{at})}}" for at in range(40))
        + "</style>"
        + doubled(40, "<g class='c{}'/>"),
        "repeats itself",
    ),
    "styles of every element": ("<style>g *:not(.a){mask:url(#m)}</style><mask id='m'><g/></mask>", "repeats itself"),
    "a style behind a comment": (
        "<style>/*{*/ .a{mask:url(#m)}</style><mask id='m'><g class='a'/></mask>",
        "repeats itself",
    ),
    "a style behind a text": ("<style>.a{x:'}';mask:url(#m)}</style><mask id='m'><g/></mask>", "nobody can tell"),
    "too many shapes": ("<g/>" * (MOST_DRAWN + 1), "draws more than"),
    "too deep": ("<g>" * 200 + "</g>" * 200, "nested more than 100 deep"),
}


@pytest.mark.parametrize(("body", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_more_than_to_be_drawn_is_not_kept(body: str, words: str) -> None:
    assert words in svg_refusal(svg(body))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"<!DOCTYPE svg [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>" + svg("&b;"), "declares entities"),
        (b"<!DOCTYPE svg [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + svg("&a;"), "declares entities"),
        (b'<!DOCTYPE svg SYSTEM "https://example.com/x.dtd">' + svg(""), "not one of SVG"),
        (b'<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "https://example.com/x.dtd">' + svg(""), "not one of SVG"),
        (
            b'<!DOCTYPE svg PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" "http://www.w3.org/x.dtd">'
            + svg("<mask id='m'><g mask='url&lpar;#m)'/></mask>"),
            "not one of SVG",
        ),
        (b'<!DOCTYPE svg SYSTEM "about:legacy-compat">' + svg(""), "not one of SVG"),
        (b"<?xml-stylesheet href='https://example.com'?>" + svg(""), "outside of it"),
        (b"<svg><path/></svg>", "no SVG that a browser draws"),
        (b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "no SVG that a browser draws"),
        (svg("<g>"), "damaged"),
        (svg("")[:-3], "damaged"),
        (b"", "damaged"),
        (b"\x89PNG\r\n\x1a\n", "damaged"),
        (b"<?xml version='1.0' encoding='utf-7'?>" + svg(""), "damaged"),
        (b"<?xml version='1.0' encoding='no-such'?>" + svg(""), "damaged"),
    ],
)
def test_what_is_no_svg_or_grows_as_it_is_read_is_not_kept(data: bytes, words: str) -> None:
    assert words in svg_refusal(data)


SLOW = {
    "comments": "<style>" + "/*" * 60_000 + "</style>",
    "no block": "<style>" + "a" * 120_000 + "</style>",
    "dashes": "<style>.a{" + "stroke-dasharray" * 8_000 + " " * 60_000 + "}</style>",
    "texts": "<style>" + "'\n" * 60_000 + "</style>",
    "layers": "<style>.a{mask:" + "url(#x)" * 17_000 + "}</style>",
    "properties": "<style>.a{" + "-animation" * 12_000 + "}</style>",
    "an address behind blanks": "<style>.a{fill:url(" + " " * 120_000 + "</style>",
    "calls": "<style>.a{fill:" + "rgb(" * 30_000 + "</style>",
    "at-rules": "<style>" + "@a-keyframe" * 10_000 + "</style>",
    "blocks": "<style>" + "{" * 120_000 + "</style>",
    "addresses": "<style>" + "url(" * 30_000 + "</style>",
    "masks of all": "<style>*{" + "mask:url(#x);" * 5_000 + "}</style>" + "<g id='x'/>" * 3_000,
    "uses of many of one name": "<g id='x'/>" * 4_000 + "<use href='#x'/>" * 3_000,
    "classes": "<style>.a{mask:url(#x)}</style>" + f"<g class='{'a ' * 20_000}'/>" * 2,
}


@pytest.mark.parametrize("body", SLOW.values(), ids=SLOW)
def test_nothing_takes_long_to_be_judged(body: str) -> None:
    began = time.process_time()
    svg_refusal(svg(body))
    assert time.process_time() - began < scaled(2)
