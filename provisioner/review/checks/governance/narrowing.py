"""What a webhook or an admission policy is no longer asked about: narrower rules, selectors and conditions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provisioner.review.base.facts import ReviewRule, maps
from provisioner.review.checks.network.webhook_reach import is_looser, no_longer_seen

Body = Mapping[str, Any]
Path = tuple[str | int, ...]
EVERYTHING: Body = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}
_SELECTORS = {"namespaceSelector": "namespaces-left-out", "objectSelector": "objects-left-out"}


@dataclass(frozen=True, slots=True)
class Weakening:
    """One way in which an admission object changes, as a variant of `rule`, which says how bad that is.

    `shown` is what its message shows, `evidence` what else is known of it.
    """

    rule: ReviewRule
    path: Path
    variant: str
    shown: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        return {**self.shown, **self.evidence}


@dataclass(frozen=True, slots=True)
class Limits:
    """What limits an admission object, with the rules that say how bad it is if that narrows, or just changes.

    `rules` is the field with its rules; with none in it, it is asked about everything where `is_open`.
    """

    narrower: ReviewRule
    changed: ReviewRule
    rules: str
    is_open: bool = False

    def narrowed(self, before: Body, after: Body, path: Path = ()) -> Iterator[Weakening]:
        """In which ways `after` is asked about less than `before`; `path` leads to both."""
        is_equivalent = after.get("matchPolicy") != "Exact"
        lost = no_longer_seen(self._rules(before), self._rules(after), is_equivalent=is_equivalent)
        if lost:
            yield Weakening(self.narrower, (*path, self.rules), "sees-less", {"no_longer_seen": lost})
        excluded = no_longer_seen(*(maps(one.get("excludeResourceRules")) for one in (after, before)))
        if excluded:
            yield Weakening(self.narrower, (*path, "excludeResourceRules"), "left-out", {"left_out": excluded})
        for key, variant in _SELECTORS.items():
            if is_looser(after.get(key), before.get(key)):
                yield Weakening(self.narrower, (*path, key), variant, evidence=_both(key, before, after))
        if "Exact" == after.get("matchPolicy") != before.get("matchPolicy"):
            evidence = _both("matchPolicy", before, after)
            yield Weakening(self.narrower, (*path, "matchPolicy"), "versions-left-out", evidence=evidence)

    def conditions(self, before: Body, after: Body, path: Path = ()) -> Iterator[Weakening]:
        """Conditions that were not there: each of them has to hold, so what it does not hold for passes."""
        added, gone = difference(before, after, "matchConditions")
        if added:
            variant, evidence = "other-conditions" if gone else "new-conditions", {"added": added, "gone": gone}
            yield Weakening(self.narrower, (*path, "matchConditions"), variant, evidence=evidence)

    def widened(self, before: Body, after: Body, path: Path = ()) -> Iterator[Weakening]:
        """The other way round, for whatever has no rule of its own about that."""
        for one in Limits(self.changed, self.changed, self.rules, self.is_open).narrowed(after, before, path):
            evidence = _both(str(one.path[-1]), before, after)
            yield Weakening(one.rule, one.path, "sees-more", evidence=evidence)

    def _rules(self, body: Body) -> Sequence[Body]:
        return maps(body.get(self.rules)) or ([EVERYTHING] if self.is_open else [])


def difference(before: Body, after: Body, key: str, part: str = "expression") -> tuple[list[str], list[str]]:
    """The expressions of a list that came and those that went, in their order."""
    old, new = ([str(one.get(part)) for one in maps(side.get(key))] for side in (before, after))
    return list((Counter(new) - Counter(old)).elements()), list((Counter(old) - Counter(new)).elements())


def _both(key: str, before: Body, after: Body) -> dict[str, Any]:
    return {"before": before.get(key), "after": after.get(key)}
