"""Whether an SVG is a picture and nothing else, by its bytes. PURE.

Pages show it as `<img>`, where browsers run no script and fetch nothing, and the answer at its address forbids both.
Yet people save pictures, and a few lines can draw for hours: `use` that repeats what repeats something. So an SVG is
kept only where it holds nothing that runs, moves, embeds or leads elsewhere, and where what it draws is counted.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from xml.parsers import expat

SVG = "image/svg+xml"
MOST_DRAWN = 20_000
_DEEPEST = 100
_NAMESPACE, _XHTML, _XML = (
    "http://www.w3.org/2000/svg",
    "http://www.w3.org/1999/xhtml",
    "http://www.w3.org/XML/1998/namespace",
)
_RUNS = frozenset({"script", "handler", "listener", "set", "animate", "animatecolor", "animatemotion"})
_EMBEDS = frozenset({"foreignobject", "iframe", "embed", "object", "image", "feimage", "audio", "video"})
# Paint that its user's children inherit, and so paint with again.
_REPEATS = frozenset({"pattern", "marker"})
_GRADIENTS = frozenset({"lineargradient", "radialgradient"})
# Drawn by its pixels wherever it is used: so many shapes take as long.
_FILTER_SHAPES = 50
# A line can have a million dashes, whose drawing takes some tenths of a second.
MOST_DASHED = 20
# Words of people, which nothing is drawn by.
_WORDS = frozenset({"label", "name", "title", "alt"})
# What programs write. What other names refer to depends on rules of CSS, XML and URLs that differ from each other.
_NAME = r"#([\w.:-]+)"
_REFERENCE = re.compile(_NAME)
_URL = re.compile(rf"url\([ \t\r\n]*(['\"]?){_NAME}\1[ \t\r\n]*\)", re.IGNORECASE)
_CALL = re.compile(r"(?<![\w-])([\w-]+)\(")
_CALLS = frozenset(
    {
        "url",
        "rgb",
        "rgba",
        "hsl",
        "hsla",
        "hwb",
        "lab",
        "lch",
        "oklab",
        "oklch",
        "color",
        "icc-color",
        "color-mix",
        "light-dark",
    }
    | {"calc", "min", "max", "clamp", "rect", "circle", "ellipse", "polygon", "inset", "path", "format", "local"}
    | {"matrix", "matrix3d", "translate", "translatex", "translatey", "translate3d", "rotate", "scale", "scalex"}
    | {"scaley", "scale3d", "skewx", "skewy", "perspective", "cubic-bezier", "steps"}
    | {"not", "is", "where", "nth-child", "nth-of-type"}
)
_LEADS_OUT = re.compile(r"url\([\s'\"]*[^#\s'\"]", re.IGNORECASE)
_AT_RULE = re.compile(r"@([\w-]*)")
_AT_RULES = frozenset({"charset", "font-face", "media", "supports"})
_MOVES = re.compile(r"(?<![\w-])(?:-[a-z]+-)?animation[\w-]*\s*:|@[\w-]*keyframes", re.IGNORECASE)
_DASHED = re.compile(r"stroke-dasharray\s*:(?!\s*(?:none\b|0?\s*(?:[;}]|\Z)))", re.IGNORECASE)
# What hides the rest from whoever does not read them from left to right; without escapes, which are refused.
_HIDING = re.compile(r"/\*.*?(?:\*/|\Z)|\"[^\"\n]*\"|'[^'\n]*'", re.DOTALL)
_OPENING, _STRUCTURE = re.compile(r"[\"']"), re.compile(r"[;{}@]|/\*")
_DECLARATION = re.compile(r"[;{}]")
_BRACE = re.compile(r"([{}])")
_CLASS = re.compile(r"\s*\.([\w-]+)\s*", re.ASCII)
_SVG_DTD = ("-//W3C//DTD SVG ", ("http://www.w3.org/", "https://www.w3.org/"))
_DAMAGED = "its bytes are damaged, so that no browser can draw it"
_OUTSIDE = "its SVG refers to something outside of it"
_DASHES = f"its SVG draws more than {MOST_DASHED} shapes, and lines of dashes"
_UNCLEAR = "its SVG has styles of which nobody can tell what they draw"
_TOO_MUCH = f"its SVG draws more than {MOST_DRAWN} shapes, or what repeats itself"
_MOVING = "its SVG has scripts, or moves"
_EVERY = "*"


def svg_refusal(data: bytes) -> str:
    """Why this SVG is not kept; "" where it is."""
    try:
        _Reading().check(data)
    except _Refused as refusal:
        return str(refusal)
    except (expat.ExpatError, LookupError, ValueError):
        return _DAMAGED
    return ""


class _Refused(Exception):
    """Why an SVG is not kept: what is behind that place is not even read."""


@dataclass(slots=True, eq=False)
class _Element:
    name: str
    children: list[_Element] = field(default_factory=list)
    refs: list[str] = field(default_factory=list)
    classes: tuple[str, ...] = ()


class _Reading:
    """One SVG while it is read: the elements below each other, what each refers to, and the text of its styles."""

    def __init__(self) -> None:
        self._stack: list[_Element] = []
        self._root: _Element | None = None
        self._by_id: dict[str, list[_Element]] = defaultdict(list)
        self._styles: list[str] = []
        self._inherits = False
        self._is_dashed = False
        self._count = 0

    def check(self, data: bytes) -> None:
        """Raises _Refused, and as expat does."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartDoctypeDeclHandler = self._doctype
        parser.ProcessingInstructionHandler = self._instruction
        parser.StartElementHandler = self._begin
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.Parse(data, True)
        self._check_drawing(self._styled())

    def _doctype(self, _name: str, system: str | None, public: str | None, has_own: int) -> None:
        """Those of SVG declare no entities; browsers know those of XHTML, and the parser here passes over them."""
        if has_own:
            raise _Refused("its SVG declares entities, which can grow without end")
        begins, where = _SVG_DTD
        if not ((public or begins).startswith(begins) and (system or where[0]).startswith(where)):
            raise _Refused("its SVG has a document type that is not one of SVG")

    def _instruction(self, target: str, _text: str) -> None:
        if target.lower() == "xml-stylesheet":
            raise _Refused(_OUTSIDE)

    def _begin(self, name: str, attributes: Mapping[str, str]) -> None:
        namespace, _, local = name.rpartition(" ")
        element = _Element(local.lower())
        if not self._stack and (namespace, local) != (_NAMESPACE, "svg"):
            raise _Refused("it is no SVG that a browser draws")
        if words := _why_not(element.name, namespace):
            raise _Refused(words)
        for key, value in attributes.items():
            self._attribute(element, key, value)
        self._count += 1
        if self._count > MOST_DRAWN:
            raise _Refused(_TOO_MUCH)
        if len(self._stack) >= _DEEPEST:
            raise _Refused(f"its SVG is nested more than {_DEEPEST} deep")
        if self._stack:
            self._stack[-1].children.append(element)
        if element.name == "style":
            self._styles.append("")
        self._root = self._root or element
        self._stack.append(element)

    def _end(self, _name: str) -> None:
        self._stack.pop()

    def _text(self, text: str) -> None:
        if self._stack and self._stack[-1].name == "style":
            self._styles[-1] += text

    def _attribute(self, element: _Element, key: str, value: str) -> None:
        namespace, _, local = key.rpartition(" ")
        name = local.lower()
        if name.startswith("on") and not namespace:
            raise _Refused("its SVG has scripts")
        if (namespace, name) == (_XML, "base"):
            raise _Refused(_OUTSIDE)
        if name == "href":
            element.refs += self._inside(value)
        elif name == "id":
            self._by_id[value].append(element)
        elif name == "class":
            element.classes += tuple(value.split())
        elif not namespace and name not in _WORDS and not name.startswith(("aria-", "data-")):
            element.refs += self._refs_in(_plain(f"{name}:{value}"))

    def _refs_in(self, styles: str) -> list[str]:
        """What a presentation attribute or a style, of which nothing hides a part, refers to."""
        if _MOVES.search(styles):
            raise _Refused(_MOVING)
        calls = [one.lower() for one in _CALL.findall(styles)]
        if not _CALLS.issuperset(calls):
            raise _Refused(_UNCLEAR)
        self._inherits |= "inherit" in styles.lower()
        self._is_dashed |= _DASHED.search(styles) is not None
        if any(one.lower().count("url(") > 1 for one in _DECLARATION.split(styles)):
            raise _Refused(_UNCLEAR)  # layers, each of which is drawn
        refs = [name for _, name in _URL.findall(styles)]
        if len(refs) != calls.count("url"):
            raise _Refused(_OUTSIDE if _LEADS_OUT.search(styles) else _UNCLEAR)
        return refs

    def _inside(self, address: str) -> list[str]:
        if not (found := _REFERENCE.fullmatch(address)):
            raise _Refused(_UNCLEAR if address.lstrip().startswith("#") else _OUTSIDE)
        return [found[1]]

    def _styled(self) -> dict[str, list[str]]:
        """What the styles have elements of each class refer to, and every element (_EVERY)."""
        by_class: dict[str, list[str]] = defaultdict(list)
        for sheet in map(_plain, self._styles):
            if not _AT_RULES.issuperset(one.lower() for one in _AT_RULE.findall(sheet)):
                raise _Refused(_MOVING if _MOVES.search(sheet) else _UNCLEAR)
            self._refs_in(sheet)  # also what stands where only selectors are expected
            for selectors, body in _blocks(sheet):
                if "url(" in selectors.lower():
                    raise _Refused(_UNCLEAR)
                found = self._refs_in(body)
                for one in selectors.split(",") if found else ():
                    name = _CLASS.fullmatch(one)
                    by_class[name[1] if name else _EVERY] += found
        return by_class

    def _check_drawing(self, by_class: Mapping[str, list[str]]) -> None:
        assert self._root is not None
        drawing = _Drawing(self._by_id, by_class)
        drawn = drawing.count(self._root)
        if drawn > MOST_DRAWN:
            raise _Refused(_TOO_MUCH)
        if self._is_dashed and drawn > MOST_DASHED:
            raise _Refused(_DASHES)
        if self._inherits and drawing.has_heavy:
            raise _Refused(_UNCLEAR)


class _Drawing:
    """How much is drawn, with all that is drawn again where something refers to it."""

    def __init__(self, by_id: Mapping[str, list[_Element]], by_class: Mapping[str, list[str]]) -> None:
        self._by_id = by_id
        self._by_class = {name: list(self._targets(dict.fromkeys(refs))) for name, refs in by_class.items()}
        self._known: dict[_Element, int] = {}
        self.has_heavy = False

    def count(self, element: _Element, depth: int = 0) -> int:
        """At most a little more than MOST_DRAWN, and that where it refers to itself."""
        if depth > 2 * _DEEPEST:
            return MOST_DRAWN + 1
        if element not in self._known:
            self._known[element] = MOST_DRAWN + 1  # until it is known, for who meets it again below itself
            total = _FILTER_SHAPES if element.name.startswith("fe") else 1
            for one in chain(element.children, self._drawn_by(element)):
                total += self.count(one, depth + 1)
                if total > MOST_DRAWN:
                    break
            self._known[element] = total
        return self._known[element]

    def _drawn_by(self, element: _Element) -> Iterator[_Element]:
        styled = (self._by_class.get(name, ()) for name in (_EVERY, *element.classes))
        for one in chain(self._targets(element.refs), *styled):
            self.has_heavy = True
            yield one

    def _targets(self, refs: Iterable[str]) -> Iterator[_Element]:
        for ref in refs:
            yield from (one for one in self._by_id.get(ref, ()) if one.name not in _GRADIENTS)


def _plain(styles: str) -> str:
    """Styles without comments, and with strings that hide nothing; raises _Refused for others, and for escapes."""
    if "\\" in styles:
        raise _Refused(_UNCLEAR)
    kept, at = list[str](), 0
    for found in _HIDING.finditer(styles):
        kept.append(styles[at : found.start()])
        kept.append(" " if found[0].startswith("/*") else found[0])
        at = found.end()
    kept.append(styles[at:])
    if any(map(_OPENING.search, kept[::2])) or any(map(_STRUCTURE.search, kept[1::2])):
        raise _Refused(_UNCLEAR)
    return "".join(kept)


def _blocks(styles: str) -> Iterator[tuple[str, str]]:
    """(selectors, declarations) of each block, whatever strings and comments hide; what stands before a block within
    another one counts to its selectors, and what is not closed to no block."""
    selectors, text = list[str](), ""
    for piece in _BRACE.split(styles):
        if piece == "{":
            selectors.append(text)
            text = ""
        elif piece == "}":
            yield selectors.pop() if selectors else "", text
            text = ""
        else:
            text = piece
    yield f"{text}{''.join(selectors)}", text


def _why_not(name: str, namespace: str) -> str:
    if name in _RUNS or name.startswith("animate"):
        return _MOVING
    if name in _EMBEDS or namespace == _XHTML:
        return f"its SVG embeds something else ({name[:40]})"
    return f"its SVG repeats what it draws ({name})" if name in _REPEATS else ""
