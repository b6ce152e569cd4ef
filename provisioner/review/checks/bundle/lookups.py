"""Which objects of the cluster a chart was told of when it was rendered, and where values of Secrets went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.review.base.text import visible
from provisioner.sentences import some
from provisioner.values import Finding, Lookup, Section, Severity

_TOLD = ReviewRule("LKP-01", Section.CONTENT, Severity.NOTABLE)
_ELSEWHERE = replace(_TOLD, severity=Severity.DANGEROUS)


def _changes(facts: Facts) -> Iterator[Finding]:
    before = facts.previous.lookups if facts.previous else ()
    for one in facts.content.lookups:
        yield replace(_of(one, facts.content.install_namespace), is_new=one not in before)


def _of(one: Lookup, install_namespace: str) -> Finding:
    what, copies = said(one.ref), [visible(name) for name in one.copies]
    rule = _TOLD
    if not one.digest:
        words = f"The chart was told that {what} does not exist in the cluster"
    elif one.ref.kind != "Secret":
        words = f"The chart was told what {what} is in the cluster"
    elif copies:
        words = f"The chart was told of {what}, and values of it go into {_secrets(copies)} of the content"
        if any((name.rpartition("/")[0] or install_namespace) != one.ref.namespace for name in one.copies):
            rule, words = _ELSEWHERE, f"{words}, in another namespace"
    else:
        words = (
            f"The chart was told of {what}, and none of its values is in the content. What it computes from one, such"
            " as a hash, it computes from a mark in its place"
        )
    return rule.at(None, words, evidence={"object": what, "copies": copies}, key=[what, one.digest, *copies])


def _secrets(names: list[str]) -> str:
    return f"Secret {names[0]}" if len(names) == 1 else f"Secrets {some(names, noun='Secrets')}"


CHECK = Check("lookups", changes=_changes)
