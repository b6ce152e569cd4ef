"""The preflight of the installing account as a part of a report: its findings, and the rules that are missing.

Two look at the same rights: the preflight, which explains, and the dry-run, which proves. Each cause is said once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from provisioner.errors import Forbidden
from provisioner.review.base.facts import Facts, Gap
from provisioner.review.preflight.answer import MissingRule, Preflight, preflight
from provisioner.review.preflight.answer import questions as questions_of
from provisioner.review.preflight.facts import REMEDY, PreflightFacts, ResourceWord
from provisioner.review.preflight.text import MAX_REASONS, as_yaml
from provisioner.values import (
    AccessRequest,
    Finding,
    GroupKind,
    ObjectIdentity,
    ObjectRef,
    Section,
    Severity,
    worst_first,
)

_REFUSED = "PRE-09"
_IN_EXCESS = "PRE-10"
_OTHERS = "PRE-11"
_NAMESPACE = GroupKind("", "Namespace")
_MILDER = {Severity.DANGEROUS: Severity.NOTABLE, Severity.NOTABLE: Severity.SAFE}
_BY_DRY_RUN = frozenset({"PRE-01", "PRE-02", "PRE-05", "PRE-07"})
_EXPLAINED = frozenset({"PRE-01", "PRE-02", "PRE-03", "PRE-04", "PRE-05", "PRE-07", "PRE-08", _REFUSED})


def preflight_findings(facts: Facts) -> tuple[Finding, ...]:
    """What the preflight says of `facts`; nothing where no account is named, or nobody could be asked."""
    wanted = preflight_facts(facts)
    if wanted is None:
        return ()
    answer, found = preflight(wanted), []
    for one in answer.findings:
        # The plan says its refusals itself, but of a forbidden one not that it is no matter of rights.
        if one.rule == _REFUSED and one.evidence.get("code") != Forbidden.code:
            continue
        if one.rule == _IN_EXCESS and not wanted.manifests:
            continue  # a removal needs next to nothing, which says nothing about the account
        # What the account holds, and who else has it, was so before the content came and is no reason against it.
        if one.rule == _IN_EXCESS:
            severity = _MILDER.get(one.severity, one.severity)
            found.append(replace(one, severity=severity, is_new=facts.previous is None))
        else:
            found.append(replace(one, is_new=one.is_new and one.rule != _OTHERS))
    if answer.missing:
        found.append(_remedy(answer, is_known=wanted.roles is not None))
    return worst_first(found)


def questions(facts: Facts) -> list[AccessRequest]:
    """What to ask the API server about the installer beyond `facts.installer.answers`."""
    wanted = preflight_facts(facts)
    return questions_of(wanted) if wanted else []


def namespaces(facts: Facts) -> list[ObjectRef]:
    """The namespaces of which a preflight wants to know whether they exist."""
    if facts.installer is None:
        return []
    return [ObjectRef("", "v1", "Namespace", "", name) for name in _places(facts)]


def preflight_facts(facts: Facts) -> PreflightFacts | None:
    """`facts` as a preflight needs them; None without an installer."""
    installer = facts.installer
    if installer is None or facts.is_offline:
        return None
    kinds, order = facts.around.kinds, {one.ref.identity: index for index, one in enumerate(facts.plan.actions)}
    resources = {(one.group, one.version, one.kind): ResourceWord(one.plural, one.is_namespaced) for one in kinds or ()}
    return PreflightFacts(
        installer.account,
        tuple(sorted(facts.content.manifests, key=lambda one: order.get(one.ref.identity, len(order)))),
        facts.live_rbac,
        None if kinds is None else resources,
        frozenset(_places(facts)) - _absent(facts),
        {one.ref.identity: one for one in facts.plan.actions},
        (*installer.gaps, *_gaps(facts)),
        installer.answers,
        facts.around.unanswered,
        release=facts.around.version,
    )


def said_once(findings: Iterable[Finding]) -> list[Finding]:
    """`findings` without what the dry-run says of a cause that the preflight explains: its words become evidence."""
    everything = list(findings)
    explained: dict[ObjectIdentity, list[Finding]] = {}
    for one in worst_first(everything):
        if one.ref and one.rule in _EXPLAINED and not _is_of_dry_run(one):
            explained.setdefault(one.ref.identity, []).append(one)
    proofs: dict[str, Finding] = {}
    for one in everything:
        known = explained.get(one.ref.identity, []) if one.ref and _is_of_dry_run(one) else []
        if known:
            proofs[next((it for it in known if it.rule == one.rule), known[0]).fingerprint] = one
    folded = {one.fingerprint for one in proofs.values()}
    kept = [one for one in everything if one.fingerprint not in folded]
    return [_proved(one, proofs[one.fingerprint]) if one.fingerprint in proofs else one for one in kept]


def yaml_of(finding: Finding) -> str:
    """The missing rules as YAML where `finding` is the one that brings them, "" elsewhere."""
    return str(finding.evidence.get("yaml") or "") if finding.rule == REMEDY.id else ""


def _is_of_dry_run(finding: Finding) -> bool:
    return finding.rule in _BY_DRY_RUN and "code" in finding.evidence


def _proved(finding: Finding, proof: Finding) -> Finding:
    """What the preflight could only suppose counts as proved where the API server refused it."""
    severity = min(finding.severity, proof.severity, key=lambda it: it.rank)
    evidence = {**finding.evidence, "dry_run": proof.message}
    said = "; ".join(filter(None, [finding.server_words, proof.server_words]))
    return replace(finding, severity=severity, evidence=evidence, server_words=said)


def _remedy(answer: Preflight, *, is_known: bool) -> Finding:
    """The fewest rules that are missing, in one finding."""
    ref = ObjectRef.of_service_account(answer.account.namespace, answer.account.name)
    key = [[one.scope, one.rule.to_object()] for one in answer.missing]
    rules = [_rule_record(one) for one in answer.missing]
    return REMEDY.finding("lacks" if is_known else "may-lack", ref, key=key, yaml=as_yaml(answer), rules=rules)


def _rule_record(missing: MissingRule) -> dict[str, Any]:
    shown = list(missing.reasons[:MAX_REASONS])
    left_out = len(missing.reasons) - len(shown)
    return {"scope": missing.scope, "rule": missing.rule.to_object(), "reasons": shown, "left_out": left_out}


def _places(facts: Facts) -> list[str]:
    return sorted({one.ref.namespace for one in facts.content.manifests if one.ref.namespace})


def _exists(facts: Facts, namespace: str) -> bool | None:
    return facts.around.exists.get((_NAMESPACE.group, _NAMESPACE.kind, "", namespace))


def _made(facts: Facts) -> set[str]:
    return {one.ref.name for one in facts.content.manifests if one.ref.group_kind == _NAMESPACE}


def _absent(facts: Facts) -> set[str]:
    """The namespaces that are not there before apply; one of which nobody knows is, if the bundle makes it."""
    return {name for name in _places(facts) if _exists(facts, name) is False} | {
        name for name in _made(facts) if _exists(facts, name) is None
    }


def _gaps(facts: Facts) -> list[Gap]:
    unknown = [name for name in _places(facts) if _exists(facts, name) is None and name not in _made(facts)]
    return [Gap(f"whether the namespace {name} exists", "nobody may read it", Section.PREFLIGHT) for name in unknown]
