"""S36: of every field of every kind of the API server, a rule claims it by its path, or its change is UNJUDGED."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from provisioner.builtin import POD_PATHS
from provisioner.review.base.causes import SAID_WITH
from provisioner.review.base.claims import Claim
from provisioner.review.base.messages import UNJUDGED
from provisioner.review.frame import CHECKS, report
from provisioner.review.judged.harmless import TABLE
from provisioner.review.judged.leaves import EMPTY, ORDER
from provisioner.review.judged.unjudged_fields import pattern_of
from provisioner.review.rules import rule_text
from provisioner.values import Action, Finding, GroupKind
from tests.provisioner.review.judged.every_leaf import KEY, every_kind, group_kind, leaves_of, object_with_everything
from tests.support.provisioner.contents import facts, planned

CLAIMS = (*(claim for check in CHECKS for claim in check.claims), *(one.claim for one in TABLE))
FEW = [
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("coordination.k8s.io/v1", "Lease"),
    ("v1", "Secret"),
]
# Of definitions in v1beta1, which no API server of today knows.
OF_ANOTHER_VERSION = {"spec.version", "spec.validation", "spec.subresources", "spec.additionalPrinterColumns"}
IDENTITY = {("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace")}
KNOWN = {group_kind(*pair) for pair in every_kind()}
KINDS = [
    pytest.param(*one, id=f"{one[0]} {one[1]}", marks=[] if one in FEW else pytest.mark.thorough)
    for one in every_kind()
]


def parts(pattern: str) -> list[str]:
    return [one.strip("[]") for one in re.findall(r"\[[^\]]+\]|[^.\[]+", pattern)]


def holds(claim: Claim, kind: GroupKind, path: tuple[str | int, ...]) -> bool:
    """Whether a claim names this path, found another way than the product finds it: by the words of both."""
    if not any(one.group in ("*", kind.group) and one.kind in ("*", kind.kind) for one in claim.kinds):
        return False
    place = POD_PATHS.get(kind.kind) if kind.group in ("", "apps", "batch") else None
    said = "/".join("*" if isinstance(part, int) else part.replace("/", "~") for part in path)
    return any(regex.fullmatch(said) for pattern in claim.paths if (regex := regex_of(pattern, place)))


@cache
def regex_of(pattern: str, place: tuple[str, ...] | None) -> re.Pattern[str] | None:
    """For the paths that a claim's pattern names; None for a pod's where the kind has none."""
    names = parts(pattern)
    if names[0] in ("{pod}", "{pod-meta}"):
        if place is None:
            return None
        names = [*place[:-1], "spec" if names[0] == "{pod}" else "metadata", *names[1:]]
    regex = "/".join(
        "[^/]*" if name == "*" else re.escape(name.replace("/", "~")).replace(r"\*", "[^/]*") for name in names
    )
    return re.compile(rf"{regex}(?:/.*)?")


def changes(api_version: str, kind: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every field set, changed and removed."""
    one, other = (object_with_everything(api_version, kind, second=second) for second in (False, True))
    bare = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "all", "namespace": "shop"}}
    yield bare, one
    yield one, other
    yield one, bare


def test_every_kind_of_the_api_server_is_among_them() -> None:
    kinds = {kind for _, kind in every_kind()}
    assert len(kinds) >= 70
    assert {kind for _, kind in FEW} <= kinds


def unjudged_in(finding: Finding) -> list[str]:
    """The fields that a finding says no rule judges, or that are kept in one which tells what they are now."""
    kept = finding.evidence.get(SAID_WITH, {}).get(UNJUDGED, [])
    inside = [one["evidence"] for one in (kept if isinstance(kept, list) else [kept])]
    own = [finding.evidence] if finding.rule == UNJUDGED else []
    return [field for one in (*own, *inside) for field in one["fields"]]


@pytest.mark.parametrize(("api_version", "kind"), KINDS)
def test_S36_every_field_of_every_kind_is_judged_by_its_path_or_unjudged(api_version: str, kind: str) -> None:
    of = group_kind(api_version, kind)
    for before, after in changes(api_version, kind):
        found = report(facts(planned(after, Action.UPDATE, before=before)), CHECKS).findings
        told = {field for one in found for field in unjudged_in(one)}
        assert not [one.message for one in found if one.rule == "CRASHED"]
        leaves = {*leaves_of(before), *leaves_of(after)} - IDENTITY
        judged = {path for path in leaves if any(holds(claim, of, path) for claim in CLAIMS if not claim.is_of_new)}
        wrong = {pattern_of(path) for path in leaves - judged} ^ told
        assert not wrong, f"{sorted(wrong)[:5]} of {len(leaves)} fields"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda one: one.rule)
def test_what_is_claimed_is_claimed_by_a_rule_that_there_is(claim: Claim) -> None:
    assert rule_text(claim.rule) is not None


def test_what_is_claimed_of_kubernetes_kinds_is_a_field_of_theirs() -> None:
    """A path that is written wrongly claims nothing, and nobody would notice. Keys of maps are anybody's."""
    fields = {pair: set(leaves_of(object_with_everything(*pair))) for pair in every_kind()}
    wrong = []
    for claim in CLAIMS:
        if not any(kind.kind == "*" or kind in KNOWN for kind in claim.kinds) or claim.rule == "OWN-PRATIQUE-01":
            continue
        for pattern in set(claim.paths) - OF_ANOTHER_VERSION:
            alone = Claim(
                claim.rule,
                claim.kinds,
                (
                    re.sub(r"(?<=\.)\[[^\]]+\]", f"[{KEY}]", pattern)
                    .removesuffix(f".{EMPTY}")
                    .removesuffix(f".{ORDER}"),
                ),
            )
            if not any(holds(alone, group_kind(*pair), path) for pair, paths in fields.items() for path in paths):
                wrong.append(f"{claim.rule} {pattern}")
    assert wrong == []
