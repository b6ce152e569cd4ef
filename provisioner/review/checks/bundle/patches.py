"""What `spec.config` changed in the objects after they were rendered, and what of it hit nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from provisioner.escaping import visible
from provisioner.review.base.facts import Check, Facts, ReviewRule, said
from provisioner.values import Finding, PatchResult, Section, Severity

_PATCHED = ReviewRule("PATCH-01", Section.CONTENT, Severity.NOTABLE)
_HITS_NOTHING = ReviewRule("PATCH-01", Section.CONTENT, Severity.DANGEROUS)


def compare_patches(facts: Facts) -> Iterator[Finding]:
    """Find what each entry of `spec.config` changed: patches by object, what is for all objects in one finding."""
    before = {result.entry: result for result in (facts.previous.patches if facts.previous else ())}
    for result in facts.content.patches:
        old = before.get(result.entry, PatchResult(result.entry, -1, ()))
        if not result.count:
            near = list(result.near) or None
            found = _HITS_NOTHING.finding("hits-nothing", None, key=[result.entry], entry=result.entry, near=near)
            yield replace(found, is_new=old.count != 0)
        elif not result.entry.startswith("patches"):
            refs = [patched.ref for patched in result.objects]
            found = _PATCHED.finding(
                "everywhere", None, key=[result.entry], entry=result.entry, objects=refs, count=result.count
            )
            yield replace(found, is_new=result != old)
        for patched in result.objects if result.entry.startswith("patches") else ():
            paths = [visible(path) for path in patched.paths]
            if patched.is_deleted:
                key = [result.entry, said(patched.ref)]
                found = _PATCHED.finding("deleted", None, key=key, entry=result.entry, object=patched.ref)
            else:
                found = _PATCHED.finding(
                    "changed", patched.ref, key=[result.entry, *paths], entry=result.entry, paths=paths
                )
            yield replace(found, is_new=patched not in old.objects)


PATCHES_CHECK = Check("patches", changes=compare_patches)
