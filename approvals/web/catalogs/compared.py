"""What a page shows of a comparison. PURE: the result as the viewer may see it comes in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from approvals.catalogs.comparisons import key_of
from provisioner.catalogs import CatalogBundle, Installed, Package, deprecations_of, step_to
from provisioner.review.rules import rule_text
from provisioner.review.rules.explanations import in_one_paragraph
from provisioner.values import Section, Severity, UpgradeStep

MOST_FINDINGS = 100
MOST_OBJECTS = 300
MOST_IMAGES = 200
# Of findings, in any number (S24).
NEVER_LEFT_OUT = frozenset({Severity.CRITICAL, Severity.UNKNOWN})
WORDS = {Section.CRDS: "CRDs", Section.PREFLIGHT: "Rights of the installer"}
ACTIONS = (
    ("create", "Added"),
    ("update", "Changed"),
    ("replace", "Replaced"),
    ("rerun", "Hooks that run again"),
    ("delete", "Removed"),
    ("orphan", "Removed from the bundle, and kept"),
    ("hidden", "Changed or not: you may not get these"),
)
# What the rules that say something against a bundle find in a request.
AGAINST = {"SRC-03": Severity.DANGEROUS, "CAT-01": Severity.DANGEROUS, "CAT-02": Severity.NOTABLE}
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SaidAgainst:
    """One thing that a catalog says against going to a bundle; `means` explains its rule."""

    rule: str
    severity: Severity
    words: str
    means: str


@dataclass(frozen=True, slots=True)
class ShownObject:
    """An object, and the severity of the worst finding about it; "" where none is worse than safe.

    `position` is its place in the plan. `added` and `removed` count the lines that differ.
    """

    ref: Record
    severity: str
    position: int
    added: int = 0
    removed: int = 0


@dataclass(frozen=True, slots=True)
class ShownObjects:
    """The objects with which the same happens, those with the worst findings first; `left` more are not listed."""

    words: str
    count: int
    objects: list[ShownObject]
    left: int


@dataclass(frozen=True, slots=True)
class ShownFindings:
    """Findings of one section, the worst first and of equals the new ones; what is safe is counted."""

    name: str
    words: str
    findings: list[Record]
    left: int
    safe: int


@dataclass(frozen=True, slots=True)
class ShownComparison:
    """A result in the order of the page."""

    result: Record
    objects: list[ShownObjects]
    unchanged: int
    sections: list[ShownFindings]
    images: list[Record]
    images_left: int


def shown_result(result: Record) -> ShownComparison:
    """The parts of a result that a page shows, each bounded."""
    actions, findings = result["report"]["plan"]["actions"], result["report"]["findings"]
    worst = _worst_of_each(findings)
    return ShownComparison(
        result,
        [group for name, words in ACTIONS if (group := _objects(result, worst, name, words)).count],
        sum(1 for one in actions if one["action"] == "none"),
        [one for section in Section if (one := _section(findings, section)) is not None],
        result["images"][:MOST_IMAGES],
        max(0, len(result["images"]) - MOST_IMAGES),
    )


def words_against(package: Package, before: CatalogBundle | None, after: CatalogBundle) -> list[SaidAgainst]:
    """What the catalog says against going to a bundle, as findings of a request would; `before` is None where nothing
    runs, or nobody knows which bundle does."""
    said = []
    if before is not None and before.rank > after.rank:
        said.append(_against("SRC-03", f"A downgrade: {_named(after)} is lower than {_named(before)}."))
    if before is not None and _leaves(package, before, after):
        words = (
            f"{_named(after)} is not higher than {_named(before)}"
            if after.is_chart
            else f"No edge of the catalog leads from {_named(before)} to {_named(after)}"
        )
        how = "a deployment takes it only with upgradeConstraintPolicy SelfCertified"
        said.append(_against("CAT-01", f"{words}: {how}."))
    found = deprecations_of(package, "", after.name)
    return said + [_against("CAT-02", f"Its publisher deprecates {words}.") for words in found]


def _against(rule: str, words: str) -> SaidAgainst:
    means = rule_text(rule)
    return SaidAgainst(rule, AGAINST[rule], words, in_one_paragraph(means) if means else "")


def _leaves(package: Package, before: CatalogBundle, after: CatalogBundle) -> bool:
    runs = Installed(before.name, before.version, before.release)
    return step_to(package, package.channels, after, runs) is UpgradeStep.LEAVES


def _named(bundle: CatalogBundle) -> str:
    return f"`{bundle.name}` ({bundle.version})"


def _worst_of_each(findings: list[Record]) -> dict[str, Severity]:
    worst = dict[str, Severity]()
    for one in findings:
        if ref := one.get("ref"):
            key, severity = key_of(ref), Severity(one["severity"])
            worst[key] = min(worst.get(key, severity), severity, key=lambda it: it.rank)
    return worst


def _objects(result: Record, worst: Mapping[str, Severity], name: str, words: str) -> ShownObjects:
    placed = enumerate(result["report"]["plan"]["actions"])
    judged = [
        (at, one["ref"], worst.get(key_of(one["ref"]), Severity.SAFE)) for at, one in placed if one["action"] == name
    ]
    judged.sort(key=lambda it: it[2].rank)
    shown = [
        ShownObject(ref, "" if severity is Severity.SAFE else severity, at, *result["changed"].get(str(at), ()))
        for at, ref, severity in judged[:MOST_OBJECTS]
    ]
    return ShownObjects(words, len(judged), shown, max(0, len(judged) - MOST_OBJECTS))


def _gravity(finding: Record) -> tuple[int, bool]:
    return Severity(finding["severity"]).rank, not finding["isNew"]


def _section(findings: list[Record], section: Section) -> ShownFindings | None:
    here = sorted((one for one in findings if one["section"] == section), key=_gravity)
    if not here:
        return None
    grave, others, safe = list[Record](), list[Record](), 0
    for one in here:
        if one["severity"] in NEVER_LEFT_OUT:
            grave.append(one)
        elif one["severity"] != Severity.SAFE:
            others.append(one)
        else:
            safe += 1
    kept = others[: max(0, MOST_FINDINGS - len(grave))]
    words = WORDS.get(section, str(section).capitalize())
    return ShownFindings(str(section), words, [*grave, *kept], len(others) - len(kept), safe)
