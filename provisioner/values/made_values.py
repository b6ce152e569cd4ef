"""What a chart makes up when it is rendered: passwords, certificates, names. Its values belong to the deployment."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum


class MadeSort(StrEnum):
    """A value of a Secret or a part of it, a hash of one with salt, what a block of PEM holds, a part of an object's
    name, the time, or a text anywhere else."""

    PASSWORD = "password"  # noqa: S105 -- the word, not one
    HASH = "hash"
    PRIVATE_KEY = "private key"
    PUBLIC_KEY = "public key"
    CERTIFICATE = "certificate"
    AUTHORITY = "CA certificate"
    TIME = "time"
    NAME = "name"
    TEXT = "text"


@dataclass(frozen=True, slots=True, order=True)
class MadePlace:
    """Where a chart first puts a value that it made up; everybody may know it.

    `path` is a JSON pointer in the object, `number` counts the values in that text, from 0. Where the name itself is
    made up, `name` is "" and `path` begins with the file and the number of the object in it.
    """

    kind: str
    namespace: str
    name: str
    path: str
    number: int = 0

    @property
    def key(self) -> str:
        """SHA-256 in hex of all that it says: the same for the same place in each version of a chart."""
        parts = [self.kind, self.namespace, self.name, self.path, self.number]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class MadeValue:
    """A value that a chart made up. `copies` are the other places that it went to; `is_new` where nothing was kept.

    `is_rotated`: it was made anew in place of a kept one, because somebody asked for that. `generation` counts the
    values of the place from 1; 0 where the value is not kept yet.
    """

    place: MadePlace
    value: str = field(repr=False)
    sort: MadeSort
    copies: tuple[MadePlace, ...] = ()
    is_new: bool = True
    is_rotated: bool = False
    generation: int = 0

    @property
    def places(self) -> tuple[MadePlace, ...]:
        return (self.place, *self.copies)


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum over texts with made-up values, computed again; `is_known` where the way of the chart was found."""

    place: MadePlace
    is_known: bool


@dataclass(frozen=True, slots=True)
class MadeUp:
    """All that one rendering of a chart made up, with the kept values in place of new ones."""

    values: tuple[MadeValue, ...] = ()
    checksums: tuple[Checksum, ...] = ()

    def kept(self) -> MadeUp:
        """The same where it comes from an earlier rendering, so that nothing of it is made now."""
        values = (replace(made, is_new=False, is_rotated=False) for made in self.values)
        return MadeUp(tuple(values), self.checksums)

    def renamed(self, names: RenamedObjects) -> MadeUp:
        """The same after objects got other names: what is in them is there as well, and keeps the key that it had."""

        def moved(place: MadePlace) -> MadePlace:
            namespace, name = names.get((place.kind, place.namespace, place.name), (place.namespace, place.name))
            return replace(place, namespace=namespace, name=name)

        values = []
        for made in self.values:
            places = dict.fromkeys((*made.copies, *map(moved, (made.place, *made.copies))))
            values.append(replace(made, copies=tuple(sorted(places.keys() - {made.place}))))
        checksums = (replace(checksum, place=moved(checksum.place)) for checksum in self.checksums)
        return MadeUp(tuple(values), tuple(checksums))


RenamedObjects = Mapping[tuple[str, str, str], tuple[str, str]]
"""The namespace and name of objects after patches, by the kind, namespace and name that their chart gave."""


KeptValues = Mapping[str, str]
"""The values that a deployment kept, by MadePlace.key; "" for one that is to be made anew."""
