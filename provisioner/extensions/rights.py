"""What somebody may do with APIs, by the rules that the API server says they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from provisioner.extensions.apis import ExtensionApi
from provisioner.rbac import OwnRules, PolicyRule, allows
from provisioner.values import AccessRequest

# As people read them: what looks before what changes.
VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ANY = "*"
# Nobody lists, makes or deletes these parts of an object.
_PARTS = {"status": ("get", "update", "patch"), "scale": ("get", "update", "patch")}


@dataclass(frozen=True, slots=True)
class HeldVerbs:
    """The verbs that somebody may use on a resource, in their usual order.

    `named` are those for single objects only, by verb. Of `unknown` nobody could say.
    """

    verbs: tuple[str, ...] = ()
    named: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LocalRights:
    """What somebody holds in a namespace ("" for the whole cluster), and what in the whole cluster."""

    namespace: str
    here: OwnRules
    everywhere: OwnRules

    def rules_for(self, api: ExtensionApi) -> OwnRules:
        return self.here if api.is_namespaced else self.everywhere

    def request(self, verb: str, api: ExtensionApi, subresource: str = "") -> AccessRequest:
        namespace = self.namespace if api.is_namespaced else ""
        return AccessRequest(verb, api.group, api.plural, subresource, namespace)


@dataclass(frozen=True, slots=True)
class OwnRights:
    """What somebody may do with each API, by its name, and with its subresources, by both names.

    `unasked` are how many questions nobody asked, and `problem` why there were any.
    """

    apis: Mapping[str, HeldVerbs]
    subresources: Mapping[tuple[str, str], HeldVerbs]
    unasked: int = 0
    problem: str = ""


def open_questions(place: LocalRights, apis: Iterable[ExtensionApi]) -> Iterator[AccessRequest]:
    """What has to be asked one by one, for want of a complete list."""
    for api in apis:
        own = place.rules_for(api)
        for verb in _verbs_of(api, ""):
            request = place.request(verb, api)
            if not own.is_complete and not allows(own.rules, request):
                yield request


def rights_of(place: LocalRights, apis: Iterable[ExtensionApi], answers: Mapping[AccessRequest, bool]) -> OwnRights:
    """What the rules say, and the `answers` to what was asked beside them."""
    wanted = list(apis)
    held = {one.name: _held(place, one, answers) for one in wanted}
    parts = {(one.name, part): _held(place, one, answers, part) for one in wanted for part in one.subresources}
    unasked = sum(len(one.unknown) for one in held.values())
    return OwnRights(held, parts, unasked, place.here.problem or place.everywhere.problem if unasked else "")


def _held(
    place: LocalRights, api: ExtensionApi, answers: Mapping[AccessRequest, bool], subresource: str = ""
) -> HeldVerbs:
    own, verbs = place.rules_for(api), _verbs_of(api, subresource)
    requests = {verb: place.request(verb, api, subresource) for verb in verbs}
    held = [verb for verb in verbs if allows(own.rules, requests[verb]) or answers.get(requests[verb])]
    left = [verb for verb in verbs if verb not in held]
    named = {verb: names for verb in left if (names := _names(own.rules, requests[verb]))}
    unknown = () if own.is_complete else tuple(verb for verb in left if requests[verb] not in answers)
    return HeldVerbs((*held, *(() if subresource else _special(own.rules, place, api))), named, unknown)


def _verbs_of(api: ExtensionApi, subresource: str) -> tuple[str, ...]:
    if subresource:
        return _PARTS.get(subresource, VERBS)
    return tuple(verb for verb in VERBS if verb in api.verbs)


def _names(rules: Iterable[PolicyRule], request: AccessRequest) -> tuple[str, ...]:
    limited = (rule for rule in rules if rule.resource_names)
    fitting = (rule for rule in limited if allows([rule], replace(request, name=rule.resource_names[0])))
    return tuple(sorted({name for rule in fitting for name in rule.resource_names}))


def _special(rules: Iterable[PolicyRule], place: LocalRights, api: ExtensionApi) -> tuple[str, ...]:
    """Verbs of the extension's own making, where a rule names them for this very resource."""
    fitting = [rule for rule in rules if api.plural in rule.resources and not rule.resource_names]
    named = {verb for rule in fitting for verb in rule.verbs if verb not in (ANY, *VERBS)}
    return tuple(verb for verb in sorted(named) if allows(fitting, place.request(verb, api)))
