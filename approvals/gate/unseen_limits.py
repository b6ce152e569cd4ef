"""Whether a report is harmless enough to be approved where it is not shown (security-rules.md S32)."""

from __future__ import annotations

from django.conf import settings

from approvals.access.sight import is_in_the_way, is_private, private_to_judge
from approvals.models import Report, Request
from approvals.policy import OWN_RULES_PREFIX, says_what_shall_be
from approvals.selectors.pages import depending
from provisioner.values import Action, GroupKind, Severity

# A deletion without data, which the review names, is as good as seen.
DELETION = "DEL-01"


def why_not_unseen(request: Request, *, names_deletions: bool = False) -> str:
    """Why the present round cannot be approved where its report is not shown; "" where it can.

    What nobody could judge is worse than every limit, and so is content that touches Pratique itself (S22). With
    `names_deletions`, an approval names each object that is deleted: of those without data that is enough.
    """
    report = request.reports.filter(round=request.round).first()
    if report is None:
        return "the report is not ready yet"
    if any(map(is_private, report.body["plan"]["actions"])):
        # In the same words whatever these objects hold: not everybody who reads this may get them (S09).
        return "it adopts objects of someone else"
    private = private_to_judge(report.body)
    if touches_pratique(report):
        return "it affects Pratique itself"
    new = {Severity(report.worst), *(Severity(hidden["severity"]) for hidden in private)}
    if Severity.UNKNOWN in new or report.findings.filter(severity=Severity.UNKNOWN).exists():
        return "part of it is unknown"
    # What is new is measured by its limit: that of what is proved, or that of what depends on stored objects. The worst
    # of all, where no finding is at hand that explains it, counts as proved. What the approval names is not looked at.
    worst = min(new, key=_rank_of)
    named = _deletions_without_data(report) if names_deletions else set()
    limit = Severity(settings.PRATIQUE["UNSEEN_SEVERITY"])
    other = Severity(settings.PRATIQUE["UNSEEN_DEPENDING_SEVERITY"] or limit)
    open_ones = depending(report)
    found = [(finding.fingerprint, Severity(finding.severity)) for finding in report.findings.filter(is_new=True)]
    found += [(str(hidden.get("fingerprint")), Severity(hidden["severity"])) for hidden in private]
    seen = [severity for name, severity in found if name in named]
    depends = [severity for name, severity in found if name in open_ones and name not in named]
    proved = [severity for name, severity in found if name not in open_ones and name not in named]
    proved += [] if worst in (*depends, *seen) else [worst]
    for severities, most, what in ((proved, limit, ""), (depends, other, " that depends on stored objects")):
        here = min(severities, key=_rank_of, default=Severity.SAFE)
        if here.rank < most.rank:
            return f"its worst new finding{what} is {here}, and the limit here is {most}"
    return ""


def touches_pratique(report: Report) -> bool:
    """Whether anything in it affects Pratique itself (S22)."""
    hidden = (finding["rule"] for finding in private_to_judge(report.body))
    own = report.findings.filter(rule__startswith=OWN_RULES_PREFIX).exists()
    return own or any(rule.startswith(OWN_RULES_PREFIX) for rule in hidden)


def _rank_of(severity: Severity) -> int:
    return severity.rank


def _deletions_without_data(report: Report) -> set[str]:
    """The fingerprints of findings that say no more than that an object is deleted which keeps nothing."""
    planned = [action for action in report.body["plan"]["actions"] if not is_in_the_way(action)]
    deleted = [action["ref"] for action in planned if action["action"] == Action.DELETE]
    return {
        str(finding.get("fingerprint"))
        for finding in report.body["findings"]
        if (finding["rule"], finding["severity"]) == (DELETION, Severity.DANGEROUS)
        and finding["ref"] in deleted
        and says_what_shall_be(GroupKind(finding["ref"].get("group") or "", finding["ref"]["kind"]))
    }
