"""Having a comparison worked out, within the quotas of a person, and its result as that person may see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from approvals import wake
from approvals.access import Caller
from approvals.access.sight import ReportSight, Sight, is_secret, may_see_roles, reference
from approvals.catalogs import comparisons
from approvals.clock import database_now
from approvals.errors import NotFound, TooMany
from approvals.limits import Limit, take
from approvals.models import BundleComparison, Cluster
from approvals.services.comparisons.asked import AskedComparison, check_may_compare
from provisioner.review.base.difference import DiffLine
from provisioner.sentences import number

HOUR = 3600
# Kubernetes is asked at most this often for one result.
MOST_ASKED = 300
WORDS = "you have asked for {most} comparisons within an hour, which is the limit (PRATIQUE_COMPARISONS_PER_HOUR)"


@dataclass(frozen=True, slots=True)
class ComparedLines:
    """What differs in one object of a comparison; `left` counts the lines that are not kept.

    Where the viewer may not get the object, `is_hidden` says so and there are no lines (S09).
    """

    ref: dict[str, str]
    lines: list[DiffLine] = field(default_factory=list)
    left: int = 0
    is_hidden: bool = False


def known_comparison(asked: AskedComparison) -> BundleComparison | None:
    """The comparison that is under way, or has a result that still counts."""
    return comparisons.known(asked.catalog.cluster, asked.wish, database_now())


def compare_bundles(*, by: Caller, asked: AskedComparison) -> BundleComparison:
    """Have it worked out, unless it is known or under way already.

    Raises as `check_may_compare`, TooMany and TooManyAttempts where the caller has asked for too many.
    """
    cluster = asked.catalog.cluster
    _check(by, asked, is_fresh=True)
    found = known_comparison(asked)
    if found is not None and found.state != BundleComparison.State.FAILED:
        return found
    most = settings.PRATIQUE["COMPARISONS"]
    if comparisons.under_way(by.user) >= most:
        raise TooMany(
            f"{number(most, 'comparison')} that you asked for {'is' if most == 1 else 'are'} still being prepared, and "
            "you may have no more at the same time (PRATIQUE_COMPARISONS): wait until one of them has ended"
        )
    limit = Limit("comparisons", settings.PRATIQUE["COMPARISONS_PER_HOUR"], HOUR)
    take(limit, str(by.user.pk), words=f"{WORDS.format(most=limit.most)}: try again in {{time}}")
    if found is not None:
        comparisons.forget(found)
    made = comparisons.begin(cluster, asked.wish, user=by.user, most=most, now=database_now())
    wake.comparison(made.pk)
    return made


def comparison_result(*, by: Caller, asked: AskedComparison, row: BundleComparison) -> dict[str, Any] | None:
    """The result as `by` may see it; None where there is none yet. `hidden` says what is left out, in words.

    Raises as `check_may_compare`.
    """
    _check(by, asked)
    if row.result is None:
        return None
    result: dict[str, Any] = row.result
    held = set(result["held"])
    told = {key: value for key, value in result.items() if key != "held"} | {"hidden": []}
    if asked.deployment is None:
        return told
    return _seen(by, asked.catalog.cluster, told, held)


def comparison_lines(*, by: Caller, asked: AskedComparison, row: BundleComparison, position: int) -> ComparedLines:
    """What differs in the object at this position of the plan.

    Raises as `check_may_compare`, and NotFound where there is no such position, or no result yet.
    """
    _check(by, asked)
    actions = row.result["report"]["plan"]["actions"] if row.result else []
    if position >= len(actions):
        raise NotFound("the comparison has no such object: compare again, and open the object from there")
    ref = actions[position]["ref"]
    is_held = asked.deployment is not None and comparisons.key_of(ref) in row.result["held"]
    if is_held and not Sight(by, asked.catalog.cluster, limit=MOST_ASKED).may_see(reference(ref)):
        return ComparedLines(ref, is_hidden=True)
    found = row.lines.get(str(position))
    if found is None:
        return ComparedLines(ref)
    lines = [DiffLine(kind, text, old=old, new=new) for kind, text, old, new in found["lines"]]
    return ComparedLines(ref, lines, found["left"])


def _check(by: Caller, asked: AskedComparison, *, is_fresh: bool = False) -> None:
    catalog, deployment = asked.catalog, asked.deployment.name if asked.deployment else ""
    check_may_compare(by=by, cluster=catalog.cluster, catalog=catalog.name, deployment=deployment, is_fresh=is_fresh)


def _seen(by: Caller, cluster: Cluster, told: dict[str, Any], held: set[str]) -> dict[str, Any]:
    """The result without what somebody sees only who may get the objects, whatever they run as (S09)."""
    report = told["report"]
    plan = report["plan"]
    # Sight tells what exists by its state before.
    there = [{**one, "before": {} if comparisons.key_of(one["ref"]) in held else None} for one in plan["actions"]]
    body = {**report, "plan": {**plan, "actions": there}}
    sight = ReportSight(Sight(by, cluster, limit=MOST_ASKED), body)
    actions = [{**sight.action(one), "before": None, "after": None} for one in there]
    hidden_places = {str(at) for at, one in enumerate(actions) if one.get("hidden")}
    changed = {at: counts for at, counts in told["changed"].items() if at not in hidden_places}
    shown = {
        **body,
        "findings": [sight.finding(one) for one in body["findings"]],
        "private": sight.private(body),
        "plan": {**plan, "actions": actions},
    }
    images = [one for one in told["images"] if comparisons.key_of(one["ref"]) not in held or sight.may_see(one["ref"])]
    hidden = []
    # Of comparisons that an earlier version made: whoever sees a digest could try values of Secrets on it (S38).
    is_told = not any(is_secret(one["ref"]) for one in there)
    digests = told["content_digests"] if is_told else {"before": "", "after": ""}
    if len(images) != len(told["images"]):
        hidden.append(f"{number(len(told['images']) - len(images), 'image')} of objects that you may not get")
    permissions = told["permissions"]
    if not may_see_roles(by, cluster):
        permissions = {"worst": permissions["worst"], "accounts": [], "everybody": [], "problems": []}
        hidden.append("permissions, because you may not get all roles and bindings")
    return {
        **told,
        "config": {},
        "content_digests": digests,
        "report": shown,
        "changed": changed,
        "images": images,
        "permissions": permissions,
        "hidden": hidden,
    }
