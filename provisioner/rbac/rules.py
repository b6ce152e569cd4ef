"""What a list of RBAC rules permits, as the Kubernetes API server decides it, and which rules cover others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from types import MappingProxyType
from typing import Any

from provisioner.errors import InvalidManifest, TooManyRights
from provisioner.values import AccessRequest, object_in

ANY = "*"
FIELDS = {
    "api_groups": "apiGroups",
    "resources": "resources",
    "non_resource_urls": "nonResourceURLs",
    "resource_names": "resourceNames",
    "verbs": "verbs",
}


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a Role or ClusterRole; an empty tuple means what an absent list means to Kubernetes."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()

    @classmethod
    def from_object(cls, obj: Mapping[str, Any]) -> PolicyRule:
        """The rule as a manifest writes it.

        Raises InvalidManifest where a list of strings is something else: what such a rule grants cannot be told.
        """
        rule = object_in(obj, "a rule")
        return cls(**{name: _read_strings(rule, key) for name, key in FIELDS.items()})

    def to_object(self) -> dict[str, list[str]]:
        """The rule as a manifest writes it, empty lists left out but for `verbs`."""
        lists = {key: list(getattr(self, name)) for name, key in FIELDS.items()}
        return {key: values for key, values in lists.items() if values or key == "verbs"}

    def __str__(self) -> str:
        """The form of the API server's escalation messages."""
        parts = [
            f"{name}:[{' '.join(json.dumps(value, ensure_ascii=False) for value in values)}]"
            for name, values in (
                ("APIGroups", self.api_groups),
                ("Resources", self.resources),
                ("NonResourceURLs", self.non_resource_urls),
                ("ResourceNames", self.resource_names),
                ("Verbs", self.verbs),
            )
            if values
        ]
        return "{" + ", ".join(parts) + "}"


@dataclass(frozen=True, slots=True)
class OwnRules:
    """What somebody holds at one place, as the API server says. Where it is not `is_complete`, an authorizer could not
    list what it allows; `problem` says which."""

    rules: tuple[PolicyRule, ...]
    is_complete: bool = True
    problem: str = ""


FULL_AUTHORITY = (
    PolicyRule(verbs=(ANY,), api_groups=(ANY,), resources=(ANY,)),
    PolicyRule(verbs=(ANY,), non_resource_urls=(ANY,)),
)


def _read_strings(obj: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = obj.get(key)
    if values is None:
        return ()
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise InvalidManifest(f"{key} of a rule must be a list of strings, found {values!r}")
    return tuple(values)


# One atom takes about 40 microseconds to compare, to join and to show; the largest role that Kubernetes itself has is
# some hundred atoms. What is covered as a whole, or in pieces, does not count.
MAX_ATOMS = 10_000


@dataclass(frozen=True, slots=True)
class Coverage:
    """Whether one list of rules holds all that another grants; `missing` has one rule for each resource not covered."""

    covered: bool
    missing: tuple[PolicyRule, ...] = ()

    def __bool__(self) -> bool:
        return self.covered


def breakdown(rule: PolicyRule) -> list[PolicyRule]:
    """The atoms of `rule`: one group, resource, verb and at most one name each, or one URL and verb.

    A rule without verbs, groups or resources grants nothing and has no atoms.
    """
    named: tuple[tuple[str, ...], ...] = tuple((name,) for name in rule.resource_names) or ((),)
    atoms = [
        PolicyRule(verbs=(verb,), api_groups=(group,), resources=(resource,), resource_names=names)
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        for names in named
    ]
    atoms += [
        PolicyRule(verbs=(verb,), non_resource_urls=(url,)) for url in rule.non_resource_urls for verb in rule.verbs
    ]
    return atoms


def covers(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> Coverage:
    """Whether `owner` holds every right that `servant` grants, by the API server's escalation check.

    An atom must be covered by one owner rule alone, and a wildcard only by a wildcard: all verbs listed are not `*`.
    What a rule covers as a whole is never broken down. Raises TooManyRights where more than MAX_ATOMS are left.
    """
    held, wanted = HeldRules(owner), list(servant)
    missing = [atom for part in left_over(held, wanted) for atom in breakdown(part) if not held.covering(atom)]
    return Coverage(not missing, tuple(_join_verbs(missing)))


def holds(owner: Iterable[PolicyRule], servant: Iterable[PolicyRule]) -> bool:
    """What `covers` says, without what is missing, so that the number of rights does not count."""
    return not remainder(HeldRules(owner), servant, is_cut=True)


def left_over(held: HeldRules, servant: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of `servant` that `covers` has to break down; raises TooManyRights past MAX_ATOMS."""
    wanted = list(servant)
    left = remainder(held, wanted, is_cut=False)
    if atoms_of(left) > MAX_ATOMS:
        left = remainder(held, wanted, is_cut=True)
    _refuse_too_many(left)
    return left


def allows(rules: Iterable[PolicyRule], request: AccessRequest) -> bool:
    """Whether one of `rules` permits `request`; where the rules apply is the caller's to know."""
    return any(allows_by(rule, request) for rule in rules)


def allows_by(rule: PolicyRule, request: AccessRequest) -> bool:
    """Whether this one rule permits `request`."""
    if not _has(rule.verbs, request.verb):
        return False
    if request.path:
        return any(
            url in (ANY, request.path) or (url.endswith(ANY) and request.path.startswith(url.rstrip(ANY)))
            for url in rule.non_resource_urls
        )
    resource, part = request.resource, request.subresource
    is_held = _has(rule.resources, f"{resource}/{part}" if part else resource)
    is_held = is_held or bool(part and f"{ANY}/{part}" in rule.resources)
    if not _has(rule.api_groups, request.group) or not is_held:
        return False
    return not rule.resource_names or request.name in rule.resource_names


def compact(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The same rights in few rules: atoms covered by another atom dropped, verbs of one resource joined, sorted.

    Raises TooManyRights past MAX_ATOMS.
    """
    widest = _find_widest(rules)
    _refuse_too_many(widest)
    atoms = sorted({atom for part in widest for atom in breakdown(part)}, key=_rank_width)
    kept = _find_widest(atoms)
    joined: dict[tuple[Any, ...], list[str]] = {}
    for atom in kept:
        key = (atom.api_groups, atom.resources, atom.resource_names, atom.non_resource_urls)
        joined.setdefault(key, []).append(atom.verbs[0])
    return [
        PolicyRule(tuple(sorted(verbs)), groups, resources, names, urls)
        for (groups, resources, names, urls), verbs in sorted(joined.items())
    ]


def minimal(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """Exactly the same rights in as few rules as people would write: names, resources, groups and URLs joined, too.

    Raises TooManyRights past MAX_ATOMS, but for one rule alone, which needs no breaking down.
    """
    widest = _find_widest(rules)
    if len(widest) == 1:
        # `part` with each list sorted, and without the entries that another entry of the list covers.
        part = widest[0]
        lists = {}
        for name in FIELDS:
            one = {value: _with_list(part, name, (value,)) for value in getattr(part, name)}
            lists[name] = tuple(sorted(getattr(rule, name)[0] for rule in _find_widest(one.values()))) if one else ()
        return [PolicyRule(**lists)]
    found = compact(widest)
    for field in ("resource_names", "resources", "api_groups", "non_resource_urls"):
        # Rules that differ in `field` only, as one. An empty list is another thing than a listed one, and stays apart.
        joined: dict[PolicyRule, set[str]] = {}
        alone: list[PolicyRule] = []
        for rule in found:
            values = getattr(rule, field)
            if values:
                joined.setdefault(_with_list(rule, field, ()), set()).update(values)
            else:
                alone.append(rule)
        found = [*alone, *(_with_list(rule, field, tuple(sorted(values))) for rule, values in joined.items())]
    return sorted(
        found, key=lambda rule: (rule.non_resource_urls, rule.api_groups, rule.resources, rule.resource_names)
    )


def _find_widest(rules: Iterable[PolicyRule]) -> list[PolicyRule]:
    """The parts of `rules` that no other part covers as a whole; of two that cover each other the first."""
    known = list(dict.fromkeys(part for rule in rules for part in parts(rule)))
    held = HeldRules(known)
    left = (1 << len(known)) - 1
    for place, part in enumerate(known):
        if held.covering(part) & left & ~(1 << place):
            left &= ~(1 << place)
    return list(held.at(left))


def _refuse_too_many(left: list[PolicyRule]) -> None:
    found = atoms_of(left)
    if found > MAX_ATOMS:
        raise TooManyRights(
            f"found {found} single rights (verb, group, resource and name) to compare one by one, "
            f"allowed are {MAX_ATOMS}: grant fewer in one rule, or split the role",
            found=found,
        )


def _with_list(rule: PolicyRule, field: str, values: tuple[str, ...]) -> PolicyRule:
    lists = {name: getattr(rule, name) for name in FIELDS}
    return PolicyRule(**{**lists, field: values})


def _rank_width(atom: PolicyRule) -> tuple[int, int, PolicyRule | str]:
    """Wide atoms first, so that each narrower one is held against all that may cover it."""
    texts = (*atom.verbs, *atom.api_groups, *atom.resources, *atom.non_resource_urls)
    wildcards = sum(text == ANY for text in texts) * 2 + sum(ANY in text and text != ANY for text in texts)
    return (-wildcards, len(atom.resource_names), str(atom))


def _join_verbs(atoms: list[PolicyRule]) -> list[PolicyRule]:
    """Atoms that differ only by verb joined in order of appearance; URL atoms stay alone and stand first."""
    joined: dict[tuple[Any, ...], PolicyRule] = {}
    for atom in atoms:
        if atom.non_resource_urls:
            continue
        key = (atom.api_groups, atom.resources, atom.resource_names)
        known = joined.get(key)
        joined[key] = replace(known, verbs=known.verbs + atom.verbs) if known else atom
    return [*(atom for atom in atoms if atom.non_resource_urls), *joined.values()]


def _has(values: tuple[str, ...], wanted: str) -> bool:
    return ANY in values or wanted in values


# Read from the discovery of a 1.36.3 API server. Beside what is served: what only authorizers know (users, signers and
# the like), and what is off by default.
_RESOURCES = {
    "": "bindings componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims "
    "persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services "
    "users groups",
    "admissionregistration.k8s.io": "mutatingadmissionpolicies mutatingadmissionpolicybindings "
    "mutatingwebhookconfigurations validatingadmissionpolicies validatingadmissionpolicybindings "
    "validatingwebhookconfigurations",
    "apiextensions.k8s.io": "customresourcedefinitions",
    "apiregistration.k8s.io": "apiservices",
    "apps": "controllerrevisions daemonsets deployments replicasets statefulsets",
    "authentication.k8s.io": "groups nodes selfsubjectreviews serviceaccounts tokenreviews uids userextras users",
    "authorization.k8s.io": "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews "
    "subjectaccessreviews",
    "autoscaling": "horizontalpodautoscalers",
    "batch": "cronjobs jobs",
    "certificates.k8s.io": "certificatesigningrequests clustertrustbundles podcertificaterequests signers",
    "coordination.k8s.io": "leasecandidates leases",
    "discovery.k8s.io": "endpointslices",
    "events.k8s.io": "events",
    "extensions": "",
    "flowcontrol.apiserver.k8s.io": "flowschemas prioritylevelconfigurations",
    "networking.k8s.io": "ingressclasses ingresses ipaddresses networkpolicies servicecidrs",
    "node.k8s.io": "runtimeclasses",
    "policy": "poddisruptionbudgets podsecuritypolicies",
    "rbac.authorization.k8s.io": "clusterrolebindings clusterroles rolebindings roles",
    "scheduling.k8s.io": "priorityclasses",
    "storage.k8s.io": "csidrivers csinodes csistoragecapacities storageclasses volumeattachments "
    "volumeattributesclasses",
}
BUILT_IN_RESOURCES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {group: tuple(names.split()) for group, names in _RESOURCES.items()}
)

# Without namespaces: a request for one of those counts as made in it.
_CLUSTER_SCOPED = (
    "apiservices certificatesigningrequests clusterrolebindings clusterroles clustertrustbundles componentstatuses "
    "csidrivers csinodes customresourcedefinitions flowschemas ingressclasses ipaddresses mutatingadmissionpolicies "
    "mutatingadmissionpolicybindings mutatingwebhookconfigurations nodes persistentvolumes priorityclasses "
    "prioritylevelconfigurations runtimeclasses servicecidrs signers storageclasses validatingadmissionpolicies "
    "validatingadmissionpolicybindings validatingwebhookconfigurations volumeattachments "
    "volumeattributesclasses"
)
CLUSTER_SCOPED = frozenset(_CLUSTER_SCOPED.split())


def plural_of(kind: str) -> str:
    """The resource of a built-in kind; for other kinds a guess, as Kubernetes' own tools make it.

    Raises InvalidManifest for a kind that is no text.
    """
    if not isinstance(kind, str):
        raise InvalidManifest(f"a kind: expected a text, found {kind!r}")
    word = kind.lower()
    if word.endswith("endpoints"):
        return word
    if word.endswith("s"):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


def nowhere(rule: PolicyRule) -> list[str]:
    """The resources of `rule` that none of its API groups has; of groups that are not Kubernetes' own nobody knows."""
    if any(group not in BUILT_IN_RESOURCES for group in rule.api_groups):
        return []
    known = {name for group in rule.api_groups for name in BUILT_IN_RESOURCES[group]}
    return [name for name in rule.resources if ANY not in name and name.partition("/")[0] not in known]


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
        left = [piece for part in dict.fromkeys(left) for piece in _cut_pieces(held, part, looks)]
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


def _cut_pieces(held: HeldRules, part: PolicyRule, looks: list[int]) -> list[PolicyRule]:
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
            yield _add_place(piece, axis, tuple(value for value in values if not one.has(axis, value)))
        piece = _add_place(piece, axis, inside)


def _add_place(rule: PolicyRule, axis: str, values: tuple[str, ...]) -> PolicyRule:
    changed: dict[str, Any] = {axis: values}
    return replace(rule, **changed)
