"""Members of a change set, as tests make them."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User

from approvals.models import Cluster, Report, Request
from approvals.selectors import sets
from tests.support.approvals import world

NEEDS = [["apps", "v1", "Deployment", "harbour"]]
DELETION = {
    **dict.fromkeys(("problem", "problemCode", "serverWords", "uid", "resourceVersion"), ""),
    **{name: [] for name in ("warnings", "notes")},
    "action": "delete",
    "before": {},
    "after": None,
    "isProved": True,
    "ref": {"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "harbour", "name": "old"},
}


def member(where: Cluster, name: str, by: User, likeness: Any = "a", **report: Any) -> Request:
    """A request in review of a deployment of the set `spring`; `likeness` is the digest, or all of the column."""
    seen = world.seen(name, world.spec(), labels={sets.LABEL: "spring"})
    made = world.in_review(world.submit_spec(where, seen, by).requests.get(), **report)
    known = {"digest": likeness, "needs": NEEDS} if isinstance(likeness, str) else likeness
    Report.objects.filter(request=made).update(likeness=known)
    return made
