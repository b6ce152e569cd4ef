"""Facts in, report out. The table of checks stands here; each check is one file under checks/ and one line.

Nothing that a check does can make a report say less: a check that crashes, a fact that is missing and a change that no
check looks at are findings themselves (promise 4).
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import entry_points
from pathlib import PurePath
from typing import TypeVar

from provisioner.review.base.facts import SECRET, Check, Facts, Gap, Listing, Rule, fingerprint, said
from provisioner.review.base.fold import folded
from provisioner.review.checks.network import (
    api_services,
    network,
    network_policies,
    policies,
    webhook_effects,
    webhooks,
)
from provisioner.review.checks.objects import apis, content, crds, deletions, live, objects, way_back
from provisioner.review.checks.own import own
from provisioner.review.checks.pods import images, pod_habits, pods, settings
from provisioner.review.checks.rights import permissions, preflight
from provisioner.review.output.headline import headline
from provisioner.review.preflight.findings import questions as preflight_questions
from provisioner.review.preflight.findings import said_once
from provisioner.review.withholding import looked
from provisioner.values import (
    AccessRequest,
    Action,
    Content,
    Finding,
    ObjectRef,
    Plan,
    PlannedAction,
    Report,
    Section,
    Severity,
    worst_first,
)

ENTRY_POINTS = "pratique.checks"
_T = TypeVar("_T")

CHECKS: tuple[Check, ...] = (
    own.CHECK,
    objects.CHECK,
    permissions.CHECK,
    crds.CHECK,
    live.CHECK,
    pods.CHECK,
    pod_habits.CHECK,
    webhooks.CHECK,
    webhook_effects.CHECK,
    policies.CHECK,
    network.CHECK,
    network_policies.CHECK,
    api_services.CHECK,
    images.CHECK,
    apis.CHECK,
    settings.CHECK,
    content.CHECK,
    deletions.CHECK,
    way_back.CHECK,
    preflight.CHECK,
)

# Built-in groups whose objects govern others: to change one unseen is worse than to change a plain object.
_POWERFUL_GROUPS = frozenset(
    {
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
        "certificates.k8s.io",
        "flowcontrol.apiserver.k8s.io",
        "rbac.authorization.k8s.io",
        "security.openshift.io",
        "storage.k8s.io",
    }
)


def report(facts: Facts, checks: Sequence[Check] | None = None) -> Report:
    """The report on `facts` by `checks`, by default all that are installed. Never raises for what a check does."""
    asked = installed_checks() if checks is None else checks
    findings = looked(facts, partial(_found, asked))
    once = {one.fingerprint: one for one in findings}.values()
    private = [one for one in once if one.is_private]
    public = worst_first(folded(one for one in once if not one.is_private))
    wished = {one.ref.identity for one in facts.content.manifests}
    staying = (one for one in facts.plan.actions if one.action is Action.NONE)
    let_go = sum(one.ref.identity not in wished for one in staying)
    # What is private is not counted either: who may not get the object would see that it differs.
    words = headline(public, facts.plan, let_go=let_go)
    return Report(words, worst_first([*public, *private]), facts.plan)


def _found(checks: Sequence[Check], facts: Facts) -> list[Finding]:
    findings: list[Finding] = [_of_gap(gap) for gap in facts.gaps]
    sound: list[Check] = []
    for check in checks:
        found, crash = _run(check, facts)
        findings += found
        if crash:
            findings.append(crash)
        else:
            sound.append(check)
    findings += _unclaimed(facts, sound)
    for check in sound:
        findings = _settled(check, facts, findings)
    return said_once(findings)


def wanted(content: Content, plan: Plan, checks: Sequence[Check] | None = None) -> list[ObjectRef]:
    """The live objects that checks want to see, sorted; never a Secret. A check that crashes here wants nothing."""
    refs: set[ObjectRef] = set()
    for check in installed_checks() if checks is None else checks:
        try:
            refs.update(check.wants(content, plan))
        except Exception:  # noqa: BLE001, S112 -- the same check then misses its facts and says so
            continue
    return sorted(ref for ref in refs if ref.group_kind != SECRET)


def mentioned(facts: Facts, checks: Sequence[Check] | None = None) -> list[ObjectRef]:
    """The objects of which checks want to know whether they exist, sorted."""
    return sorted(_asked((check.mentions for check in checks or installed_checks()), facts))


def listings(facts: Facts, checks: Sequence[Check] | None = None) -> list[Listing]:
    """The lists that checks want to see, sorted; of Secrets never more than their metadata."""
    asked = _asked((check.lists for check in checks or installed_checks()), facts)
    return sorted(
        {replace(one, metadata_only=True) if one.kind == SECRET.kind and not one.group else one for one in asked}
    )


def questions(facts: Facts) -> list[AccessRequest]:
    """What to ask the API server about the installer before the report; again until nothing is left."""
    try:
        return preflight_questions(facts)
    except Exception:  # noqa: BLE001 -- the check of the preflight then crashes as well and says so
        return []


def _asked(questions: Iterable[Callable[[Facts], Iterable[_T]]], facts: Facts) -> set[_T]:
    found: set[_T] = set()
    for ask in questions:
        try:
            found.update(ask(facts))
        except Exception:  # noqa: BLE001, S112 -- the same check then misses its facts and says so
            continue
    return found


def _settled(check: Check, facts: Facts, findings: list[Finding]) -> list[Finding]:
    """What a check makes of all findings; they stay as they were where it crashes or drops one."""
    if check.settles is None:
        return findings
    try:
        settled = [_named(one) for one in check.settles(facts, tuple(findings))]
        lost = {one.fingerprint for one in findings} - {one.fingerprint for one in settled}
        if lost:
            raise LookupError("findings were dropped")
    except Exception as exc:  # noqa: BLE001 -- as in _run
        return [*findings, _of_crash(check, exc)]
    return settled


@functools.cache
def installed_checks() -> tuple[Check, ...]:
    """Ours and those of other packages (entry points `pratique.checks`, each naming a Check)."""
    return (*CHECKS, *(_loaded(point.name, point) for point in entry_points(group=ENTRY_POINTS)))


def _loaded(name: str, point: object) -> Check:
    """A check of another package. One that cannot be loaded crashes in every report, so that it is missed."""
    try:
        loaded = point.load()  # type: ignore[attr-defined]  # an EntryPoint
        if isinstance(loaded, Check):
            return loaded
        problem: Exception = TypeError(f"{name} is no Check")
    except Exception as exc:  # noqa: BLE001 -- another package's import may raise anything
        problem = exc

    def crash(_: Facts) -> Iterable[Finding]:
        raise problem

    return Check(name, changes=crash)


def _run(check: Check, facts: Facts) -> tuple[list[Finding], Finding | None]:
    """What a check found, and its crash; what it had found before it crashed is kept."""
    found: list[Finding] = []
    try:
        for one in check.changes(facts):
            found.append(_named(one))  # noqa: PERF401 -- one by one: what came before a crash is kept
        known = {_named(one).fingerprint for one in check.standing(facts.previous_state())}
        for one in check.standing(facts.state()):
            named = _named(one)
            found.append(replace(named, is_new=named.fingerprint not in known))
        for planned in facts.plan.actions:
            check.claims(planned)
    except Exception as exc:  # noqa: BLE001 -- whatever a check raises, the reader has to know that it did not finish
        return found, _of_crash(check, exc)
    return found, None


def _named(finding: Finding) -> Finding:
    if finding.fingerprint:
        return finding
    return replace(finding, fingerprint=fingerprint(finding.rule, finding.ref, finding.path, dict(finding.evidence)))


def _of_crash(check: Check, exc: Exception) -> Finding:
    """The exception's own words stay out: they may quote a value of the content."""
    last = traceback.extract_tb(exc.__traceback__)[-1]
    place = f"{PurePath(last.filename).name}:{last.lineno}"
    rule = Rule("CRASHED", Section.CONTENT, Severity.UNKNOWN)
    message = (
        f"The check {check.name} did not finish ({type(exc).__name__} at {place}): what it looks for was not checked"
    )
    return rule.at(None, message, evidence={"check": check.name, "error": type(exc).__name__}, key=check.name)


def _of_gap(gap: Gap) -> Finding:
    message = f"Could not find out {gap.what}: {gap.why}"
    return Rule("GAP", gap.section, Severity.UNKNOWN).at(None, message, evidence={"what": gap.what}, key=gap.what)


def _unclaimed(facts: Facts, checks: Iterable[Check]) -> list[Finding]:
    judges = list(checks)
    touched = (one for one in facts.plan.actions if one.action is not Action.NONE)
    return [_of_unclaimed(one, facts) for one in touched if not any(check.claims(one) for check in judges)]


def _of_unclaimed(planned: PlannedAction, facts: Facts) -> Finding:
    is_shown = planned.after is not None and (planned.action is not Action.UPDATE or planned.before is not None)
    severity = Severity.NOTABLE
    if not is_shown or (planned.problem and not facts.is_offline):
        severity = Severity.UNKNOWN
    elif planned.ref.group in _POWERFUL_GROUPS:
        severity = Severity.DANGEROUS
    words = "read its fields to judge what they do" if is_shown else "and its fields could not be shown"
    message = f"{planned.action.capitalize()}s {said(planned.ref)}, which no check looks at: {words}"
    rule = Rule("UNCLAIMED", Section.OBJECTS, severity)
    return rule.at(planned.ref, message, evidence={"action": str(planned.action)}, key=str(planned.action))
