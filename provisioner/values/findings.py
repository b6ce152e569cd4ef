"""What a reviewer should know, how much it should worry them, and the report that holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from provisioner.values.objects import ObjectRef
from provisioner.values.plans import Plan


class Severity(StrEnum):
    """How much a finding should worry a reviewer, the worst first.

    The rule catalog's scales meet here: CRD rules use BREAKING, DANGEROUS, UNKNOWN and SAFE; permission rules say
    critical (CRITICAL), high (DANGEROUS), medium (NOTABLE) and low (SAFE).
    """

    CRITICAL = "critical"
    BREAKING = "breaking"
    UNKNOWN = "unknown"
    DANGEROUS = "dangerous"
    NOTABLE = "notable"
    SAFE = "safe"

    @property
    def rank(self) -> int:
        """0 is the worst; sorting by rank puts what matters first."""
        return list(Severity).index(self)

    def is_at_least(self, other: Severity) -> bool:
        return self.rank <= other.rank


# A severity is a word and a shape, never a colour alone: so who sees no colours can tell them apart.
SHAPES: Mapping[str, str] = {
    Severity.CRITICAL: "◆",
    Severity.BREAKING: "■",
    Severity.UNKNOWN: "?",
    Severity.DANGEROUS: "▲",
    Severity.NOTABLE: "●",
    Severity.SAFE: "○",
}


class Section(StrEnum):
    """The parts of a report, in the order in which a page shows them."""

    OBJECTS = "objects"
    AVAILABILITY = "availability"
    PERMISSIONS = "permissions"
    CRDS = "crds"
    PODS = "pods"
    WEBHOOKS = "webhooks"
    IMAGES = "images"
    PREFLIGHT = "preflight"
    CONTENT = "content"

    @property
    def heading(self) -> str:
        return "Custom resources" if self is Section.CRDS else str(self).capitalize()


class Certainty(StrEnum):
    """Whether a finding's severity holds as it stands, or only if a stored object is as the finding says."""

    PROVED = "proved"
    DEPENDS_ON_OBJECTS = "depends-on-objects"


def certainty_of(evidence: Mapping[str, Any]) -> Certainty:
    """By a finding's evidence: `live` says that stored objects settle it, a `basis` of `objects` that they did."""
    is_open = bool(evidence.get("live")) and evidence.get("basis") != "objects"
    return Certainty.DEPENDS_ON_OBJECTS if is_open else Certainty.PROVED


@dataclass(frozen=True, slots=True)
class Note:
    """What is added to the sentence of a finding: the message `name` of a file of the rules, such as `shared/objects`,
    with the values that it shows. One that `is_minor` is left out where many places are told in short."""

    file: str
    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    is_minor: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a reviewer should know.

    `rule` is the catalog's id (`RB-11`, `CRD-10`), `path` the field as a tuple of keys and indexes, `message` one
    sentence, `evidence` JSON-ready facts behind it, never a Secret's value. `verdicts` answers, for CRD rules, the five
    questions api, stored, writers, readers, rollback. `fingerprint` names the same finding in two reports.

    `message` is ours: whoever may read the request may read it. `server_words`, path and evidence hold what a server
    said, or what stands in a live object: for people who may get `ref`, and where that is None all live objects of the
    plan. A finding that `is_private` is there for them only: it would tell how someone else's object differs.
    `sources` are objects beside the plan of which it is made, such as roles: where there are any, all of them have to
    be readable. One without a name stands for every object of its kind, in its namespace where it names one.
    `is_withheld` where `server_words` hold all that the check said, and `message` is what stands for it.
    `variant` names the message of the rule's file that `message` was made of, with `evidence` as its values; "" where a
    check wrote the sentence. `notes` are what further knowledge adds to the sentence.
    `also` are the ids of further rules that say the same of the same cause, and are told with it (decision 0057).
    """

    rule: str
    section: Section
    severity: Severity
    message: str
    ref: ObjectRef | None = None
    path: tuple[str | int, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)
    verdicts: Mapping[str, Severity] = field(default_factory=dict)
    is_new: bool = True
    fingerprint: str = ""
    server_words: str = ""
    is_private: bool = False
    sources: tuple[ObjectRef, ...] = ()
    also: tuple[str, ...] = ()
    is_withheld: bool = False
    variant: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def certainty(self) -> Certainty:
        return certainty_of(self.evidence)


def worst_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in the order of every report: severity, new before known, section, object, rule, path.

    The path of one that is withheld is a value of its object: its order is by the name that nobody can guess.
    """
    sections = list(Section)
    return tuple(
        sorted(
            findings,
            key=lambda it: (
                it.severity.rank,
                not it.is_new,
                sections.index(it.section),
                str(it.ref or ""),
                it.rule,
                (it.fingerprint,) if it.is_withheld else tuple(str(part) for part in it.path),
            ),
        )
    )


@dataclass(frozen=True, slots=True)
class Report:
    """All findings about one content on one cluster, worst first, with the plan they belong to."""

    headline: tuple[str, ...]
    findings: tuple[Finding, ...]
    plan: Plan

    @property
    def public(self) -> tuple[Finding, ...]:
        """The findings that everybody may know of who may read the request."""
        return tuple(finding for finding in self.findings if not finding.is_private)

    @property
    def private(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.is_private)

    @property
    def worst(self) -> Severity:
        return min((finding.severity for finding in self.public), key=lambda it: it.rank, default=Severity.SAFE)

    def in_section(self, section: Section) -> list[Finding]:
        return [finding for finding in self.findings if finding.section is section]
