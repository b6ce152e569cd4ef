"""A permission report as JSON (permissions.schema.json) and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from provisioner.api_groups import RBAC_GROUP
from provisioner.escaping import visible
from provisioner.rbac import HELD, PermissionDiff, Risk, ScopedRule
from provisioner.review.output.lines import wrapped
from provisioner.review.rights.permission_report import AccountReport, PermissionReport, RightChange
from provisioner.review.rights.permission_words import rules_record, ways_of, words_of
from provisioner.review.rights.role_holders import RoleEffect
from provisioner.review.rules.files import power_of, sentence_of
from provisioner.sentences import number
from provisioner.values import SHAPES, ObjectIdentity, Severity

VERSION = 1


def to_record(found: PermissionReport, files: Mapping[ObjectIdentity, str]) -> dict[str, Any]:
    """The report as plain JSON values; `files` says where in the bundle roles stand."""
    everybody = []
    for whole in found.everybody:
        delta = whole.delta or PermissionDiff()
        for role in whole.roles:
            effect = replace(whole, roles=(role,))
            everybody.append(
                {
                    "role": role.ref.name,
                    "sentence": "; ".join(words for _, words in _everybody(effect)) or f"E{effect.who[1:]}: not known",
                    "risks": [_risk_record(risk, files) for risk in effect.risks],
                    "added": rules_record(delta.added),
                    "removed": rules_record(delta.removed),
                }
            )
    return {
        "version": VERSION,
        "worst": str(found.worst),
        "accounts": [_account_record(account, files) for account in found.accounts],
        "everybody": everybody,
        "problems": list(found.problems),
    }


def as_text(found: PermissionReport, files: Mapping[ObjectIdentity, str], *, is_bundle: bool = True) -> str:
    """Sentences first; then for each account capability by reach, what is wider, by which rules, what is as before.

    Of a bundle (`is_bundle`), accounts that do not come with it are marked.
    """
    lines: list[str] = []
    for account in found.accounts:
        worst = min((risk.severity for risk in account.new), key=lambda severity: severity.rank, default=None)
        lines += _wrapped(f"{SHAPES[worst] if worst else '·'} {account.sentence}", "")
    for effect in found.everybody:
        lines += [line for shape, words in _everybody(effect) for line in _wrapped(f"{shape} {words}", "")]
    lines += [line for problem in found.problems for line in _wrapped(f"? Not known: {problem}", "")]
    for account in found.accounts:
        if account.is_changed:
            mark = " (not of this bundle)" if is_bundle and not account.is_own else ""
            lines += ["", visible(f"{account.subject}{mark}"), *_details(account, files)]
    return "\n".join(lines or ["Nobody's rights are touched."]) + "\n"


def _everybody(effect: RoleEffect) -> Iterator[tuple[str, str]]:
    """(shape, sentence) of each risk that all who have a role newly have, and of what they gain and lose."""
    who = f"E{effect.who[1:]}"
    for risk in effect.risks:
        yield SHAPES[risk.severity], f"{who} {'now' if risk.what == HELD else 'can now'} {power_of(risk)}"
    if effect.delta is not None and effect.delta.added:
        words = f"{who} can now {words_of(effect.delta.added)}, in every namespace where they have it"
        yield SHAPES[Severity.DANGEROUS if effect.roles[0].is_built_in else Severity.NOTABLE], words
    if effect.delta is not None and effect.delta.removed:
        yield "·", f"{who} can no longer {words_of(effect.delta.removed)}"


def _details(account: AccountReport, files: Mapping[ObjectIdentity, str]) -> Iterator[str]:
    places = list(dict.fromkeys(place for row in account.reach.values() for place in row))
    for place in sorted(places):
        cells = [f"{name} {row[place]}" for name, row in account.reach.items() if place in row]
        yield f"  {visible(place)}: {'  '.join(cells)}"
    if account.used_by:
        yield from _wrapped(f"used by {', '.join(map(str, account.used_by))}", "  ")
    for words in account.wider:
        yield from _wrapped(f"wider: {words}", "  ")
    for sign, changes in (("+", account.added), ("-", account.removed)):
        for right, ways in _together(changes, files):
            yield from _wrapped(f"{sign} {words_of([right])}", "  ")
            for way in ways:
                yield from _wrapped(f"by {way}", "      ")
    if account.known:
        yield f"  {number(len(account.known), 'risky right')} as before"


def _together(
    changes: Iterable[RightChange], files: Mapping[ObjectIdentity, str]
) -> Iterator[tuple[ScopedRule, tuple[str, ...]]]:
    """The rights with the ways by which they come; those that differ in the resource alone as one."""
    found: dict[tuple[object, ...], tuple[ScopedRule, tuple[str, ...]]] = {}
    for change in changes:
        right, rule = change.right, change.right.rule
        ways = []
        for way in ways_of(change.grants, files):
            place = f" ({way['file']})" if "file" in way else ""
            words = f"{way['binding']}, rule {way['rule']} of {way['origin']}{place}"
            ways.append(words.replace(f".{RBAC_GROUP} ", " "))
        key = (right.scope, replace(rule, resources=()), *ways)
        known = found.get(key)
        if known is not None and rule.resources:
            resources = tuple(dict.fromkeys((*known[0].rule.resources, *rule.resources)))
            right = ScopedRule(right.scope, replace(rule, resources=resources))
        found[key] = (right, tuple(ways))
    return iter(found.values())


def _wrapped(text: str, indent: str) -> list[str]:
    return wrapped(visible(text), indent, f"{indent}  ")


def _account_record(account: AccountReport, files: Mapping[ObjectIdentity, str]) -> dict[str, Any]:
    subject = account.subject
    return {
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "isOwn": account.is_own,
        "isChanged": account.is_changed,
        "sentence": account.sentence,
        "reach": account.reach,
        "wider": list(account.wider),
        "risks": {
            "new": [_risk_record(risk, files) for risk in account.new],
            "known": [_risk_record(risk, files) for risk in account.known],
        },
        "added": [_change_record(change, files) for change in account.added],
        "removed": [_change_record(change, files) for change in account.removed],
        "usedBy": [str(ref) for ref in account.used_by],
    }


def _risk_record(risk: Risk, files: Mapping[ObjectIdentity, str]) -> dict[str, Any]:
    return {
        "rule": risk.id,
        "severity": str(risk.severity),
        "sentence": sentence_of(risk),
        "scope": risk.scope,
        "by": ways_of(risk.evidence, files),
    }


def _change_record(change: RightChange, files: Mapping[ObjectIdentity, str]) -> dict[str, Any]:
    return {
        "scope": change.right.scope,
        "rule": change.right.rule.to_object(),
        "by": ways_of(change.grants, files),
        "before": [rule.to_object() for rule in change.before],
    }
