"""What one change means: to the API server, stored objects, writers, readers, and for going back."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.schema.fields import go_json
from provisioner.values import Finding, ObjectRef, Section, Severity

Path = tuple[str | int, ...]
_EXAMPLES = frozenset({"counterexample", "example"})  # facts by which a change is shown, not named
ITEMS, VALUES = "[]", "{}"  # the items of a list and the values of a map, as parts of a path


@dataclass(frozen=True, slots=True)
class SchemaVerdict:
    """One answer per question. Severity is the worst of the first three: what only readers notice endangers no data."""

    api: Severity = Severity.SAFE
    stored: Severity = Severity.SAFE
    writers: Severity = Severity.SAFE
    readers: Severity = Severity.SAFE
    rollback: Severity = Severity.SAFE

    @property
    def severity(self) -> Severity:
        return min((self.api, self.stored, self.writers), key=lambda it: it.rank)

    def as_mapping(self) -> dict[str, Severity]:
        return {
            "api": self.api,
            "stored": self.stored,
            "writers": self.writers,
            "readers": self.readers,
            "rollback": self.rollback,
        }


S, D, B, U = Severity.SAFE, Severity.DANGEROUS, Severity.BREAKING, Severity.UNKNOWN

HARMLESS = SchemaVerdict()
WIDENED = SchemaVerdict(rollback=D)
WIDENED_FOR_READERS = SchemaVerdict(readers=D, rollback=D)
READERS_ONLY = SchemaVerdict(readers=D)
NARROWED = SchemaVerdict(stored=B, writers=B)
DATA_LOST = SchemaVerdict(stored=B, writers=D, readers=D, rollback=D)
BEHAVIOUR = SchemaVerdict(stored=D, readers=D)
FOR_WRITERS = SchemaVerdict(writers=D)
REJECTED = SchemaVerdict(api=B)
GONE = SchemaVerdict(writers=B, readers=B)
GONE_WITH_ALL = SchemaVerdict(stored=B, writers=B, readers=B, rollback=B)
GONE_UNUSED = SchemaVerdict(writers=D, readers=D)
NOT_DECIDED = SchemaVerdict(stored=U, writers=U, rollback=U)
NOTHING_KNOWN = SchemaVerdict(api=U, stored=U, writers=U, readers=U, rollback=U)


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One change that a reviewer should know. `is_live` says that looking at the stored objects settles it.

    `variant` names its message in the file of the rule, which shows values of `facts`; of these `proof` is the key of
    what was proved beside what stands there.
    """

    rule: str
    variant: str
    path: Path
    verdict: SchemaVerdict
    is_live: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)

    def finding(self, ref: ObjectRef, version: str) -> Finding:
        """The change as a finding about the CRD `ref`; `version` is "" for what concerns all versions."""
        evidence: dict[str, Any] = {"version": version, **self.facts}
        if self.is_live:
            evidence["live"] = True
        named = {name: value for name, value in self.facts.items() if name not in _EXAMPLES}
        text = go_json([ref.name, version, self.rule, self.variant, list(self.path), named])
        return Finding(
            rule=self.rule,
            section=Section.CRDS,
            severity=self.verdict.severity,
            message="",
            ref=ref,
            path=self.path,
            evidence=evidence,
            verdicts=self.verdict.as_mapping(),
            fingerprint=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32],
            variant=self.variant,
        )

    def judged(
        self, judge: Callable[..., SchemaChange], proof: str = "", *, rule: str = "", **facts: Any
    ) -> SchemaChange:
        """The same change as `judge` (`narrowed`, `widened` or `harmless`) makes it, by `proof`; `facts` are added."""
        told = {"proof": proof} if proof else {}
        return judge(rule or self.rule, self.variant, self.path, **{**self.facts, **facts, **told})

    def without_example(self) -> SchemaChange:
        return replace(self, facts={name: it for name, it in self.facts.items() if name != "counterexample"})


def narrowed(rule: str, variant: str, path: Path, **facts: Any) -> SchemaChange:
    """Values that were accepted are not any more; stored ones may be among them."""
    return SchemaChange(rule, variant, path, NARROWED, is_live=True, facts=facts)


def widened(rule: str, variant: str, path: Path, **facts: Any) -> SchemaChange:
    return SchemaChange(rule, variant, path, WIDENED, facts=facts)


def widened_for_readers(rule: str, variant: str, path: Path, **facts: Any) -> SchemaChange:
    """More is accepted than before, which those who read the objects may not expect."""
    return SchemaChange(rule, variant, path, WIDENED_FOR_READERS, facts=facts)


def harmless(rule: str, variant: str, path: Path, **facts: Any) -> SchemaChange:
    return SchemaChange(rule, variant, path, HARMLESS, facts=facts)


def undecided(rule: str, variant: str, path: Path, **facts: Any) -> SchemaChange:
    """Nothing is proved in either direction; looking at the objects may settle it."""
    return SchemaChange(rule, variant, path, NOT_DECIDED, is_live=True, facts=facts)


def type_phrase(types: Iterable[str]) -> str:
    """`an object`, or `an integer or a string`."""
    return " or ".join(f"{'an' if name[0] in 'aio' else 'a'} {name}" for name in sorted(types))


def shown(path: Path) -> str:
    """A path for people."""
    return ".".join(str(part) for part in path).replace(f".{ITEMS}", ITEMS).replace(f".{VALUES}", VALUES) or "the root"
