"""The edges of a channel as a picture: its versions in a column, the highest first, and beside it what may follow what.

Each version has a line of its own that leads from those which it may follow up to itself. PURE; whoever does not see
pictures reads the same in the table of versions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from provisioner.catalogs.edges import list_heads
from provisioner.catalogs.values import CatalogBundle, Channel, ChannelEntry, Package

MOST_VERSIONS = 40
MOST_LINES = 16
ROW, LINE, DOT, ASIDE = 28, 14, 5, 5
MOST_LETTERS = 24
LETTER, NOTE_LETTER = 8, 7


class EdgeKind(StrEnum):
    REPLACES = "replaces"
    SKIPS = "skips"
    RANGE = "skipRange"


# The rows that one version may follow, each with what says so.
Followed = Mapping[int, EdgeKind]


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry of a channel with its bundle; None where the catalog has none of its name, or none that can be used."""

    entry: ChannelEntry
    bundle: CatalogBundle | None

    @property
    def words(self) -> str:
        return str(self.bundle.version) if self.bundle else self.entry.name


@dataclass(frozen=True, slots=True)
class DrawnVersion:
    """A dot at `y`, its version, and what is said of it."""

    y: int
    words: str
    note: str
    is_running: bool


@dataclass(frozen=True, slots=True)
class Stroke:
    kind: EdgeKind
    path: str


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """What leads to the version of the row `at` from those that it may follow; `is_onward` where one of these runs."""

    at: int
    followed: Followed
    strokes: tuple[Stroke, ...]
    arrow: str
    is_onward: bool


@dataclass(frozen=True, slots=True)
class EdgePicture:
    """`hidden_versions` and `hidden_lines` are how many of each have no room in it, `hidden_edges` how many edges
    between the versions in it are not drawn: those of hidden lines, and of most ranges."""

    width: int
    height: int
    dots_at: int
    versions: tuple[DrawnVersion, ...]
    lines: tuple[DrawnLine, ...]
    hidden_versions: int
    hidden_lines: int
    hidden_edges: int

    @property
    def words_at(self) -> int:
        return self.dots_at - 2 * DOT

    @property
    def kinds(self) -> set[str]:
        return {str(kind) for line in self.lines for kind in line.followed.values()}

    @property
    def has_running(self) -> bool:
        return any(version.is_running for version in self.versions)

    @property
    def is_onward(self) -> bool:
        return any(line.is_onward for line in self.lines)


def missing_word(package: Package, one: ListedEntry) -> str:
    """Why an entry has no bundle, in a word; "" where it has one."""
    if one.bundle is not None:
        return ""
    return "unusable" if one.entry.name in package.unusable_bundles else "missing"


def rank_entries(package: Package, channel: Channel) -> list[ListedEntry]:
    """The entries of a channel, the highest version first, those without a bundle last."""
    found = [ListedEntry(entry, package.bundles.get(entry.name)) for entry in channel.entries]
    ranked = sorted((candidate for candidate in found if candidate.bundle), key=_entry_rank, reverse=True)
    return [
        *ranked,
        *sorted((candidate for candidate in found if not candidate.bundle), key=lambda one: one.entry.name),
    ]


def find_head_entry(found: Iterable[ListedEntry], channel: Channel) -> str:
    """The bundle in which the channel ends, of several the highest; "" where it ends in none."""
    heads = set(list_heads(channel))
    return next((candidate.entry.name for candidate in found if candidate.entry.name in heads), "")


def _entry_rank(one: ListedEntry) -> tuple[object, ...]:
    assert one.bundle is not None
    return (*one.bundle.rank, one.entry.name)


def draw_edges(package: Package, channel: Channel, running: Collection[str]) -> EdgePicture:
    """The highest versions of a channel and those that run, with the edges between them.

    Almost every version has a range: of each is drawn what leads to the head, and on from what runs.
    """
    found = rank_entries(package, channel)
    kept = [candidate for candidate in found if candidate.entry.name in running][: MOST_VERSIONS // 2]
    names = {drawn_entry.entry.name for drawn_entry in kept}
    names |= {one.entry.name for one in [it for it in found if it.entry.name not in names][: MOST_VERSIONS - len(kept)]}
    drawn = [candidate for candidate in found if candidate.entry.name in names]
    head = find_head_entry(found, channel)
    runs = {row for row, version in enumerate(drawn) if version.entry.name in running}
    there = {at: _all_followed(drawn, at) for at in range(len(drawn))}
    every = {
        at: _drawn_followed(followed, runs, is_head=drawn[at].entry.name == head) for at, followed in there.items()
    }
    first = {at for at, version in enumerate(drawn) if version.entry.name == head}
    placed, hidden = _place_lines(every, first)
    versions = tuple(_draw_version(package, version, at, head, running) for at, version in enumerate(drawn))
    dots_at = (
        max((LETTER * len(version.words) + NOTE_LETTER * (len(version.note) + 1) for version in versions), default=0)
        + 3 * DOT
    )
    lines = [_draw_line(at, followed, dots_at, place, runs) for at, followed, place in placed]
    count = 1 + max((place for _, _, place in placed), default=0)
    return EdgePicture(
        width=dots_at + LINE * (count + 1) + DOT,
        height=ROW * len(drawn),
        dots_at=dots_at,
        versions=versions,
        lines=tuple(sorted(lines, key=lambda one: (one.is_onward, one.at))),
        hidden_versions=len(found) - len(drawn),
        hidden_lines=hidden,
        hidden_edges=sum(map(len, there.values())) - sum(len(followed) for _, followed, _ in placed),
    )


def _all_followed(drawn: Sequence[ListedEntry], at: int) -> Followed:
    """The rows that an entry may follow, and by what."""
    entry = drawn[at].entry
    return {row: kind for row, other in enumerate(drawn) if row != at and (kind := _edge_kind(entry, other))}


def _drawn_followed(found: Followed, runs: Collection[int], *, is_head: bool) -> Followed:
    """What is drawn of these; of a range that is not the head's only the rows that run."""
    if is_head:
        return found
    return {row: kind for row, kind in found.items() if kind is not EdgeKind.RANGE or row in runs}


def _edge_kind(entry: ChannelEntry, other: ListedEntry) -> EdgeKind | None:
    if entry.replaces == other.entry.name:
        return EdgeKind.REPLACES
    if other.entry.name in entry.skips:
        return EdgeKind.SKIPS
    is_in = entry.skip_range is not None and other.bundle is not None and other.bundle.version in entry.skip_range
    return EdgeKind.RANGE if is_in else None


def _place_lines(lines: Mapping[int, Followed], first: Collection[int]) -> tuple[list[tuple[int, Followed, int]], int]:
    """Each line with its place from the dots on, none over another, and how many found none.

    The rows `first` have their place before the others, of which the shortest come first.
    """
    taken: list[list[tuple[int, int]]] = []
    found, hidden = [], 0
    there = ((at, followed) for at, followed in lines.items() if followed)
    for at, followed in sorted(there, key=lambda line: (line[0] not in first, _line_span(*line), line[0])):
        start, end = _line_reach(at, followed)
        place = next(
            (n for n, spans in enumerate(taken) if all(end < low or start > high for low, high in spans)), len(taken)
        )
        if place >= MOST_LINES:
            hidden += 1
            continue
        taken.extend([] for _ in range(place + 1 - len(taken)))
        taken[place].append((start, end))
        found.append((at, followed, place))
    return found, hidden


def _line_span(at: int, followed: Followed) -> int:
    start, end = _line_reach(at, followed)
    return end - start


def _line_reach(at: int, followed: Followed) -> tuple[int, int]:
    heights = [_own_y(at, followed), *(_y_of(row, at) for row in followed)]
    return min(heights), max(heights)


def _own_y(at: int, followed: Followed) -> int:
    """Where a line ends at its own version: on the side of what it follows, or in the middle of both."""
    is_above, is_below = any(row < at for row in followed), any(row > at for row in followed)
    return _row_middle(at) + ASIDE * (is_below - is_above)


def _y_of(row: int, at: int) -> int:
    """Where a line of the version `at` begins at another one."""
    return _row_middle(row) - (ASIDE if row > at else -ASIDE)


def _row_middle(row: int) -> int:
    return ROW * row + ROW // 2


def _draw_line(at: int, followed: Followed, dots_at: int, place: int, runs: Collection[int]) -> DrawnLine:
    start, beside, own = dots_at + DOT + 2, dots_at + DOT + LINE * (place + 1), _own_y(at, followed)
    strokes = [Stroke(min(followed.values(), key=list(EdgeKind).index), f"M{start} {own}H{beside}")]
    strokes += [Stroke(kind, f"M{start} {_y_of(row, at)}H{beside}") for row, kind in followed.items()]
    for is_above in (True, False):
        side = {_y_of(row, at): kind for row, kind in followed.items() if (row < at) is is_above}
        strokes += _draw_upright(side, beside, own)
    return DrawnLine(at, followed, tuple(strokes), f"M{start - 1} {own}l7 -4v8z", any(row in runs for row in followed))


def _draw_upright(side: Mapping[int, EdgeKind], beside: int, own: int) -> Iterator[Stroke]:
    """From a version as far as it follows by each kind, the surer kind first, none over another."""
    reached = own
    for kind in EdgeKind:
        heights = [y for y, kind_here in side.items() if kind_here is kind]
        farthest = max(heights, key=lambda y: abs(y - own), default=own)
        if abs(farthest - own) > abs(reached - own):
            yield Stroke(kind, f"M{beside} {reached}V{farthest}")
            reached = farthest


def _draw_version(package: Package, one: ListedEntry, at: int, head: str, running: Collection[str]) -> DrawnVersion:
    name = one.entry.name
    said = {
        missing_word(package, one): one.bundle is None,
        "deprecated": package.deprecation_of(name) is not None,
        "head": name == head,
        "runs": name in running,
    }
    words = one.words if len(one.words) <= MOST_LETTERS else f"{one.words[: MOST_LETTERS - 1]}…"
    return DrawnVersion(
        _row_middle(at), words, ", ".join(word for word, holds in said.items() if holds), name in running
    )
