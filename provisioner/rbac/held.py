"""Which of many rules cover a rule, decided list by list, so that no rule has to be broken into its atoms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_, or_
from typing import Any

from provisioner.errors import TooManyRights
from provisioner.rbac.policy import ANY, PolicyRule

# To cut a part is to look at all its entries once for each rule that holds some of it: 0.1 s for this many.
MAX_LOOKS = 200_000
# A set of rules is a number of as many bits: with this many rules on both sides a comparison takes some seconds.
MAX_RULES = 20_000
_AXES = ("verbs", "api_groups", "resources", "resource_names", "non_resource_urls")
_Mask = Callable[[str], int]


class HeldRules:
    """Rules, found by what stands in them. A set of rules is a number: bit n is the rule at place n.

    One rule covers an atom where each of its lists does. So whether one rule covers all atoms of another, or any of
    them, is told from the lists alone. Raises TooManyRights past MAX_RULES.
    """

    def __init__(self, rules: Iterable[PolicyRule]):
        self.rules: Sequence[PolicyRule] = list(rules)
        if len(self.rules) > MAX_RULES:
            raise TooManyRights(
                f"found {len(self.rules)} rules to compare, allowed are {MAX_RULES}: grant the same in fewer rules",
                found=len(self.rules),
            )
        self._by: dict[str, dict[str, int]] = {axis: {} for axis in _AXES}
        self._unnamed, self._prefixes = 0, dict[str, int]()
        for place, rule in enumerate(self.rules):
            bit = 1 << place
            if not rule.resource_names:
                self._unnamed |= bit
            for axis, known in self._by.items():
                for value in set(getattr(rule, axis)):
                    known[value] = known.get(value, 0) | bit
        for url, bits in self._by["non_resource_urls"].items():
            if url.endswith(ANY):
                prefix = url.rstrip(ANY)
                self._prefixes[prefix] = self._prefixes.get(prefix, 0) | bits
        self._lengths = sorted({len(prefix) for prefix in self._prefixes})

    def covering(self, part: PolicyRule) -> int:
        """The rules that alone cover every atom of `part`, which is of resources or of URLs only."""
        return self._combined(part, and_)

    def sharing(self, rule: PolicyRule) -> int:
        """The rules that cover at least one atom of `rule`."""
        return reduce(or_, (self._combined(part, or_) for part in parts(rule)), 0)

    def at(self, places: int) -> Iterator[PolicyRule]:
        """The rules of the set `places`."""
        return (self.rules[place] for place in bits_of(places))

    def has(self, axis: str, value: str) -> bool:
        """Whether any of the rules covers the entry `value` of the list `axis`."""
        masks = {
            "verbs": self._verb,
            "api_groups": self._group,
            "resources": self._resource,
            "resource_names": self._name_or_all,
            "non_resource_urls": self._url,
        }
        return bool(masks[axis](value))

    def _combined(self, part: PolicyRule, both: Callable[[int, int], int]) -> int:
        found = self._of(part.verbs, self._verb, both)
        if part.non_resource_urls:
            return found & self._unnamed & self._of(part.non_resource_urls, self._url, both)
        found &= self._of(part.api_groups, self._group, both) & self._of(part.resources, self._resource, both)
        if not part.resource_names:
            return found & self._unnamed
        return found & self._of(part.resource_names, self._name_or_all, both)

    @staticmethod
    def _of(values: tuple[str, ...], mask: _Mask, both: Callable[[int, int], int]) -> int:
        return reduce(both, (mask(value) for value in values))

    def _verb(self, verb: str) -> int:
        return self._by["verbs"].get(verb, 0) | self._by["verbs"].get(ANY, 0)

    def _group(self, group: str) -> int:
        return self._by["api_groups"].get(group, 0) | self._by["api_groups"].get(ANY, 0)

    def _name_or_all(self, name: str) -> int:
        return self._by["resource_names"].get(name, 0) | self._unnamed

    def _resource(self, resource: str) -> int:
        known = self._by["resources"]
        _, slash, subresource = resource.partition("/")
        anyones = known.get(f"{ANY}/{subresource}", 0) if slash else 0
        return known.get(resource, 0) | known.get(ANY, 0) | anyones

    def _url(self, url: str) -> int:
        exact = self._by["non_resource_urls"].get(url, 0)
        begun = (self._prefixes.get(url[:length], 0) for length in self._lengths if length <= len(url))
        return reduce(or_, begun, exact)


def remainder(held: HeldRules, servant: Iterable[PolicyRule], *, is_cut: bool) -> list[PolicyRule]:
    """The parts of `servant` that `held` does not cover.

    Without `is_cut` a part that is covered but for a few atoms stays whole. With it only these are left; raises
    TooManyRights where that takes more than MAX_LOOKS.
    """
    left = [part for rule in servant for part in parts(rule) if not held.covering(part)]
    if is_cut:
        looks = [0]
        left = [piece for part in dict.fromkeys(left) for piece in _pieces(held, part, looks)]
    return left


def parts(rule: PolicyRule) -> list[PolicyRule]:
    """What of `rule` has atoms: its resources, its URLs, or both apart."""
    found = []
    if rule.verbs and rule.api_groups and rule.resources:
        found.append(replace(rule, non_resource_urls=()) if rule.non_resource_urls else rule)
    if rule.verbs and rule.non_resource_urls:
        found.append(PolicyRule(rule.verbs, non_resource_urls=rule.non_resource_urls))
    return found


def size(rule: PolicyRule) -> int:
    """The number of atoms of `rule`, told without making them."""
    named = len(rule.api_groups) * len(rule.resources) * (len(rule.resource_names) or 1)
    return len(rule.verbs) * (named + len(rule.non_resource_urls))


def atoms_of(rules: Iterable[PolicyRule]) -> int:
    return sum(size(rule) for rule in rules)


def bits_of(places: int) -> Iterator[int]:
    while places:
        lowest = places & -places
        yield lowest.bit_length() - 1
        places ^= lowest


def _pieces(held: HeldRules, part: PolicyRule, looks: list[int]) -> list[PolicyRule]:
    """`part` without what any rule of `held` covers: each rule cuts every piece once along each list."""
    pieces = [part]
    for place in bits_of(held.sharing(part)):
        one = HeldRules([held.rules[place]])
        looks[0] += sum(len(getattr(piece, axis)) for piece in pieces for axis in _AXES)
        if looks[0] > MAX_LOOKS:
            raise TooManyRights(
                f"a rule of {size(part)} single rights is held in too many pieces to be compared: "
                f"found more than {MAX_LOOKS} entries to look at, allowed are {MAX_LOOKS}; write fewer and wider rules",
                found=size(part),
            )
        pieces = [left for piece in pieces for left in _cut(one, piece)]
    return pieces


def _cut(one: HeldRules, piece: PolicyRule) -> Iterator[PolicyRule]:
    """What of `piece` the one rule does not cover."""
    if not one.sharing(piece):
        yield piece
        return
    for axis in _AXES:
        values: tuple[str, ...] = getattr(piece, axis)
        inside = tuple(value for value in values if one.has(axis, value))
        if len(inside) < len(values):
            yield _with(piece, axis, tuple(value for value in values if not one.has(axis, value)))
        piece = _with(piece, axis, inside)


def _with(rule: PolicyRule, axis: str, values: tuple[str, ...]) -> PolicyRule:
    changed: dict[str, Any] = {axis: values}
    return replace(rule, **changed)
