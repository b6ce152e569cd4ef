"""Checks of other packages: one that is broken is missed in every report, by name, and what it finds is looked at."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import islice
from typing import Any, TypeVar

from provisioner.errors import PluginFailed
from provisioner.plugins import Plugin, PluginGroup, call, installed, load, tried
from provisioner.review.base.claims import Claim, parts_of
from provisioner.review.base.facts import Check, Facts, Listing
from provisioner.review.base.record import plain
from provisioner.review.rules import rule_ids
from provisioner.values import Finding, GroupKind, ObjectRef, Section, Severity

LOOK_SECONDS = 60.0
# Of one check in one look: more would bury what other checks found.
MAX_FINDINGS = 2000
MAX_ASKED = 2000
MAX_MESSAGE = 2000
MAX_EVIDENCE_BYTES = 64 * 1024
RULE = re.compile(r"[A-Z][-A-Za-z0-9]{0,59}")
CHECK = (
    "a Check without settles, which is for checks that belong to Pratique, whose claims are a tuple of Claim that name "
    "rules of its own (docs/contributing/plug-ins.md)"
)
T = TypeVar("T")


def plugged_checks(ours: Collection[str]) -> list[Check]:
    """The checks of other packages under the names of their entry points; a disabled one crashes in every report."""
    found = []
    for plugin in installed(PluginGroup.CHECKS, ours):
        try:
            loaded: Check = load(plugin, _is_fit, CHECK)
        except PluginFailed:
            loaded = Check(plugin.name)
        found.append(replace(loaded, name=plugin.name, plugin=plugin))
    return found


def check_plugins(ours: Collection[str]) -> list[Plugin]:
    """The same as plug-ins, each with its problem if it is disabled."""
    return [tried(plugin, _is_fit, CHECK) for plugin in installed(PluginGroup.CHECKS, ours)]


def _is_fit(loaded: Any) -> bool:
    """Whether it is a check whose claims can be asked of every field."""
    if not isinstance(loaded, Check) or loaded.settles is not None or not isinstance(loaded.claims, tuple):
        return False
    return all(isinstance(claim, Claim) and _is_claim(claim) for claim in loaded.claims)


def _is_claim(claim: Claim) -> bool:
    if not (isinstance(claim.kinds, frozenset) and isinstance(claim.paths, tuple) and _FIELDS["rule"](claim.rule)):
        return False
    try:
        return all(isinstance(kind, GroupKind) for kind in claim.kinds) and all(map(parts_of, claim.paths))
    except (TypeError, ValueError):
        return False


def shown(given: T, checks: Iterable[Check]) -> T:
    """What plug-ins are shown of `given`: a copy, so that no change of theirs reaches our checks, or what is kept."""
    return deepcopy(given) if any(check.plugin for check in checks) else given


def run(check: Check, function: Callable[[], T]) -> T:
    """What `function`, which runs the check, returns; raises PluginFailed where it belongs to a plug-in and fails."""
    return call(check.plugin, function, seconds=LOOK_SECONDS) if check.plugin else function()


def asked(check: Check, ask: Callable[[], Iterable[T]], kind: type[T]) -> list[T]:
    """What a check asks for, `kind` each."""
    return run(check, lambda: _exactly(ask(), kind)) if check.plugin else list(ask())


def ask_again(check: Check, facts: Facts) -> None:
    """Have the questions of a plug-in's check fail where its findings are asked for, if they do: nobody missed them."""
    _exactly(check.wants(facts.content, facts.plan), ObjectRef)
    _exactly(check.mentions(facts), ObjectRef)
    _exactly(check.lists(facts), Listing)


def _exactly(found: Iterable[T], kind: type[T]) -> list[T]:
    taken = list(islice(found, MAX_ASKED + 1))
    if len(taken) > MAX_ASKED:
        raise PluginFailed(f"it asks for more than {MAX_ASKED:,} objects or lists")
    wrong = next((one for one in taken if not (isinstance(one, kind) and _is_sortable(one))), None)
    if wrong is not None or None in taken:
        raise PluginFailed(f"it asks for a {type(wrong).__name__}; expected {kind.__name__}, with texts")
    return taken


def _is_sortable(one: Any) -> bool:
    """Whether a reference or a list has the types that its annotations say, so that it can stand beside others."""
    texts = ("group", "version", "kind", "namespace", *(("name",) if isinstance(one, ObjectRef) else ()))
    switches = ("metadata_only", "is_counted") if isinstance(one, Listing) else ()
    return all(isinstance(getattr(one, name), str) for name in texts) and all(
        isinstance(getattr(one, name), bool) for name in switches
    )


def sound(found: Any, place: int) -> Finding:
    """The `place`th finding of a plug-in, from 0, if it can be kept and shown; raises PluginFailed."""
    if place >= MAX_FINDINGS:
        raise PluginFailed(f"it has more than {MAX_FINDINGS:,} findings")
    if not isinstance(found, Finding):
        raise PluginFailed(f"it found a {type(found).__name__}; expected Finding")
    wrong = next((name for name, is_sound in _FIELDS.items() if not is_sound(getattr(found, name))), None)
    if wrong is not None:
        raise PluginFailed(f"a finding has no sound {wrong}")
    evidence = plain(found.evidence)
    # As it will be stored; the database takes no NUL and no half of a character.
    written = json.dumps(evidence, allow_nan=False, ensure_ascii=False)
    if "\\u0000" in written:
        raise PluginFailed("the evidence of a finding has the character NUL")
    if len(written.encode()) > MAX_EVIDENCE_BYTES:
        raise PluginFailed(f"a finding has more than {MAX_EVIDENCE_BYTES:,} bytes of evidence")
    return replace(found, evidence=evidence, path=tuple(found.path), sources=tuple(found.sources))


def _is_words(value: Any) -> bool:
    return isinstance(value, str) and value.isprintable() and len(value) <= MAX_MESSAGE


def _is_ref(value: Any) -> bool:
    return isinstance(value, ObjectRef) and _is_sortable(value)


def _is_path(value: Any) -> bool:
    return isinstance(value, tuple | list) and all(type(part) is int or _is_words(part) for part in value)


_FIELDS: Mapping[str, Callable[[Any], bool]] = {
    "rule": lambda value: isinstance(value, str) and bool(RULE.fullmatch(value)) and value not in rule_ids(),
    "section": lambda value: isinstance(value, Section),
    "severity": lambda value: isinstance(value, Severity),
    "message": lambda value: _is_words(value) and bool(value),
    "ref": lambda value: value is None or _is_ref(value),
    "path": _is_path,
    "evidence": lambda value: isinstance(value, Mapping),
    "verdicts": lambda value: value == {},
    "fingerprint": lambda value: _is_words(value) and len(value) <= 64,
    "server_words": _is_words,
    "is_private": lambda value: value is False,
    "sources": lambda value: isinstance(value, tuple | list) and all(map(_is_ref, value)),
    "also": lambda value: value == (),
}
