"""Webhooks and API servers that a bundle brings itself: while they do not answer, the bundle that mends or removes them
can be planned.

Anybody else's that does not answer is waited for; this one may never answer without what is being planned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from provisioner.cluster.order import WEBHOOKS, defined_kinds
from provisioner.errors import Unreachable
from provisioner.values import GroupKind, Manifest, ObjectIdentity, ObjectRef

_CALLED = re.compile(r'failed calling webhook "([^"]+)"')
_SERVED_BY = GroupKind("apiregistration.k8s.io", "APIService")
_SERVING = re.compile(r"the API ([^/\s]+)/(\S+) is registered but does not answer")
_CONVERTING = re.compile(r"conversion webhook for ([^/\s]+)/[^,\s]+, Kind=(\w+)")


def names_of(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The names of all webhooks, as the API server names them where it cannot call one: of conversions the kind.

    And those of the APIServices.
    """
    manifests = list(manifests)
    lists = (one.body.get("webhooks") for one in manifests if one.ref.group_kind in WEBHOOKS)
    hooks = (hook for found in lists if isinstance(found, list) for hook in found if isinstance(hook, Mapping))
    names = frozenset(str(hook["name"]) for hook in hooks if hook.get("name"))
    names |= {one.ref.name for one in manifests if one.ref.group_kind == _SERVED_BY}
    return names | {str(kind) for one in manifests if _is_converted(one) for kind in defined_kinds([one])}


def untried_words(error: Unreachable, own: frozenset[str]) -> str:
    """Why an object could not be tried, where only something among `own` did not answer; "" for any other failure."""
    found = sorted(_names_in(error.in_full) & own)
    if not found:
        return ""
    who = "an API server" if _SERVING.search(error.in_full) else "a webhook"
    return f"{who} of the bundle itself ({', '.join(found)}) does not answer, so that it could not be tried"


def is_served_by_own(ref: ObjectRef, brought: Collection[ObjectIdentity]) -> bool:
    """Whether the bundle brings the APIService of an object: then nobody knows its kind yet."""
    return (_SERVED_BY.group, _SERVED_BY.kind, "", f"{ref.version}.{ref.group}") in brought


def _names_in(words: str) -> frozenset[str]:
    called, converting, serving = (one.search(words) for one in (_CALLED, _CONVERTING, _SERVING))
    found = called.group(1) if called else str(GroupKind(*converting.groups())) if converting else ""
    return frozenset({found or (f"{serving.group(2)}.{serving.group(1)}" if serving else "")} - {""})


def _is_converted(manifest: Manifest) -> bool:
    spec = manifest.body.get("spec")
    conversion = spec.get("conversion") if isinstance(spec, Mapping) else None
    return isinstance(conversion, Mapping) and conversion.get("strategy") == "Webhook"
