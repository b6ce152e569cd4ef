"""What a comparison of two bundles tells, as JSON values. PURE: contents and reports come in, a record goes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from approvals.catalogs.comparisons import object_key
from provisioner.api_groups import RBAC_GROUP
from provisioner.rbac import ScopedRule
from provisioner.render import write_quoted
from provisioner.review.base.difference import MAX_PIECES, DiffLine, all_lines, near_changes
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
from provisioner.values import APPLYING, Action, Content, ObjectRef, PlannedAction, Report

# Of one object, of one line, and of all objects of a comparison.
MOST_LINES = 2_000
MOST_CHARACTERS = MAX_PIECES + 1_000
MOST_BYTES = 2_000_000
# What a line costs beside its text.
LINE_BYTES = 24
# First what is changed, then what is new; of what goes and what stays nothing differs.
CHANGING = frozenset({Action.UPDATE, Action.REPLACE, Action.RERUN})


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """By the position of an object in the plan: how many lines come and go, and the lines themselves.

    A line is a list of its kind, its text and its numbers before and after. `left` counts those without room.
    """

    counts: dict[str, list[int]] = field(default_factory=dict)
    lines: dict[str, dict[str, Any]] = field(default_factory=dict)


def changed_lines(planned: Sequence[PlannedAction], *, begin: Callable[[], object]) -> ChangedLines:
    """What differs in each object. `begin` is called before each, and may raise to end it."""
    found, room = ChangedLines(), MOST_BYTES
    placed = list(enumerate(planned))
    changing = [(at, action) for at, action in placed if action.action in CHANGING]
    new = [(at, action) for at, action in placed if action.action is Action.CREATE]
    for at, action in [*changing, *new]:
        begin()
        lines = all_lines(action.before, action.after)
        added, removed = (sum(line.kind == sign for line in lines) for sign in "+-")
        if not added and not removed:
            continue
        found.counts[str(at)] = [added, removed]
        near = near_changes(lines)
        records = list(_lines_that_fit(near, room))
        room -= sum(map(_record_size, records))
        found.lines[str(at)] = {"lines": records, "left": len(near) - len(records)}
    return found


def _lines_that_fit(lines: Iterable[DiffLine], room: int) -> Iterator[list[Any]]:
    for at, line in enumerate(lines):
        text = line.text if len(line.text) <= MOST_CHARACTERS else f"{line.text[:MOST_CHARACTERS]}…"
        record = [line.kind, text, line.old, line.new]
        room -= _record_size(record)
        if room < 0 or at >= MOST_LINES:
            return
        yield record


def _record_size(record: list[Any]) -> int:
    return LINE_BYTES + len(record[1].encode(errors="surrogatepass"))


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


def comparison_record(found: ComparedBundles) -> dict[str, Any]:
    """The whole result. States of objects are left out of the report: each may be as large as a bundle."""
    after = found.after
    report = to_record(found.report)
    planned = report["plan"]["actions"]
    actions = [{**action, "before": None, "after": None} for action in planned]
    told = permission_text.to_record(found.permissions, files_of(after))
    return {
        "pins": {"before": _pin_digests(found.before), "after": _pin_digests(after)},
        "content_digests": {"before": _public_digest(found.before), "after": _public_digest(after)},
        "install_namespace": after.install_namespace,
        "service_account": after.service_account,
        "suggested_namespace": after.suggested_namespace,
        "config": plain(dict(found.config)),
        "report": {**report, "plan": {**report["plan"], "actions": actions}},
        "held": sorted(object_key(action["ref"]) for action in planned if action["before"]),
        "changed": found.changed.counts,
        "permissions": {
            "worst": told["worst"],
            "accounts": [_account_record(account) for account in found.permissions.accounts if account.is_changed],
            "everybody": [{"role": rule["role"], "sentence": rule["sentence"]} for rule in told["everybody"]],
            "problems": told["problems"],
        },
        "images": list(_image_changes(found.before, after)),
        "installer": _installer_record(found.installer) if found.installer else None,
    }


def _public_digest(content: Content | None) -> str:
    """ "" where it holds a Secret: whoever sees the digest could try values on it (S38). That of what runs is keyed."""
    held = content.everything if content else ()
    is_told = content is not None and not content.salt and not any(each.ref.group_kind == SECRET for each in held)
    return content.digest if content and is_told else ""


def _pin_digests(content: Content | None) -> list[str]:
    return [pin.digest for pin in content.pins] if content else []


def _account_record(account: AccountReport) -> dict[str, Any]:
    gained = [change.right for change in account.added]
    lost = [change.right for change in account.removed]
    return {
        "account": str(account.subject),
        "sentence": account.sentence,
        "gained": _describe_rights(gained),
        "gained_count": len(gained),
        "lost": _describe_rights(lost),
        "lost_count": len(lost),
        "risks": [{"severity": str(risk.severity), "sentence": sentence_of(risk)} for risk in account.new],
    }


def _describe_rights(rights: list[ScopedRule]) -> list[str]:
    return list(dict.fromkeys(words_of([right]) for right in rights[:MOST_RIGHTS]))


def _image_changes(before: Content | None, after: Content) -> Iterator[dict[str, Any]]:
    """Each container whose image is another one, new or gone; "" where there is none."""
    old, new = _images_by_container(before), _images_by_container(after)
    for place in sorted({*old, *new}):
        was, will_be = old.get(place, ""), new.get(place, "")
        if was != will_be:
            ref, container = place
            yield {"ref": ref_record(ref), "container": container, "before": was, "after": will_be}


def _images_by_container(content: Content | None) -> dict[tuple[ObjectRef, str], str]:
    if content is None:
        return {}
    bodies = tuple(manifest.body for manifest in content.with_hooks(APPLYING).manifests)
    return {
        (pod.ref, container.name): str(container.body.get("image") or "")
        for pod in pod_specs(bodies)
        for container in pod.containers()
    }


def _installer_record(found: Preflight) -> dict[str, Any]:
    """As `kubectl pratique rbac` prints it: the account, its roles and bindings, and what no right clears."""
    account = found.account
    meta = {"name": account.name, "namespace": account.namespace}
    rules = as_yaml(found, name=f"{account.namespace}-{account.name}-installs")
    first = write_quoted([{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta}])
    listed = list(obstacles(found))
    wide = sum(1 for rule in found.missing if not rule.scope)
    local = len(found.missing) - wide
    parts = [
        f"{number(wide, 'rule')} in the whole cluster" if wide else "",
        f"{number(local, 'rule')} in single namespaces" if local else "",
    ]
    escalating = sum(1 for rule in found.missing if set(rule.rule.verbs) & {"bind", "escalate"})
    told = " and ".join(filter(None, parts)) or "no rule"
    extra = f"; {number(escalating, 'rule')} lets it bind or escalate roles of {RBAC_GROUP}" if escalating else ""
    return {
        "yaml": first + (f"---\n{rules}" if rules else ""),
        "is_complete": not any(one.is_incomplete for one in listed),
        "obstacles": [one.words for one in listed[:MOST_OBSTACLES]],
        "obstacle_count": len(listed),
        "summary": f"{told}{extra}",
    }
