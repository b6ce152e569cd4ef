"""Values that a chart would make up anew, and that the cluster has already: of a release that is taken over, or of a
deployment whose kept values were lost with a database.

A new password over a live one would lock out whatever was set up with it, so the live one is kept.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import Any

from approvals import gate
from approvals.gate import plan_options, reader
from approvals.gate.rights import last_writer_of
from approvals.ledger import made_values
from approvals.models import Request
from approvals.steps.sources import found_as, read_for
from provisioner.cluster.client.api import ClusterClient as Api
from provisioner.errors import BadBundle, Forbidden
from provisioner.json_values import value_at
from provisioner.retention import SECRET
from provisioner.sentences import some
from provisioner.values import (
    CollisionProtection,
    Content,
    GroupKind,
    JsonObject,
    MadePlace,
    MadeSort,
    MadeValue,
    Manifest,
    ObjectRef,
)

# What follows a value in its text is told by so many characters: the rest may be of another version.
DELIMITER = 4
_HOLDERS = frozenset({SECRET, GroupKind("", "ConfigMap")})


def find_live_values(request: Request, api: Api, content: Content) -> dict[str, str]:
    """By MadePlace.key the live values in the place of new ones, and of kept ones that were never applied, in Secrets
    and ConfigMaps that are of this deployment, or that it adopts.

    Whether there are any is found out as the installer. They are read as who wrote the spec last, and only where
    everybody who asked may get the object (S08); raises gate.Refusal else, and BadBundle where a value cannot be told.
    """
    spec, owned = request.bundle_spec, plan_options.owned(request.deployment)
    is_adopting = spec.helm_release() is not None or spec.collision_protection() is not CollisionProtection.PREVENT
    manifests = {
        (manifest.ref.kind, manifest.ref.namespace, manifest.ref.name): manifest
        for manifest in content.manifests
        if manifest.ref.group_kind in _HOLDERS and (is_adopting or manifest.ref.identity in owned)
    }
    unused = made_values.never_applied(request.deployment)
    named = [made for made in content.made_up.values if made.sort is not MadeSort.NAME]
    new = [made for made in named if made.is_new or made.place.key in unused]
    met: dict[MadeValue, list[tuple[MadePlace, Manifest]]] = {}
    seen: dict[ObjectRef, JsonObject | None] = {}
    for made in new:
        for place in (made.place, *made.copies):
            manifest = manifests.get((place.kind, place.namespace, place.name))
            if manifest is None or (key := _key(place)) is None:
                continue
            if manifest.ref not in seen:
                seen[manifest.ref] = _live(api.acting_as(spec.installer).get, manifest.ref)
            live = _text(seen[manifest.ref], key)
            if live and made.value not in live and made.value in _text(manifest.body, key):
                met.setdefault(made, []).append((place, manifest))
    if not met:
        return {}
    refs = sorted({manifest.ref for places in met.values() for _, manifest in places})
    gate.require(request, reader.preparing(request, api, [*read_for(request), *refs]))
    read = found_as(last_writer_of(request).identity, request.deployment.cluster, api)
    bodies = {ref: read(ref) for ref in refs}
    values = {made: _live_value(made, places, bodies) for made, places in met.items()}
    return {place.key: value for made, value in values.items() for place in (made.place, *made.copies)}


def _live_value(
    made: MadeValue, places: Iterable[tuple[MadePlace, Manifest]], bodies: dict[ObjectRef, JsonObject | None]
) -> str:
    """What stands live where the new value would: the text begins as the chart's, and goes on as it does after that."""
    found, named = set(), []
    for place, manifest in places:
        key = _key(place) or ""
        own, live = _text(manifest.body, key), _text(bodies[manifest.ref], key)
        before, _, after = own.partition(made.value)
        named.append(f"{key} of {manifest.ref}")
        start = len(before)
        end = live.find(after[:DELIMITER], start) if after else len(live)
        if live.startswith(before) and end > start:
            found.add(live[start:end])
    if len(found) != 1:
        several = "different values" if found else "another text than the chart renders, so its value cannot be told"
        raise BadBundle(
            f"the chart makes up a new value for {some(named)}, where the cluster has {several}. A new value would "
            "replace one that may be in use: give the chart the value that is in use in `config.values`, or delete the "
            "object if nothing uses it"
        )
    return found.pop()


def _key(place: MadePlace) -> str | None:
    """The key of `data` that a place is in; None for all other places, such as annotations."""
    steps = place.path.split("/")
    is_value = len(steps) == 3 and steps[1] in ("data", "stringData")
    return steps[2].replace("~1", "/").replace("~0", "~") if is_value else None


def _text(body: JsonObject | None, key: str) -> str:
    plain = value_at(body, "stringData", key)
    value: Any = plain if plain is not None else value_at(body, "data", key)
    if value is None or plain is not None or value_at(body, "kind") != "Secret":
        return str(value or "")
    try:
        return base64.b64decode(str(value)).decode()
    except (binascii.Error, UnicodeDecodeError):
        return str(value)


def _live(get: Callable[[ObjectRef], JsonObject | None], ref: ObjectRef) -> JsonObject | None:
    try:
        return get(ref)
    except Forbidden:
        return None  # the plan says that the installer cannot write it
