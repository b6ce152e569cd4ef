"""Webhooks that a bundle brings itself: while they do not answer, the bundle that mends or removes them can be planned.

Anybody else's webhook that does not answer is waited for; this one may never answer without what is being planned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from provisioner.cluster.order import WEBHOOKS
from provisioner.errors import Unreachable
from provisioner.values import Manifest

_CALLED = re.compile(r'failed calling webhook "([^"]+)"')


def names_of(manifests: Iterable[Manifest]) -> frozenset[str]:
    """The names of all webhooks, as the API server names them where it cannot call one."""
    lists = (one.body.get("webhooks") for one in manifests if one.ref.group_kind in WEBHOOKS)
    hooks = (hook for found in lists if isinstance(found, list) for hook in found if isinstance(hook, Mapping))
    return frozenset(str(hook["name"]) for hook in hooks if hook.get("name"))


def untried_words(error: Unreachable, own: frozenset[str]) -> str:
    """Why an object could not be tried, where only a webhook among `own` did not answer; "" for any other failure."""
    found = _CALLED.search(str(error))
    if found is None or found.group(1) not in own:
        return ""
    return f"a webhook of the bundle itself does not answer, so that it could not be tried: {error}"
