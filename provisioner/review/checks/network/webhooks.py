"""Admission webhooks: what they see and reach, and whether they can lock the cluster.

What they see is told by their rules and selectors; policies have the same, and reach is compared here for both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

from provisioner import rbac
from provisioner.api_groups import ADMISSION_GROUP
from provisioner.json_values import items, mapping, maps, value_at
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, ReviewRule, StateFacts
from provisioner.review.rights.accounts import bound_accounts
from provisioner.review.rights.renamed_roles import EVERYWHERE
from provisioner.selectors import selects
from provisioner.values import (
    AccessRequest,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectRef,
    Plan,
    Section,
    Severity,
)

_LOCKS = ReviewRule("WH-01", Section.WEBHOOKS, Severity.CRITICAL)
_ALTERS = ReviewRule("WH-02", Section.WEBHOOKS, Severity.DANGEROUS)
_NO_SERVICE = ReviewRule("WH-03", Section.WEBHOOKS, Severity.BREAKING)
_SERVICE_UNKNOWN = ReviewRule("WH-03", Section.WEBHOOKS, Severity.UNKNOWN)
_NO_CA = ReviewRule("WH-04", Section.WEBHOOKS, Severity.BREAKING)
_CA_LATER = ReviewRule("WH-04", Section.WEBHOOKS, Severity.NOTABLE)
_OUTSIDE = ReviewRule("WH-05", Section.WEBHOOKS, Severity.CRITICAL)
_WRONG_FORM = ReviewRule("WH-06", Section.WEBHOOKS, Severity.BREAKING)
_OLD_FORM = ReviewRule("WH-06", Section.WEBHOOKS, Severity.DANGEROUS)
_WIDER = ReviewRule("WH-09", Section.WEBHOOKS, Severity.DANGEROUS)

_MUTATING = GroupKind(ADMISSION_GROUP, "MutatingWebhookConfiguration")
KINDS = frozenset({_MUTATING, GroupKind(ADMISSION_GROUP, "ValidatingWebhookConfiguration")})
_KIND_NAMES = frozenset(kind.kind for kind in KINDS)
SENSITIVE = frozenset({"pods", "secrets", "roles", "clusterroles", "rolebindings", "clusterrolebindings", "*"})
_SERVICE = GroupKind("", "Service")
SYSTEM = "kube-system"
NAME_LABEL = "kubernetes.io/metadata.name"
# Who writes the caBundle later, by annotation of the configuration.
_CA_INJECTORS = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
)
_NARROWING = ("namespaceSelector", "objectSelector", "matchConditions", "matchPolicy", "rules")
_ALL_OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
# Kinds that an older group has as well, with the one they are in today.
_MOVED_FROM = {
    ("extensions", "ingresses"): "networking.k8s.io",
    ("extensions", "networkpolicies"): "networking.k8s.io",
    ("extensions", "daemonsets"): "apps",
    ("extensions", "deployments"): "apps",
    ("extensions", "replicasets"): "apps",
    ("events.k8s.io", "events"): "",
}
Body = Mapping[str, Any]


def find_namespace_labels(state: StateFacts, name: str) -> dict[str, Any]:
    """Return the labels of a namespace as far as they are known: its name, which the API server sets, and its object's.

    What is not known to be there counts as absent, so that a selector that asks for a label lets nothing in.
    """
    return {**state.once("labels of namespaces", _find_labels_by_namespace).get(name, {}), NAME_LABEL: name}


def _find_labels_by_namespace(state: StateFacts) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for ref, obj in state.named:
        if (ref.group, ref.kind) == ("", "Namespace"):
            found.setdefault(ref.name, {}).update(mapping(value_at(obj, "metadata", "labels")))
    return found


def sees_namespace(webhook: Body, labels: Body) -> bool:
    """Whether objects of a namespace with these labels are in its reach."""
    return selects(webhook.get("namespaceSelector"), labels)


def sees_object(webhook: Body, labels: Body) -> bool:
    """Whether an object with these labels is in its reach."""
    return selects(webhook.get("objectSelector"), labels)


def sees_writes(rule: Body) -> bool:
    """Whether a rule is about creating or changing objects."""
    return bool(set(items(rule.get("operations"))) & {"*", "CREATE", "UPDATE"})


def find_lost_reach(
    before: Iterable[Body], after: Iterable[Body], *, is_equivalent: bool = False
) -> list[dict[str, str | list[str]]]:
    """Return what rules of `before` reach and no rule of `after` does, sorted: operation, resource, names of objects.

    `is_equivalent` rules (matchPolicy) are asked about the same objects in whatever version and group.
    """
    now = _find_reach(after)
    if is_equivalent:
        now = {reached.in_any_version for reached in now}
    lost = set()
    for reached in _find_reach(before):
        wanted = reached.in_its_own_group if is_equivalent else reached
        if not any(kept.holds(wanted) for kept in now):
            what = reached.resource if reached.group in {"", "*"} else f"{reached.resource}.{reached.group}"
            lost.add((reached.operation, what, tuple(sorted(reached.names))))
    return [{"operation": operation, "resource": what, "names": [*names]} for operation, what, names in sorted(lost)]


@dataclass(frozen=True, slots=True)
class _Reached:
    """One group, version, resource and operation in the words of a rule, where `*` is all of them.

    `names` are those of the objects that it is limited to, empty for all.
    """

    group: str
    version: str
    resource: str
    operation: str
    scope: str
    names: frozenset[str] = frozenset()

    @property
    def in_its_own_group(self) -> _Reached:
        """The same in the group that has the kind today."""
        plural = self.resource.partition("/")[0]
        return replace(self, group=_MOVED_FROM.get((self.group, plural), self.group))

    @property
    def in_any_version(self) -> _Reached:
        return replace(self.in_its_own_group, version="*")

    def holds(self, other: _Reached) -> bool:
        pairs = ((self.group, other.group), (self.version, other.version))
        has_names = not self.names or (bool(other.names) and other.names <= self.names)
        is_wide = self.operation == other.operation and self.scope in {"*", other.scope} and has_names
        return is_wide and all(own in {"*", its} for own, its in pairs) and has_resource(self.resource, other.resource)


def has_resource(wide: str, resource: str) -> bool:
    """`*` is every resource and no subresource, `*/*` is everything, `pods/*` the subresources of pods."""
    if wide in {"*/*", resource}:
        return True
    plural, _, below = resource.partition("/")
    wide_plural, _, wide_below = wide.partition("/")
    return wide_plural in {"*", plural} and (wide_below == below or (wide_below == "*" and bool(below)))


def _find_reach(rules: Iterable[Body]) -> set[_Reached]:
    found = set()
    for rule in rules:
        scope, names = str(rule.get("scope") or "*"), frozenset(map(str, items(rule.get("resourceNames"))))
        listed = set(map(str, items(rule.get("operations"))))
        operations = _ALL_OPERATIONS if "*" in listed else listed
        groups, versions, resources = (items(rule.get(key)) for key in ("apiGroups", "apiVersions", "resources"))
        for group, version, resource, operation in product(groups, versions, resources, operations):
            found.add(_Reached(str(group), str(version), str(resource), operation, scope, names))
    return found


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a selector asks of one label: `allowed` are its values, None for any; "" stands for nothing asked."""

    allowed: frozenset[str] | None
    refused: frozenset[str]
    presence: str

    def keeps(self, other: _Wanted) -> bool:
        """Whether all that `other` asks is asked here, too."""
        if self.presence == "absent":
            return other.presence != "present"
        if other.presence == "absent":
            return False
        if other.presence and not self.presence:
            return False
        if other.allowed is not None and (self.allowed is None or not self.allowed - self.refused <= other.allowed):
            return False
        values = self.allowed if self.allowed is not None else other.refused
        return not (values & other.refused) - self.refused


_ANYTHING = _Wanted(None, frozenset(), "")


def is_looser(before: object, after: object) -> bool:
    """Whether a label selector no longer asks for something that it asked for."""
    old, new = _find_wanted(mapping(before)), _find_wanted(mapping(after))
    return not all(new.get(key, _ANYTHING).keeps(wanted) for key, wanted in old.items())


def _find_wanted(selector: Body) -> dict[str, _Wanted]:
    terms = [(str(key), "In", [value]) for key, value in mapping(selector.get("matchLabels")).items()]
    terms += [
        (str(term.get("key")), str(term.get("operator")), items(term.get("values")))
        for term in maps(selector.get("matchExpressions"))
    ]
    found: dict[str, _Wanted] = {}
    for key, operator, listed in terms:
        values, known = frozenset(map(str, listed)), found.get(key, _ANYTHING)
        match operator:
            case "In":
                allowed = values if known.allowed is None else known.allowed & values
                found[key] = _Wanted(allowed, known.refused, known.presence or "present")
            case "NotIn":
                found[key] = _Wanted(known.allowed, known.refused | values, known.presence)
            case "Exists":
                found[key] = _Wanted(known.allowed, known.refused, known.presence or "present")
            case "DoesNotExist":
                found[key] = _Wanted(known.allowed, known.refused, "absent")
    return found


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration; `path` leads to it."""

    ref: ObjectRef
    path: FieldPath
    body: Body
    annotations: Body

    @property
    def name(self) -> str:
        return str(self.body.get("name") or self.path[-1])

    @property
    def is_mutating(self) -> bool:
        return self.ref.group_kind == _MUTATING

    @property
    def fails_closed(self) -> bool:
        default = "Ignore" if self.ref.version == "v1beta1" else "Fail"
        return str(self.body.get("failurePolicy") or default) == "Fail"

    @property
    def client(self) -> Body:
        return mapping(self.body.get("clientConfig"))

    @property
    def service(self) -> ObjectRef | None:
        service = mapping(self.client.get("service"))
        if not service:
            return None
        return ObjectRef("", "v1", "Service", str(service.get("namespace") or ""), str(service.get("name") or ""))

    def rules(self) -> list[Body]:
        return maps(self.body.get("rules"))


def find_webhooks(objects: Iterable[JsonObject]) -> Iterator[Webhook]:
    """Yield the webhooks of the configurations among `objects`."""
    for obj in objects:
        if str(obj.get("kind", "")) not in _KIND_NAMES:
            continue
        ref = ObjectRef.of(obj)
        if ref.group_kind in KINDS:
            annotations = mapping(value_at(obj, "metadata", "annotations"))
            for index, body in enumerate(maps(obj.get("webhooks"))):
                yield Webhook(ref, ("webhooks", index), body, annotations)


def judge_webhooks(state: StateFacts) -> Iterator[Finding]:
    services = {ref.identity for ref, _ in state.named if ref.group_kind == _SERVICE}
    webhooks = list(find_webhooks(state.objects))
    for _, group in groupby(webhooks, key=lambda webhook: webhook.ref):
        yield from _judge_trust(group, state)
    for webhook in webhooks:
        ref, path, name, service = webhook.ref, webhook.path, webhook.name, webhook.service
        yield from _judge_reach(webhook, state)
        if url := webhook.client.get("url"):
            where = (*path, "clientConfig", "url")
            yield _OUTSIDE.finding("outside", ref, where=where, key=str(url), webhook=name, url=str(url))
        if ref.version == "v1":
            yield from _judge_form(webhook)
        # A service that nobody has. Where nobody could look it is not known, which is said too.
        if service is None or service.identity in services or state.live.get(service.identity) is not None:
            continue
        is_known, where = service.identity in state.live, (*path, "clientConfig", "service")
        rule, variant = (_NO_SERVICE, "no-service") if is_known else (_SERVICE_UNKNOWN, "service-unknown")
        yield rule.finding(variant, ref, where=where, key=name, webhook=name, service=service)


def _judge_reach(webhook: Webhook, state: StateFacts) -> Iterator[Finding]:
    reached = sorted({str(resource) for rule in webhook.rules() for resource in items(rule.get("resources"))})
    evidence: dict[str, Any] = {"webhook": webhook.name, "resources": reached}
    if webhook.fails_closed and _holds_up_pods(webhook) and (places := _find_locked_namespaces(webhook, state)):
        # Conditions are not evaluated here: they may let pass what its selectors do not.
        variant = "locks-unless-conditions" if webhook.body.get("matchConditions") else "locks"
        params = {**evidence, "namespaces": places}
        yield _LOCKS.finding(variant, webhook.ref, where=webhook.path, key=webhook.name, **params)
    sensitive = sorted({resource.split("/")[0] for resource in reached} & SENSITIVE)
    if webhook.is_mutating and sensitive:
        limits = ("namespaceSelector", "objectSelector", "matchConditions")
        variant = "alters-some" if any(map(webhook.body.get, limits)) else "alters-all"
        key, params = [webhook.name, sensitive], {**evidence, "sensitive": sensitive}
        yield _ALTERS.finding(variant, webhook.ref, where=webhook.path, key=key, **params)


def _holds_up_pods(webhook: Webhook) -> bool:
    """Whether pods, or everything, cannot be created or changed without it."""
    for rule in webhook.rules():
        groups, resources = items(rule.get("apiGroups")), items(rule.get("resources"))
        is_core = "*" in groups or "" in groups
        is_wide = any(resource in {"*", "*/*", "pods", "pods/*"} for resource in resources)
        if is_core and is_wide and sees_writes(rule):
            return str(rule.get("scope", "*")) != "Cluster"
    return False


def _find_locked_namespaces(webhook: Webhook, state: StateFacts) -> list[str]:
    """Return the namespaces in whose pods it counts on itself: where it runs, and the one of the control plane."""
    service = webhook.service
    own = service.namespace if service else state.install_namespace
    objects = state.once("objects by reference", lambda state: dict(reversed(state.named)))
    selector = mapping(value_at(objects.get(service) or {} if service else {}, "spec", "selector"))
    # The pods of the bundle that its service leads to.
    pods = [labels for labels in find_pod_labels(state, service) if selector and selector.items() <= labels.items()]
    places: dict[str, list[Body]] = {own: pods or [{}], SYSTEM: [{}, *(pods if own == SYSTEM else [])]}
    found = []
    for place, labelled in places.items():
        is_seen = any(sees_object(webhook.body, labels) for labels in labelled)
        if is_seen and sees_namespace(webhook.body, find_namespace_labels(state, place)):
            found.append(place)
    return sorted(found)


def find_pod_labels(state: StateFacts, beside: ObjectRef | None) -> list[Body]:
    """Return the labels of every pod and pod template in the namespace of an object."""
    return state.once("labels of pods", _find_labels_of_pods).get(beside.namespace, []) if beside is not None else []


def _find_labels_of_pods(state: StateFacts) -> dict[str, list[Body]]:
    found: dict[str, list[Body]] = {}
    for ref, obj in state.named:
        template = mapping(value_at(obj, "spec", "template")) or obj
        found.setdefault(ref.namespace, []).append(mapping(value_at(template, "metadata", "labels")))
    return found


def _judge_trust(webhooks: Iterable[Webhook], state: StateFacts) -> Iterator[Finding]:
    """Find the webhooks of one configuration that the API server cannot trust as they stand here."""
    bare = []
    for webhook in webhooks:
        is_injected = any(injector in webhook.annotations for injector in _CA_INJECTORS)
        if not (webhook.client.get("url") or webhook.client.get("caBundle") or is_injected):
            bare.append(webhook)
    if not bare:
        return
    ref, names = bare[0].ref, [webhook.name for webhook in bare]
    # Programs that make their own certificate run as an account that the bundle lets change this configuration.
    resource = f"{ref.kind.lower()}s"
    asked = [AccessRequest(verb, ref.group, resource, name=ref.name) for verb in ("update", "patch")]
    accounts = state.once("rules of bound accounts", _find_rules_of_accounts)
    writers = (name for name, rules in accounts if any(rbac.allows_in(rules, request) for request in asked))
    writer, where = next(writers, ""), (*bare[0].path, "clientConfig", "caBundle")
    rule, variant = (_CA_LATER, "written-later") if writer else (_NO_CA, "no-ca-bundle")
    yield rule.finding(variant, ref, where=where, key=names, webhooks=names, writer=writer)


def _find_rules_of_accounts(state: StateFacts) -> list[tuple[str, rbac.EffectiveRules]]:
    known = rbac.RbacObjects.of([*state.objects, *EVERYWHERE])
    accounts = dict.fromkeys(account for _, account in bound_accounts(state.objects))
    return [(f"{who.namespace}/{who.name}", rbac.effective_rules(who.identity, known)) for who in accounts]


def _judge_form(webhook: Webhook) -> Iterator[Finding]:
    ref, name, effects = webhook.ref, webhook.name, webhook.body.get("sideEffects")
    if effects not in ("None", "NoneOnDryRun"):  # a tuple: a bundle may hold anything here
        variant = "no-side-effects" if effects is None else "side-effects"
        where, key = (*webhook.path, "sideEffects"), [name, str(effects)]
        yield _WRONG_FORM.finding(variant, ref, where=where, key=key, webhook=name, effects=effects)
    versions = items(webhook.body.get("admissionReviewVersions"))
    where, key = (*webhook.path, "admissionReviewVersions"), [name, "admissionReviewVersions"]
    if not {"v1", "v1beta1"} & set(map(str, versions)):
        yield _WRONG_FORM.finding("no-review-version", ref, where=where, key=key, webhook=name)
    elif "v1" not in versions:
        yield _OLD_FORM.finding("old-review-version", ref, where=where, key=key, webhook=name)


def compare_webhooks(facts: Facts) -> Iterator[Finding]:
    """Find known webhooks that now see more or refuse where they let pass."""
    former = {
        (webhook.ref.identity, webhook.name): webhook for webhook in find_webhooks(facts.previous_state().objects)
    }
    for webhook in find_webhooks(facts.state().objects):
        before = former.get((webhook.ref.identity, webhook.name))
        if before is None:
            continue
        if webhook.fails_closed and not before.fails_closed:
            where, key = (*webhook.path, "failurePolicy"), [webhook.name, "Fail"]
            yield _WIDER.finding("fails-closed", webhook.ref, where=where, key=key, webhook=webhook.name)
        for field in _NARROWING:
            old, new = before.body.get(field), webhook.body.get(field)
            # A part is wider that no longer holds back all that it held back; what is added to a limit holds back more.
            match field:
                case "rules":
                    is_wider = bool(find_lost_reach(webhook.rules(), before.rules()))
                case "matchPolicy":
                    is_wider = old == "Exact" and new != "Exact"
                case "matchConditions":
                    kept = [condition.get("expression") for condition in maps(new)]
                    is_wider = any(condition.get("expression") not in kept for condition in maps(old))
                case _:
                    is_wider = is_looser(old, new)
            if is_wider:
                evidence = {"before": old, "after": new}
                params, where = {"webhook": webhook.name, "field": field, **evidence}, (*webhook.path, field)
                yield _WIDER.finding("sees-more", webhook.ref, where=where, key=[webhook.name, evidence], **params)


def want_called_services(content: Content, _: Plan) -> list[ObjectRef]:
    """Want the services that webhooks call and that the bundle does not bring."""
    brought = {manifest.ref.identity for manifest in content.manifests}
    called = {webhook.service for webhook in find_webhooks(manifest.body for manifest in content.manifests)}
    return sorted(ref for ref in called if ref is not None and ref.identity not in brought and ref.name)


_CLAIMS = (
    Claim("WH-05", KINDS, ("webhooks.*.clientConfig.url",)),
    Claim("WH-06", KINDS, ("webhooks.*.sideEffects",)),
    Claim(
        "WH-06",
        KINDS,
        ("webhooks.*.admissionReviewVersions",),
        harmless="To understand more versions of reviews, v1 among them, is what the rule asks for",
    ),
)

CHECK = Check("webhooks", claims=_CLAIMS, changes=compare_webhooks, standing=judge_webhooks, wants=want_called_services)
