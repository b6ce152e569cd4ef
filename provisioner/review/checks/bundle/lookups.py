"""Which objects of the cluster a chart was told of when it was rendered, and where values of Secrets went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.values import Finding, Lookup, Section, Severity

_TOLD = ReviewRule("LKP-01", Section.CONTENT, Severity.NOTABLE)
_ELSEWHERE = replace(_TOLD, severity=Severity.DANGEROUS)


def _changes(facts: Facts) -> Iterator[Finding]:
    before = facts.previous.lookups if facts.previous else ()
    for one in facts.content.lookups:
        yield replace(_of(one, facts.content.install_namespace), is_new=one not in before)


def _of(one: Lookup, install_namespace: str) -> Finding:
    copies = [visible(name) for name in one.copies]
    rule, variant = _TOLD, "no-values"
    if not one.digest:
        variant = "absent"
    elif one.ref.kind != "Secret":
        variant = "told"
    elif any((name.rpartition("/")[0] or install_namespace) != one.ref.namespace for name in one.copies):
        rule, variant = _ELSEWHERE, "values-go-elsewhere"
    elif copies:
        variant = "values-go"
    return rule.finding(variant, None, key=[said(one.ref), one.digest, *copies], object=one.ref, copies=copies)


CHECK = Check("lookups", changes=_changes)
