"""`catalog diff --lines`: what differs in each object of a comparison, read from the service object by object."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from provisioner.cli.plugin.service import Service, told_by
from provisioner.cli.usage import Usage
from provisioner.sentences import and_more, number
from provisioner.values import ObjectRef

# The service answers so many questions of this kind within a minute.
MOST_OBJECTS = 200
Record = Mapping[str, Any]


def lines_of_objects(service: Service, address: str, asked: Mapping[str, str], result: Record) -> list[dict[str, Any]]:
    """The lines of each object in the order of the plan, of the first MOST_OBJECTS that change."""
    with told_by(service):
        places = sorted(map(int, result["changed"]))[:MOST_OBJECTS]
        return [_object(service, f"{address}/objects/{at}", asked) for at in places]


def _object(service: Service, address: str, asked: Mapping[str, str]) -> dict[str, Any]:
    found = service.get(address, **asked)
    hunks, at = [*found["hunks"]], found["parts"]["lines"]["next"]
    while at is not None:
        part = service.get(address, **asked, lines_from=at)
        hunks += part["hunks"]
        after = part["parts"]["lines"]["next"]
        if after is not None and after <= at:
            raise Usage("the service stopped in the middle of an object: run the command again")
        at = after
    return {"ref": found["ref"], "is_hidden": found["is_hidden"], "hunks": hunks, "left_out": found["left_out"]}


def printed_lines(result: Record, objects: Sequence[Record]) -> Iterator[str]:
    """For a terminal; says of how many objects nothing is shown."""
    for one in objects:
        yield ""
        yield f"{ObjectRef(**one['ref'])}:"
        if one["is_hidden"]:
            yield "  you may not get it"
        for hunk in one["hunks"]:
            yield f"  @ {hunk['place']}".rstrip()
            yield from (f"  {line['kind']} {line['text']}" for line in hunk["lines"])
        if one["left_out"]:
            yield f"  {and_more(one['left_out'], 'lines')}; the report of a request shows them"
    if left := len(result["changed"]) - len(objects):
        yield ""
        yield f"and the lines of {number(left, 'more object')}"
