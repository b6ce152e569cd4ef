"""What annotations and labels say of an object: what we write there ourselves, and that a deletion is to leave it.

Our tracking says whose the object is, which revision wrote it last, and a nonce: for people, `kubectl get -l` and other
tools. What is ours the inventory says, and never this (S20); only a nonce that was recorded before the write proves
after a crash that the write was ours. No comparison ever shows it.

The words that keep an object (S39) count in the approved content, and on the live object, where an operator writes
them. Helm reads the stored manifest when it uninstalls (pkg/action/resource_policy.go) and the live object when it
upgrades (pkg/kube/client.go); the others read the live one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.api_groups import DELETION_POLICY, OWN_GROUP
from provisioner.json_values import mapping, uid_of
from provisioner.values import DeletionPolicy, GroupKind, HookRun, JsonObject, ObjectRef

FIELD_MANAGER = "pratique"
NONCE = f"{OWN_GROUP}/nonce"
OWNER = f"{OWN_GROUP}/owner"
# Labels, as RukPak wrote them.
OWNER_KIND, OWNER_NAME = f"{OWN_GROUP}/owner-kind", f"{OWN_GROUP}/owner-name"
_NAMES = {"annotations": frozenset({NONCE, OWNER}), "labels": frozenset({OWNER_KIND, OWNER_NAME})}
_KIND = "BundleDeployment"
# Kubernetes, pkg/apis/batch/v1/defaults.go and pkg/apis/core/v1/defaults.go.
_LABELLED_BY_TEMPLATE = frozenset({GroupKind("batch", "Job"), GroupKind("", "ReplicationController")})
# A label's value is no longer; a name may be.
_LABEL_LENGTH, _HASH_LENGTH = 63, 8


_OWNER = re.compile(rf"{_KIND} (?P<name>\S+), revision (?P<revision>[0-9]{{1,9}})")


@dataclass(frozen=True, slots=True)
class RevisionOwner:
    """The BundleDeployment and the number of its revision that an object is written for.

    `newest` is the highest number that its revisions had when the writing began, higher than `revision` where an older
    one is restored; 0 stands for `revision` itself.
    """

    name: str
    revision: int
    newest: int = 0

    def __str__(self) -> str:
        return f"{_KIND} {self.name}, revision {self.revision}"

    def newer_on(self, obj: JsonObject) -> int:
        """The revision of the same deployment that wrote `obj` last, if it began after all that we know of; else 0."""
        said = owner_on(obj)
        if said is None or said.name != self.name:
            return 0
        return said.revision if said.revision > max(self.revision, self.newest) else 0


@dataclass(frozen=True, slots=True)
class Tracking:
    """The annotations and labels of ours that one object bears, or is to bear."""

    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.annotations or self.labels)

    @classmethod
    def of(cls, nonce: str, owner: RevisionOwner | None = None) -> Tracking:
        """What a write bears; `nonce` may be ""."""
        annotations = {NONCE: nonce} if nonce else {}
        if owner is None:
            return cls(annotations)
        labels = {OWNER_KIND: _KIND, OWNER_NAME: label_value(owner.name)}
        return cls({**annotations, OWNER: str(owner)}, labels)

    @classmethod
    def on(cls, obj: JsonObject) -> Tracking:
        """What an object bears."""
        meta = obj.get("metadata") or {}
        every = {part: _map_of(meta, part).items() for part in _NAMES}
        return cls(**{part: {key: value for key, value in every[part] if key in _NAMES[part]} for part in every})

    def suited_to(self, obj: JsonObject) -> Tracking:
        """Without labels where these would keep the API server from giving the object those of its pod template."""
        has_labels = bool((obj.get("metadata") or {}).get("labels"))
        is_kept_bare = not has_labels and ObjectRef.of(obj).group_kind in _LABELLED_BY_TEMPLATE
        return replace(self, labels={}) if is_kept_bare else self

    def put_on(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """The metadata with it; labels or annotations that are no map stay so, for the API server to refuse."""
        parts = {"annotations": self.annotations, "labels": self.labels}
        ours = {part: {**_map_of(metadata, part), **own} for part, own in parts.items() if own}
        return {**metadata, **{part: own for part, own in ours.items() if _is_map(metadata, part)}}

    def taken_away(self) -> dict[str, dict[str, None]]:
        """The metadata of a merge patch that takes them away."""
        parts = {"annotations": self.annotations, "labels": self.labels}
        return {part: dict.fromkeys(own) for part, own in parts.items() if own}


NO_TRACKING = Tracking()
# What asks for the most room: annotations are limited in size.
LARGEST_TRACKING = Tracking({NONCE: "0" * 32, OWNER: str(RevisionOwner("n" * 253, 999_999))})


def without_tracking(metadata: dict[str, Any]) -> dict[str, Any]:
    """The metadata as its other writers left it; an empty map counts as none."""
    for part, names in _NAMES.items():
        if _is_map(metadata, part):
            left = {key: value for key, value in _map_of(metadata, part).items() if key not in names}
            metadata.pop(part, None)
            metadata |= {part: left} if left else {}
    return metadata


def _is_map(metadata: Mapping[str, Any], part: str) -> bool:
    return isinstance(metadata.get(part) or {}, Mapping)


def _map_of(metadata: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    return mapping(metadata.get(part))


def owner_on(obj: JsonObject) -> RevisionOwner | None:
    """Whom an object says that it was written for, None where it names nobody; never proof (S20)."""
    said = _OWNER.fullmatch(made_for(obj))
    return RevisionOwner(said["name"], int(said["revision"])) if said else None


def has_named_owner(obj: JsonObject, manager: str) -> bool:
    """Whether it was `manager` that wrote whose revision the object is: anybody may write such words (S20)."""
    entries = (obj.get("metadata") or {}).get("managedFields") or []
    fields = (entry.get("fieldsV1") or {} for entry in entries if entry.get("manager") == manager)
    return any(f"f:{OWNER}" in ((field_set.get("f:metadata") or {}).get("f:annotations") or {}) for field_set in fields)


def nonce_of(obj: JsonObject) -> str:
    return Tracking.on(obj).annotations.get(NONCE, "")


def is_left_by(run: HookRun, obj: JsonObject) -> bool:
    """Whether this run of a hook made the object: by its uid, or by the nonce of a write that nobody heard of."""
    return uid_of(obj) == run.uid if run.uid else nonce_of(obj) == run.nonce


def made_for(obj: JsonObject) -> str:
    """Whom an object says that it was written for, an RevisionOwner's words; hints for people, never proof (S20)."""
    return str(Tracking.on(obj).annotations.get(OWNER, ""))


def label_value(name: str) -> str:
    """A name as a label's value: cut, and told apart by a hash, where it is longer than one may be."""
    if len(name) <= _LABEL_LENGTH:
        return name
    told_apart = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _LABEL_LENGTH - _HASH_LENGTH - 1].rstrip('-.')}-{told_apart}"


# The older word for `DELETION_POLICY: Orphan`.
PRUNE, KEEP = f"{OWN_GROUP}/prune", "false"
_SYNC_OPTIONS = "argocd.argoproj.io/sync-options"
# Of Argo CD: what is dropped stays with the first, what is deleted with its application with the second.
_OF_DROPPED, _OF_REMOVED = "Prune=false", "Delete=false"


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """An annotation, or a label where `is_label`, that keeps an object whose value is `means`.

    `reads` is how its own tool reads the value.
    """

    key: str
    means: str
    reads: Callable[[str], str] = str
    is_label: bool = False


_POLICIES = (
    KeepPolicy(DELETION_POLICY, DeletionPolicy.ORPHAN),
    KeepPolicy(PRUNE, KEEP),
    KeepPolicy("helm.sh/resource-policy", "keep", reads=lambda value: value.strip().lower()),
    KeepPolicy("kustomize.toolkit.fluxcd.io/prune", "disabled"),
    KeepPolicy("kustomize.toolkit.fluxcd.io/prune", "disabled", is_label=True),
    KeepPolicy("kapp.k14s.io/delete-strategy", "orphan"),
    KeepPolicy("cli-utils.sigs.k8s.io/on-remove", "keep"),
    KeepPolicy("client.lifecycle.config.k8s.io/deletion", "detach"),
)


def keep_words(obj: JsonObject | None, *, is_removal: bool | None = None) -> str:
    """What an object says to be kept by, as it stands there; "" where it says nothing of the kind.

    `is_removal`: its deployment is deleted, and else a new version has it no more; None for a deletion to make it anew,
    from which any of the words keeps it.
    """
    metadata = mapping((obj or {}).get("metadata"))
    annotations, labels = mapping(metadata.get("annotations")), mapping(metadata.get("labels"))
    for policy in _POLICIES:
        value = str((labels if policy.is_label else annotations).get(policy.key) or "")
        if policy.reads(value) == policy.means:
            return f"{policy.key}: {value}"
    options = [option.strip() for option in str(annotations.get(_SYNC_OPTIONS) or "").split(",")]
    wanted = {True: (_OF_REMOVED,), False: (_OF_DROPPED,), None: (_OF_DROPPED, _OF_REMOVED)}[is_removal]
    return next((f"{_SYNC_OPTIONS}: {option}" for option in wanted if option in options), "")
