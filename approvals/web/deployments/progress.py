"""How a deployment stands now: the part of its page that follows what happens, until nothing is under way."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import HttpRequest

from approvals import access
from approvals.lifecycle import OPEN, State
from approvals.models import BundleDeployment, Outcome, Report, Request
from approvals.selectors import lists
from approvals.selectors.status import statuses
from approvals.web.access_decorators import person

HISTORY = 30
QUICK_SECONDS = 2
SLOW_SECONDS = 10
# What the machine is at: it moves by itself.
QUICK = frozenset({State.PREPARING, State.APPROVED, State.APPLYING, State.RESTORING, State.STALE})
WRITING = frozenset({State.APPLYING, State.RESTORING})


def progress(http: HttpRequest, deployment: BundleDeployment) -> dict[str, Any]:
    """The facts of `deployments/_progress.html` and `deployments/_history.html`."""
    history = lists.requests_of(deployment=deployment, limit=HISTORY)
    known = statuses(history)
    latest = history[0] if history else None
    how = known[latest.pk] if latest else None
    mark = _mark(deployment, latest)
    seen = http.GET.get("seen", "")[:100]
    return {
        "deployment": deployment,
        "history": [(one, known[one.pk]) for one in history],
        "open_request": latest if latest and latest.state in OPEN else None,
        "latest": latest,
        "how": how,
        "offered": _offered(http, deployment, how.steps) if how and how.is_told else [],
        "written": _written(latest) if latest and latest.state in WRITING else None,
        "health": lists.inventory_health(deployment=deployment),
        "wait_seconds": _wait_seconds(deployment, latest),
        "mark": seen or mark,
        "has_moved": bool(seen) and seen != mark,
    }


def _offered(http: HttpRequest, deployment: BundleDeployment, steps: tuple[Any, ...]) -> list[Any]:
    verbs = sorted({one.verb for one in steps if one.verb})
    may = {
        verb: access.may(person(http), deployment.cluster, verb, resource="bundledeployments", name=deployment.name)
        for verb in verbs
    }
    return [one for one in steps if not one.verb or may[one.verb].allowed]


def _written(request: Request) -> dict[str, int]:
    """Objects done, failed and planned, of the step that runs."""
    step = Outcome.Step.RESTORE if request.state == State.RESTORING else Outcome.Step.APPLY
    counted = Counter(request.outcomes.filter(step=step).values_list("state", flat=True))
    report = Report.objects.filter(request=request, round=request.round).defer("body").first()
    done = sum(counted.values())
    return {
        "done": done,
        "failed": counted["failed"],
        "total": max(sum((report.actions if report else {}).values()), done),
    }


def _wait_seconds(deployment: BundleDeployment, latest: Request | None) -> int:
    """Until the fragment asks again; 0 where nothing is under way. PURE"""
    if latest and latest.state in OPEN:
        return QUICK_SECONDS if latest.state in QUICK and not latest.problem else SLOW_SECONDS
    is_settling = deployment.active_revision_id is not None and deployment.health in ("", "InProgress")
    return SLOW_SECONDS if is_settling and not deployment.gone_at else 0


def _mark(deployment: BundleDeployment, latest: Request | None) -> str:
    """What the rest of the page was made from."""
    revision = deployment.active_revision.number if deployment.active_revision else 0
    return f"{latest.number}-{latest.state}-{revision}" if latest else f"0-none-{revision}"
