"""What each proof about CRDs earns: how many comparisons of real pairs, findings and verdicts change without it.

python -m tests.bench.reports.proofs [PIECE ...]

Pairs are those of the corpus (crd-pairs, and CRDs of each two versions of a bundle that follow each other), both ways.
The counts are in docs/decisions/reports.md, 0076.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import yaml

from provisioner.schema import compare
from provisioner.schema.diff import node, rules
from provisioner.schema.inclusion import facets, languages, presence
from provisioner.values import Finding, JsonObject
from tests.support.folders import CORPUS
from tests.support.provisioner.corpus import content_of, pairs

CRD = "CustomResourceDefinition"
PIECES: dict[str, tuple[tuple[Any, str, Callable[..., Any]], ...]] = {
    "languages": ((facets, "inclusion", lambda *_: languages.GIVEN_UP),),
    "table": tuple((one, "inclusion", lambda *_, **__: presence.UNDECIDED) for one in (rules, presence)),
    "objects together": ((node, "taken_together", lambda changes, *_, **__: changes),),
    "new fields": ((rules, "_is_about_new_fields", lambda *_: False),),
    "rules before": ((node, "mindful_of_rules", lambda changes, _: changes),),
    "pattern before": ((rules, "_is_pattern", lambda *_: False),),
    "demands": ((rules, "_covered", lambda *_: False),),
}


def real_pairs() -> list[tuple[JsonObject, JsonObject]]:
    found = []
    for folder in sorted((CORPUS / "crd-pairs").glob("*/")):
        files = [yaml.load((folder / name).read_text(), Loader=yaml.CSafeLoader) for name in ("old.yaml", "new.yaml")]
        found.append((files[0], files[1]))
    for old, new in pairs():
        before, after = (
            {it.ref.name: it.body for it in content_of(side).manifests if it.ref.kind == CRD} for side in (old, new)
        )
        found += [(before[name], after[name]) for name in sorted(before.keys() & after.keys())]
    return [*found, *((new, old) for old, new in found)]


def judged(finding: Finding) -> tuple[Any, ...]:
    return finding.rule, finding.path, str(finding.evidence.get("version")), tuple(sorted(finding.verdicts.items()))


def worst(findings: list[Finding]) -> int:
    return min((finding.severity.rank for finding in findings), default=99)


def main(names: list[str]) -> None:
    known = [(old, new, compare(old, new)) for old, new in real_pairs()]
    print(f"{len(known)} comparisons, {sum(len(found) for _, _, found in known)} findings")
    for name in names or PIECES:
        patches = [patch.object(*piece) for piece in PIECES[name]]
        for piece in patches:
            piece.start()
        comparisons = findings = verdicts = 0
        for old, new, before in known:
            after = compare(old, new)
            gone, come = Counter(map(judged, before)), Counter(map(judged, after))
            comparisons += gone != come
            findings += max((gone - come).total(), (come - gone).total())
            verdicts += worst(before) != worst(after)
        for piece in patches:
            piece.stop()
        print(f"without {name}: {comparisons} comparisons, {findings} findings, {verdicts} verdicts change")


if __name__ == "__main__":
    main(sys.argv[1:])
