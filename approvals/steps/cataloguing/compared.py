"""What a comparison of two bundles tells, as JSON values. PURE: contents and reports come in, a record goes out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from approvals.catalogs.comparisons import key_of
from approvals.steps.cataloguing.changed_lines import ChangedLines
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import ScopedRule
from provisioner.render import write_quoted
from provisioner.review.base.facts import SECRET
from provisioner.review.base.record import plain, ref_record, to_record
from provisioner.review.output import permission_text
from provisioner.review.preflight.answer import Preflight, obstacles
from provisioner.review.preflight.findings import as_yaml
from provisioner.review.rights.permission_report import AccountReport, PermissionReport
from provisioner.review.rights.permission_words import files_of, words_of
from provisioner.review.rules.files import sentence_of
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.sentences import number
from provisioner.values import APPLYING, Content, ObjectRef, Report

MOST_RIGHTS = 200
MOST_OBSTACLES = 100


@dataclass(frozen=True, slots=True)
class ComparedBundles:
    """Both contents as they were rendered, `before` None where nothing runs, and what was found.

    `installer` is what an account needs that installs `after` where nothing of it is yet; None where that was not
    asked. `changed` are the lines that differ, which are kept beside the result.
    """

    before: Content | None
    after: Content
    config: Mapping[str, Any]
    report: Report
    permissions: PermissionReport
    installer: Preflight | None = None
    changed: ChangedLines = field(default_factory=ChangedLines)


def record_of(found: ComparedBundles) -> dict[str, Any]:
    """The whole result. States of objects are left out of the report: each may be as large as a bundle."""
    after = found.after
    report = to_record(found.report)
    planned = report["plan"]["actions"]
    actions = [{**one, "before": None, "after": None} for one in planned]
    return {
        "pins": {"before": _pins(found.before), "after": _pins(after)},
        "content_digests": {"before": _digest(found.before), "after": _digest(after)},
        "install_namespace": after.install_namespace,
        "service_account": after.service_account,
        "suggested_namespace": after.suggested_namespace,
        "config": plain(dict(found.config)),
        "report": {**report, "plan": {**report["plan"], "actions": actions}},
        "held": sorted(key_of(one["ref"]) for one in planned if one["before"]),
        "changed": found.changed.counts,
        "permissions": _permissions(found.permissions, after),
        "images": list(_images(found.before, after)),
        "installer": _installer(found.installer) if found.installer else None,
    }


def _digest(content: Content | None) -> str:
    """ "" where it holds a Secret: whoever sees the digest could try values on it (S38). That of what runs is keyed."""
    held = content.everything if content else ()
    is_told = content is not None and not content.salt and not any(one.ref.group_kind == SECRET for one in held)
    return content.digest if content and is_told else ""


def _pins(content: Content | None) -> list[str]:
    return [one.digest for one in content.pins] if content else []


def _permissions(found: PermissionReport, after: Content) -> dict[str, Any]:
    told = permission_text.to_record(found, files_of(after))
    return {
        "worst": told["worst"],
        "accounts": [_account(one) for one in found.accounts if one.is_changed],
        "everybody": [{"role": one["role"], "sentence": one["sentence"]} for one in told["everybody"]],
        "problems": told["problems"],
    }


def _account(one: AccountReport) -> dict[str, Any]:
    gained, lost = ([change.right for change in changes] for changes in (one.added, one.removed))
    return {
        "account": str(one.subject),
        "sentence": one.sentence,
        "gained": _words(gained),
        "gained_count": len(gained),
        "lost": _words(lost),
        "lost_count": len(lost),
        "risks": [{"severity": str(risk.severity), "sentence": sentence_of(risk)} for risk in one.new],
    }


def _words(rights: list[ScopedRule]) -> list[str]:
    return list(dict.fromkeys(words_of([one]) for one in rights[:MOST_RIGHTS]))


def _images(before: Content | None, after: Content) -> Iterator[dict[str, Any]]:
    """Each container whose image is another one, new or gone; "" where there is none."""
    old, new = _image_of_each(before), _image_of_each(after)
    for place in sorted({*old, *new}):
        was, will_be = old.get(place, ""), new.get(place, "")
        if was != will_be:
            ref, container = place
            yield {"ref": ref_record(ref), "container": container, "before": was, "after": will_be}


def _image_of_each(content: Content | None) -> dict[tuple[ObjectRef, str], str]:
    if content is None:
        return {}
    bodies = tuple(one.body for one in content.with_hooks(APPLYING).manifests)
    return {
        (pod.ref, container.name): str(container.body.get("image") or "")
        for pod in pod_specs(bodies)
        for container in pod.containers()
    }


def _installer(found: Preflight) -> dict[str, Any]:
    """As `kubectl pratique rbac` prints it: the account, its roles and bindings, and what no right clears."""
    account = found.account
    meta = {"name": account.name, "namespace": account.namespace}
    rules = as_yaml(found, name=f"{account.namespace}-{account.name}-installs")
    first = write_quoted([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}])
    listed = list(obstacles(found))
    return {
        "yaml": first + (f"---\n{rules}" if rules else ""),
        "is_complete": not any(one.is_incomplete for one in listed),
        "obstacles": [one.words for one in listed[:MOST_OBSTACLES]],
        "obstacle_count": len(listed),
        "summary": _summary(found),
    }


def _summary(found: Preflight) -> str:
    wide = sum(1 for one in found.missing if not one.scope)
    local = len(found.missing) - wide
    parts = [
        f"{number(wide, 'rule')} in the whole cluster" if wide else "",
        f"{number(local, 'rule')} in single namespaces" if local else "",
    ]
    escalating = sum(1 for one in found.missing if set(one.rule.verbs) & {"bind", "escalate"})
    told = " and ".join(filter(None, parts)) or "no rule"
    extra = f"; {number(escalating, 'rule')} lets it bind or escalate roles of {RBAC_GROUP}" if escalating else ""
    return f"{told}{extra}"
