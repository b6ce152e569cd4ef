"""Two versions of one CRD that are served side by side: what is lost on the way from one to the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from provisioner.schema.definition.crd import Crd
from provisioner.schema.diff.walk import compare_schemas
from provisioner.schema.fields import same_json
from provisioner.schema.verdicts import (
    BEHAVIOUR,
    DATA_LOST,
    NOT_DECIDED,
    D,
    Path,
    SchemaChange,
    SchemaVerdict,
    harmless,
    narrowed,
)
from provisioner.schema.version_order import kube_order
from provisioner.values import Severity

REMOVED = frozenset({"SCH-01", "SCH-03", "SCH-19"})
DEFAULTS = frozenset({"SCH-06", "SCH-33", "SCH-34", "SCH-35"})
Problem = tuple[str, str, str, Path]


def compare_served(old: Crd, new: Crd) -> Iterator[tuple[str, SchemaChange]]:
    """The problems of every pair of served versions in `new`, each with the version in which it shows.

    Those that the old CRD had as well are said once, as harmless. With a conversion webhook nothing can be said.
    """
    if new.uses_webhook:
        if _may_convert_otherwise(old, new):
            yield "", SchemaChange("SRV-06", "webhook", ("spec", "conversion"), NOT_DECIDED)
        return
    known = set() if old.uses_webhook else {problem for problem, _ in _problems(old)}
    old_ones = 0
    for problem, change in _problems(new):
        if problem in known:
            old_ones += 1
        else:
            yield problem[1], change
    if old_ones:
        yield "", harmless("SRV-05", "there-before", ("spec", "versions"), count=old_ones)


def _may_convert_otherwise(old: Crd, new: Crd) -> bool:
    served = [version.name for version in new.served_versions]
    if len(served) < 2:
        return False
    if not old.uses_webhook or served != [version.name for version in old.served_versions]:
        return True
    pairs = ((old.version(name), new.version(name)) for name in served)
    return not all(was and now and same_json(was.schema, now.schema) for was, now in pairs)


def _problems(crd: Crd) -> Iterator[tuple[Problem, SchemaChange]]:
    for source, target in permutations(crd.served_versions, 2):
        is_forward = kube_order(source.name) < kube_order(target.name)
        keeps = crd.preserves_unknown
        for change in compare_schemas(source.schema, target.schema, preserved=(keeps, keeps)):
            found = _problem(change, source.name, target.name, is_forward=is_forward)
            if found is not None:
                yield (found.rule, target.name, source.name, found.path), found


def _problem(change: SchemaChange, source: str, target: str, *, is_forward: bool) -> SchemaChange | None:
    """What a change from one version's schema to the other's means for an object that goes that way."""
    at, facts = change.path, {"from": source, "to": target}
    if change.rule in REMOVED:
        if is_forward:
            return SchemaChange("SRV-01", "missing", at, DATA_LOST, True, facts)
        verdict = SchemaVerdict(stored=D, writers=D, rollback=D)
        return SchemaChange("SRV-02", "missing", at, verdict, True, facts)
    if change.rule in DEFAULTS:
        if not is_forward:
            return None
        return SchemaChange("SRV-04", "default", at, BEHAVIOUR, False, facts)
    facts = {**change.facts, **facts, "because": change.rule, "because_variant": change.variant}
    if change.verdict.severity is Severity.BREAKING:
        return narrowed("SRV-03", "refused", at, **facts)
    if change.verdict.severity is Severity.UNKNOWN:
        return SchemaChange("SRV-03", "undecided", at, NOT_DECIDED, True, facts)
    return None
