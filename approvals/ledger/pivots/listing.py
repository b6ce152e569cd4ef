"""What lists find a request by, beside its row (models.listing): kept with every change of what it says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from approvals.models import Request, RequestAsker, RequestRule, RequestText
from provisioner.values import Finding, Severity

# Searching reads every text: no more of a headline than a row shows.
MAX_TEXT = 400
MAX_FORMAT = 60


def weight_of(severity: Severity) -> int:
    """6 for critical to 1 for safe, so that the worst comes first in descending order; 0 is left for "no report"."""
    return len(Severity) - severity.rank


def list_request(request: Request) -> None:
    """For a request that was just made: its name and its requesters."""
    RequestText.objects.create(request=request, text=_text(request, ()))
    list_askers(request)


def list_askers(request: Request) -> None:
    """The requesters as the row has them now."""
    names = {str(one["username"])[:253] for one in request.requesters if one.get("username")}
    request.askers.exclude(username__in=names).delete()
    wanted = [RequestAsker(request=request, username=name) for name in sorted(names)]
    RequestAsker.objects.bulk_create(wanted, ignore_conflicts=True)


def list_report(request: Request, *, headline: Sequence[str], findings: Iterable[Finding]) -> None:
    """The headline and the rules of the present report, in place of those of the round before."""
    RequestText.objects.update_or_create(request=request, defaults={"text": _text(request, headline)})
    request.rules.all().delete()
    RequestRule.objects.bulk_create(
        RequestRule(request=request, rule=rule, weight=weight)
        for rule, weight in sorted(listed_rules(findings).items())
    )


def listed_rules(findings: Iterable[Finding]) -> Mapping[str, int]:
    """The weight of each rule's worst finding, of those findings whose rule every reader of the cluster may know.

    Which rule a Secret meets tells how it differs from the bundle's, so it is for those who may get it (access.sight).
    """
    found: dict[str, int] = {}
    for one in findings:
        if one.ref is None or (one.ref.group, one.ref.kind) != ("", "Secret"):
            found[one.rule] = max(found.get(one.rule, 0), weight_of(one.severity))
    return found


def _text(request: Request, headline: Sequence[str]) -> str:
    return "\n".join([request.deployment.name, *headline]).casefold()[:MAX_TEXT]
