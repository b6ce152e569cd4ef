"""The preflight of the installing account as a part of a report: its findings, and the rules that are missing.

Two look at the same rights: the preflight, which explains, and the dry-run, which proves. Each cause is said once.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import Forbidden
from provisioner.escaping import visible
from provisioner.review.base.facts import Facts, Gap
from provisioner.review.base.grouping import folded
from provisioner.review.base.record import plain
from provisioner.review.preflight.account_rights import REMEDY, PreflightFacts, ResourceWord
from provisioner.review.preflight.answer import Preflight, preflight
from provisioner.review.preflight.answer import questions as questions_of
from provisioner.sentences import and_more
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

VERSION = 1
MAX_REASONS = 5
_WIDTH = 80
_VERDICTS = {
    Severity.SAFE: "may install this bundle",
    Severity.BREAKING: "cannot install this bundle",
    Severity.UNKNOWN: "cannot be said to be able to install this bundle",
}


def to_record(found: Preflight) -> dict[str, Any]:
    """The answer as plain JSON values."""
    findings = [
        {
            "rule": finding.rule,
            "severity": str(finding.severity),
            "object": str(finding.ref) if finding.ref else "",
            "path": list(finding.path),
            "message": finding.message,
            "evidence": plain(finding.evidence) | ({"said": finding.server_words} if finding.server_words else {}),
            "fingerprint": finding.fingerprint,
        }
        for finding in folded(found.findings)
    ]
    steps = [
        {
            "request": {name: getattr(step.request, name) for name in _REQUEST},
            "object": str(step.ref),
            "allowed": step.is_allowed,
            "by": [
                {
                    "binding": str(grant.binding),
                    "role": str(grant.origin),
                    "rule": grant.rule_index,
                    "scope": grant.scope,
                }
                for grant in step.grants
            ],
            "words": step.words,
        }
        for step in found.steps
    ]
    return {
        "version": VERSION,
        "account": {"namespace": found.account.namespace, "name": found.account.name},
        "verdict": str(found.verdict),
        "findings": findings,
        "missing": [
            {"scope": missing.scope, "rule": missing.rule.to_object(), "reasons": list(missing.reasons)}
            for missing in found.missing
        ],
        "yaml": as_yaml(found),
        "excess": [{"scope": right.scope, "rule": right.rule.to_object()} for right in found.excess],
        "steps": steps,
    }


def as_yaml(found: Preflight, *, name: str = "") -> str:
    """Roles and bindings that give the account all that is missing, each rule under its reasons; "" if nothing is.

    All of them have one `name`, by default one made of the account's. Every value is a JSON string, so that nothing in
    it means anything to YAML.
    """
    account = found.account
    named = json.dumps(name or f"{account.namespace}-{account.name}-preflight")
    documents = []
    for scope in sorted({missing.scope for missing in found.missing}):
        lines = []
        for missing in (one for one in found.missing if one.scope == scope):
            lines += [f"# {visible(reason)}" for reason in missing.reasons[:MAX_REASONS]]
            if len(missing.reasons) > MAX_REASONS:
                lines.append(f"# {and_more(len(missing.reasons) - MAX_REASONS, 'reasons')}")
            for index, (key, values) in enumerate(missing.rule.to_object().items()):
                lines.append(f"{'  ' if index else '- '}{key}: {json.dumps(values)}")
        rules = "".join(f"{line}\n" for line in lines)
        prefix = "" if scope else "Cluster"
        meta = f"metadata:\n  name: {named}\n" + (f"  namespace: {json.dumps(scope)}\n" if scope else "")
        subject = f"- kind: ServiceAccount\n  name: {json.dumps(account.name)}\n"
        documents.append(
            f"apiVersion: {RBAC_GROUP}/v1\nkind: {prefix}Role\n{meta}rules:\n{rules}---\n"
            f"apiVersion: {RBAC_GROUP}/v1\nkind: {prefix}RoleBinding\n{meta}"
            f"roleRef:\n  apiGroup: {RBAC_GROUP}\n  kind: {prefix}Role\n  name: {named}\n"
            f"subjects:\n{subject}  namespace: {json.dumps(account.namespace)}\n"
        )
    return "---\n".join(documents)


def as_text(found: Preflight) -> str:
    """The answer for a terminal: the verdict, what stands in the way, the missing rules, what is held in excess."""
    name = visible(f"{found.account.namespace}/{found.account.name}")
    lines = [f"{name} {_VERDICTS[found.verdict]}", ""]
    for finding in folded(found.findings):
        lines.append(f"  {finding.severity}  {finding.rule}")
        told = [finding.message, f"the cluster says: {finding.server_words}" if finding.server_words else ""]
        for words in filter(None, told):
            lines += textwrap.wrap(visible(words), _WIDTH, initial_indent="      ", subsequent_indent="      ")
    if found.missing:
        lines += ["", "Missing rules, ready to be applied:", "", as_yaml(found).rstrip("\n")]
    if found.excess:
        lines += ["", "Held, and not needed by this bundle:"]
    for right in found.excess:
        place = f"in {visible(right.scope)}" if right.scope else "in the whole cluster"
        lines.append(f"  {visible(str(right.rule))} {place}")
    return "\n".join(lines).rstrip("\n") + "\n"


_REQUEST = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
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
    for finding in answer.findings:
        # The plan says its refusals itself, but of a forbidden one not that it is no matter of rights.
        if finding.rule == _REFUSED and finding.evidence.get("code") != Forbidden.code:
            continue
        if finding.rule == _IN_EXCESS and not wanted.manifests:
            continue  # a removal needs next to nothing, which says nothing about the account
        # What the account holds, and who else has it, was so before the content came and is no reason against it.
        if finding.rule == _IN_EXCESS:
            severity = _MILDER.get(finding.severity, finding.severity)
            found.append(replace(finding, severity=severity, is_new=facts.previous is None))
        else:
            found.append(replace(finding, is_new=finding.is_new and finding.rule != _OTHERS))
    if answer.missing:
        # The fewest rules that are missing, in one finding.
        ref = ObjectRef.of_service_account(answer.account.namespace, answer.account.name)
        rules = [
            {
                "scope": missing.scope,
                "rule": missing.rule.to_object(),
                "reasons": list(missing.reasons[:MAX_REASONS]),
                "left_out": max(0, len(missing.reasons) - MAX_REASONS),
            }
            for missing in answer.missing
        ]
        key = [[missing.scope, missing.rule.to_object()] for missing in answer.missing]
        variant = "may-lack" if wanted.roles is None else "lacks"
        found.append(REMEDY.finding(variant, ref, key=key, yaml=as_yaml(answer), rules=rules))
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
    resources = {
        (kind.group, kind.version, kind.kind): ResourceWord(kind.plural, kind.is_namespaced) for kind in kinds or ()
    }
    places = _places(facts)
    exist = {name: facts.around.exists.get((_NAMESPACE.group, _NAMESPACE.kind, "", name)) for name in places}
    made = {manifest.ref.name for manifest in facts.content.manifests if manifest.ref.group_kind == _NAMESPACE}
    # One of which nobody knows is not there before apply if the bundle makes it.
    there = {name for name in places if exist[name] or (exist[name] is None and name not in made)}
    unknown = [name for name in places if exist[name] is None and name not in made]
    gaps = [Gap(f"whether the namespace {name} exists", "nobody may read it", Section.PREFLIGHT) for name in unknown]
    return PreflightFacts(
        installer.account,
        tuple(sorted(facts.content.manifests, key=lambda manifest: order.get(manifest.ref.identity, len(order)))),
        facts.live_rbac,
        None if kinds is None else resources,
        frozenset(there),
        {planned.ref.identity: planned for planned in facts.plan.actions},
        (*installer.gaps, *gaps),
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
    proving = {proof.fingerprint for proof in proofs.values()}
    kept = {position: one for position, one in enumerate(everything) if one.fingerprint not in proving}
    for position, finding in kept.items():
        if proof := proofs.get(finding.fingerprint):
            # What the preflight could only suppose counts as proved where the API server refused it.
            severity = min(finding.severity, proof.severity, key=lambda severity: severity.rank)
            evidence = {**finding.evidence, "dry_run": proof.message}
            words = "; ".join(filter(None, [finding.server_words, proof.server_words]))
            kept[position] = replace(finding, severity=severity, evidence=evidence, server_words=words)
    return list(kept.values())


def yaml_of(finding: Finding) -> str:
    """The missing rules as YAML where `finding` is the one that brings them, "" elsewhere."""
    return str(finding.evidence.get("yaml") or "") if finding.rule == REMEDY.id else ""


def _is_of_dry_run(finding: Finding) -> bool:
    return finding.rule in _BY_DRY_RUN and "code" in finding.evidence


def _places(facts: Facts) -> list[str]:
    return sorted({manifest.ref.namespace for manifest in facts.content.manifests if manifest.ref.namespace})
