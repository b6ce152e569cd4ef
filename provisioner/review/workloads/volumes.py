"""What becomes of data when claims go: how much each holds, and whether its volume goes with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.review.base.facts import Facts, Listing, mapping
from provisioner.review.base.sizes import bytes_of, in_words
from provisioner.values import GroupKind, JsonObject, ObjectRef

CLAIM = GroupKind("", "PersistentVolumeClaim")
VOLUMES = Listing("", "v1", "PersistentVolume")
_KEPT = "Retain"


@dataclass(frozen=True, slots=True)
class ClaimedVolume:
    """One claim: its bytes (None: unknown), its volume, and what happens to that afterwards (`policy`, "" unknown)."""

    name: str
    size: int | None
    volume: str
    policy: str

    @property
    def is_kept(self) -> bool:
        return self.policy == _KEPT

    @property
    def fate(self) -> str:
        """What becomes of it, by the name of its message in `shared/going`."""
        if not self.volume:
            return "no-volume"
        if self.is_kept:
            return "kept"
        return "deleted-with-it" if self.policy else "unknown-policy"


def holdings(claims: Iterable[JsonObject], facts: Facts) -> list[ClaimedVolume]:
    """What claims hold, by name; policies where the volumes of the cluster could be listed."""
    listed = facts.around.lists.get(VOLUMES)
    policies = {ObjectRef.of(one).name: _policy(one) for one in (listed.objects if listed else ())}
    return sorted((_holding(one, policies) for one in claims), key=lambda it: it.name)


def _policy(volume: JsonObject) -> str:
    return str(mapping(volume.get("spec")).get("persistentVolumeReclaimPolicy") or _KEPT)


def _holding(claim: JsonObject, policies: Mapping[str, str]) -> ClaimedVolume:
    spec, status = mapping(claim.get("spec")), mapping(claim.get("status"))
    asked = mapping(mapping(spec.get("resources")).get("requests")).get("storage")
    volume = str(spec.get("volumeName") or "")
    size = bytes_of(mapping(status.get("capacity")).get("storage") or asked)
    return ClaimedVolume(ObjectRef.of(claim).name, size, volume, policies.get(volume, ""))


def in_sum(found: list[ClaimedVolume]) -> dict[str, Any]:
    """All of them: how many, how much, and how much of it for good on how many volumes."""
    gone = [one for one in found if one.volume and not one.is_kept]
    lost = {"lost": in_words(sum(one.size or 0 for one in gone)), "volumes": len(gone)} if gone else {}
    return {"variant": "claims", "claims": len(found), "size": in_words(sum(one.size or 0 for one in found)), **lost}


def to_record(found: list[ClaimedVolume]) -> list[dict[str, Any]]:
    """As evidence."""
    return [
        {
            "claim": one.name,
            "size": in_words(one.size) if one.size is not None else "",
            "volume": one.volume,
            "policy": one.policy,
        }
        for one in found
    ]
