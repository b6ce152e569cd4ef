"""Webhooks that a bundle brings itself: while they do not answer, the bundle that mends or removes them can be planned.

Anybody else's webhook that does not answer is waited for; this one may never answer without what is being planned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from provisioner.cluster.order import WEBHOOKS, defined_kinds
from provisioner.errors import Unreachable
from provisioner.values import GroupKind, Manifest

_CALLED = re.compile(r'failed calling webhook "([^"]+)"')
_CONVERTING = re.compile(r"conversion webhook for ([^/\s]+)/[^,\s]+, Kind=(\w+)")


def names_of(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The names of all webhooks, as the API server names them where it cannot call one: of conversions the kind."""
    manifests = list(manifests)
    lists = (one.body.get("webhooks") for one in manifests if one.ref.group_kind in WEBHOOKS)
    hooks = (hook for found in lists if isinstance(found, list) for hook in found if isinstance(hook, Mapping))
    names = frozenset(str(hook["name"]) for hook in hooks if hook.get("name"))
    return names | {str(kind) for one in manifests if _is_converted(one) for kind in defined_kinds([one])}


def untried_words(error: Unreachable, own: frozenset[str]) -> str:
    """Why an object could not be tried, where only a webhook among `own` did not answer; "" for any other failure."""
    called, converting = _CALLED.search(str(error)), _CONVERTING.search(str(error))
    name = called.group(1) if called else str(GroupKind(*converting.groups())) if converting else ""
    if not name or name not in own:
        return ""
    return f"a webhook of the bundle itself does not answer, so that it could not be tried: {error}"


def _is_converted(manifest: Manifest) -> bool:
    spec = manifest.body.get("spec")
    conversion = spec.get("conversion") if isinstance(spec, Mapping) else None
    return isinstance(conversion, Mapping) and conversion.get("strategy") == "Webhook"
