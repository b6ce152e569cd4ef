"""The answer of a preflight as JSON (preflight.schema.json), as YAML to be applied, and as text."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import RbacSubject
from provisioner.review.base.fold import folded
from provisioner.review.base.record import plain
from provisioner.review.base.text import visible
from provisioner.review.preflight.answer import MissingRule, Preflight
from provisioner.review.preflight.held import RightsStep
from provisioner.sentences import and_more
from provisioner.values import AccessRequest, Finding, Severity

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
    return {
        "version": VERSION,
        "account": {"namespace": found.account.namespace, "name": found.account.name},
        "verdict": str(found.verdict),
        "findings": [_finding_record(one) for one in folded(found.findings)],
        "missing": [
            {"scope": one.scope, "rule": one.rule.to_object(), "reasons": list(one.reasons)} for one in found.missing
        ],
        "yaml": as_yaml(found),
        "excess": [{"scope": one.scope, "rule": one.rule.to_object()} for one in found.excess],
        "steps": [_step_record(one) for one in found.steps],
    }


def as_yaml(found: Preflight, *, name: str = "") -> str:
    """Roles and bindings that give the account all that is missing, each rule under its reasons; "" if nothing is.

    All of them have one `name`, by default one made of the account's.
    """
    named = name or f"{found.account.namespace}-{found.account.name}-preflight"
    by_scope = {
        scope: [m for m in found.missing if m.scope == scope] for scope in sorted({m.scope for m in found.missing})
    }
    documents = [_documents(found.account, scope, missing, named) for scope, missing in by_scope.items()]
    return "---\n".join(documents)


def as_text(found: Preflight) -> str:
    """The answer for a terminal: the verdict, what stands in the way, the missing rules, what is held in excess."""
    name = visible(f"{found.account.namespace}/{found.account.name}")
    lines = [f"{name} {_VERDICTS[found.verdict]}", ""]
    for one in folded(found.findings):
        lines.append(f"  {one.severity}  {one.rule}")
        told = [one.message, f"the cluster says: {one.server_words}" if one.server_words else ""]
        for words in filter(None, told):
            lines += textwrap.wrap(visible(words), _WIDTH, initial_indent="      ", subsequent_indent="      ")
    if found.missing:
        lines += ["", "Missing rules, ready to be applied:", "", as_yaml(found).rstrip("\n")]
    if found.excess:
        lines += ["", "Held, and not needed by this bundle:"]
        lines += [f"  {visible(str(one.rule))} {_place(one.scope)}" for one in found.excess]
    return "\n".join(lines).rstrip("\n") + "\n"


def _place(scope: str) -> str:
    return f"in {visible(scope)}" if scope else "in the whole cluster"


def _documents(account: RbacSubject, scope: str, missing: Iterable[MissingRule], name: str) -> str:
    """One role and its binding as YAML; every value is a JSON string, so that nothing in it means anything."""
    prefix = "" if scope else "Cluster"
    meta = f"metadata:\n  name: {json.dumps(name)}\n" + (f"  namespace: {json.dumps(scope)}\n" if scope else "")
    rules = "".join(line + "\n" for one in missing for line in _rule_lines(one))
    subject = f"- kind: ServiceAccount\n  name: {json.dumps(account.name)}\n"
    return (
        f"apiVersion: {RBAC_GROUP}/v1\nkind: {prefix}Role\n{meta}rules:\n{rules}---\n"
        f"apiVersion: {RBAC_GROUP}/v1\nkind: {prefix}RoleBinding\n{meta}"
        f"roleRef:\n  apiGroup: {RBAC_GROUP}\n  kind: {prefix}Role\n  name: {json.dumps(name)}\n"
        f"subjects:\n{subject}  namespace: {json.dumps(account.namespace)}\n"
    )


def _rule_lines(missing: MissingRule) -> Iterator[str]:
    for reason in missing.reasons[:MAX_REASONS]:
        yield f"# {visible(reason)}"
    if len(missing.reasons) > MAX_REASONS:
        yield f"# {and_more(len(missing.reasons) - MAX_REASONS, 'reasons')}"
    for index, (key, values) in enumerate(missing.rule.to_object().items()):
        yield f"{'  ' if index else '- '}{key}: {json.dumps(values)}"


def _finding_record(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": str(finding.severity),
        "object": str(finding.ref) if finding.ref else "",
        "path": list(finding.path),
        "message": finding.message,
        "evidence": plain(finding.evidence) | ({"said": finding.server_words} if finding.server_words else {}),
        "fingerprint": finding.fingerprint,
    }


def _step_record(step: RightsStep) -> dict[str, Any]:
    return {
        "request": _request_record(step.request),
        "object": str(step.ref),
        "allowed": step.is_allowed,
        "by": [
            {"binding": str(one.binding), "role": str(one.origin), "rule": one.rule_index, "scope": one.scope}
            for one in step.grants
        ],
        "words": step.words,
    }


def _request_record(request: AccessRequest) -> dict[str, str]:
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    return {name: getattr(request, name) for name in names}
