"""Hooks of charts: what Helm runs at a moment of a release, as the hooks of a content.

Whether a chart is installed or upgraded is pinned with its rendering, so that only the hooks of that one are in it.
Tests, rollbacks and what Helm does not know are left out: nobody runs `helm test`, and going back applies a revision
that was approved before.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from provisioner.render.objects import Found
from provisioner.values import Hook, HookMoment

HOOK, WEIGHT, DELETE_POLICY = "helm.sh/hook", "helm.sh/hook-weight", "helm.sh/hook-delete-policy"
_INSTALLING = {"pre-install": HookMoment.BEFORE, "post-install": HookMoment.AFTER}
_UPGRADING = {"pre-upgrade": HookMoment.BEFORE, "post-upgrade": HookMoment.AFTER}
_DELETING = {"pre-delete": HookMoment.BEFORE_DELETION, "post-delete": HookMoment.AFTER_DELETION}
_CLEARED = "hook-succeeded"
# As Go reads an integer; Helm takes 0 for anything else.
_WEIGHT = re.compile(r"[+-]?[0-9]{1,9}")


def with_hooks(objects: Iterable[Found], *, is_upgrade: bool) -> list[Found]:
    """Each object with when it runs, without the hooks that never do here."""
    marked = (_marked(one, is_upgrade) for one in objects)
    return [one for one in marked if one.hook is None or one.hook.moments]


def _marked(found: Found, is_upgrade: bool) -> Found:
    annotations = _annotations(found)
    said = _words(annotations.get(HOOK))
    if not said:
        return found
    known = {**(_UPGRADING if is_upgrade else _INSTALLING), **_DELETING}
    weight = str(annotations.get(WEIGHT) or "").strip()
    hook = Hook.at(
        (moment for name, moment in known.items() if name in said),
        weight=int(weight) if _WEIGHT.fullmatch(weight) else 0,
        is_cleared=_CLEARED in _words(annotations.get(DELETE_POLICY)),
    )
    return replace(found, hook=hook)


def _annotations(found: Found) -> Mapping[str, Any]:
    metadata = found.body.get("metadata") if isinstance(found.body, Mapping) else None
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _words(text: Any) -> frozenset[str]:
    return frozenset(one.strip().lower() for one in str(text).split(",") if one.strip()) if text else frozenset()
