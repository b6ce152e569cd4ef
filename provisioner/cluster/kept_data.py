"""Whether what a report said of claims still holds: that their volumes stay, and which go with a StatefulSet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.evidence import Query, as_they_are, samples
from provisioner.errors import ClusterError, TryLater
from provisioner.retention import claims_of, takes_claims_along
from provisioner.values import JsonObject, ObjectRef

_KEPT = "Retain"


@dataclass(frozen=True, slots=True)
class VolumeClaim:
    """A claim that goes, as it was shown: its volume ("" none yet), and what was to become of that ("" unknown)."""

    ref: ObjectRef
    volume: str
    policy: str

    @property
    def was_to_stay(self) -> bool:
        """Whether it was said that no data goes; worse than what was said of others nothing can come."""
        return self.policy == _KEPT or not self.volume


def no_longer_kept(readers: Sequence[ClusterClient], shown: Iterable[VolumeClaim]) -> list[str]:
    """Of each claim that `was_to_stay` and loses its data now how, in words.

    Also by the volume that it has now: a claim may have been made again under its name. Each is read as the first of
    `readers` who may. Raises TryLater where nobody can tell.
    """
    asked = list(shown)
    live = _read(readers, [one.ref for one in asked])
    named = [(one.ref, name) for one in asked for name in _volumes(one, live[one.ref])]
    volumes = {name: ObjectRef("", "v1", "PersistentVolume", "", name) for _, name in named}
    there = _read(readers, volumes.values())
    words = []
    for claim, name in named:
        volume = there[volumes[name]]
        policy = str(_spec(volume).get("persistentVolumeReclaimPolicy") or _KEPT)
        if volume is not None and policy != _KEPT:
            words.append(f"{volumes[name]} would be deleted with {claim} ({policy})")
    return words


def _volumes(claim: VolumeClaim, live: JsonObject | None) -> list[str]:
    """The volume that was shown, and the one that it has now."""
    return list(dict.fromkeys(filter(None, (claim.volume, str(_spec(live).get("volumeName") or "")))))


def claims_since(
    readers: Sequence[ClusterClient], stateful_set: JsonObject, ref: ObjectRef, known: Collection[str]
) -> list[str]:
    """The names of claims that go with a StatefulSet and are none of the `known` ones; raises TryLater as above."""
    if not takes_claims_along(stateful_set):
        return []
    query = Query("", "v1", "PersistentVolumeClaim", ref.namespace, metadata_only=True)
    there = samples(readers, [query])[query]
    if there.problem or there.total != len(there.objects):
        raise TryLater(f"the claims that would be deleted with {ref} could not be read: {there.problem or 'too many'}")
    made = claims_of({**stateful_set, "metadata": {"name": ref.name}}, there.objects)
    names = sorted(str(one["metadata"]["name"]) for one in made)
    return [name for name in names if name not in known]


def _read(readers: Sequence[ClusterClient], refs: Iterable[ObjectRef]) -> dict[ObjectRef, dict[str, Any] | None]:
    try:
        return as_they_are(readers, refs)
    except ClusterError as exc:
        raise TryLater(f"whether data stays could not be looked up: {exc}") from exc


def _spec(obj: JsonObject | None) -> Mapping[str, Any]:
    found = (obj or {}).get("spec")
    return found if isinstance(found, Mapping) else {}
