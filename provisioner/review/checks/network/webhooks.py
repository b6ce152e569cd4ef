"""Admission webhooks: what they reach, and whether they can lock the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from provisioner import rbac
from provisioner.api_groups import ADMISSION_GROUP
from provisioner.review.base.claims import Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, items, mapping, maps
from provisioner.review.checks.network.webhook_reach import (
    SYSTEM,
    is_looser,
    namespace_labels,
    sees_more,
    sees_namespace,
    sees_object,
    sees_writes,
)
from provisioner.review.rights.accounts import bound_accounts
from provisioner.review.rights.renamed_roles import EVERYWHERE
from provisioner.values import (
    AccessRequest,
    Content,
    Finding,
    GroupKind,
    JsonObject,
    ObjectIdentity,
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
_KIND_NAMES = frozenset(one.kind for one in KINDS)
_SENSITIVE = frozenset({"pods", "secrets", "roles", "clusterroles", "rolebindings", "clusterrolebindings", "*"})
_SERVICE = GroupKind("", "Service")
# Who writes the caBundle later, by annotation of the configuration.
_CA_INJECTORS = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
)
_NARROWING = ("namespaceSelector", "objectSelector", "matchConditions", "matchPolicy", "rules")


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook of a configuration; `path` leads to it."""

    ref: ObjectRef
    path: tuple[str | int, ...]
    body: Mapping[str, Any]
    annotations: Mapping[str, Any]

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
    def client(self) -> Mapping[str, Any]:
        return mapping(self.body.get("clientConfig"))

    @property
    def service(self) -> ObjectRef | None:
        service = mapping(self.client.get("service"))
        if not service:
            return None
        return ObjectRef("", "v1", "Service", str(service.get("namespace") or ""), str(service.get("name") or ""))

    def rules(self) -> list[Mapping[str, Any]]:
        return maps(self.body.get("rules"))


def webhooks_of(objects: Iterable[JsonObject]) -> Iterator[Webhook]:
    """The webhooks of the configurations among `objects`."""
    for obj in objects:
        if str(obj.get("kind", "")) not in _KIND_NAMES:
            continue
        ref = ObjectRef.of(obj)
        if ref.group_kind in KINDS:
            annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
            for index, body in enumerate(maps(obj.get("webhooks"))):
                yield Webhook(ref, ("webhooks", index), body, annotations)


def _standing(state: StateFacts) -> Iterator[Finding]:
    services = {ref.identity for ref, _ in state.named if ref.group_kind == _SERVICE}
    webhooks = list(webhooks_of(state.objects))
    for _, group in groupby(webhooks, key=lambda one: one.ref):
        yield from _of_trust(list(group), state)
    for webhook in webhooks:
        yield from _of_reach(webhook, state)
        yield from _of_client(webhook)
        yield from _of_form(webhook)
        yield from _of_service(webhook, services, state)


def _of_reach(webhook: Webhook, state: StateFacts) -> Iterator[Finding]:
    reached = sorted({str(one) for rule in webhook.rules() for one in items(rule.get("resources"))})
    evidence: dict[str, Any] = {"webhook": webhook.name, "resources": reached}
    locked = _locked_places(webhook, state) if webhook.fails_closed and _touches_start_up(webhook) else []
    if locked:
        # Conditions are not evaluated here: they may let pass what its selectors do not.
        variant = "locks-unless-conditions" if webhook.body.get("matchConditions") else "locks"
        params = {**evidence, "namespaces": locked}
        yield _LOCKS.finding(variant, webhook.ref, where=webhook.path, key=webhook.name, **params)
    sensitive = sorted({one.split("/")[0] for one in reached} & _SENSITIVE)
    if webhook.is_mutating and sensitive:
        limits = ("namespaceSelector", "objectSelector", "matchConditions")
        variant = "alters-some" if any(map(webhook.body.get, limits)) else "alters-all"
        key, params = [webhook.name, sensitive], {**evidence, "sensitive": sensitive}
        yield _ALTERS.finding(variant, webhook.ref, where=webhook.path, key=key, **params)


def _touches_start_up(webhook: Webhook) -> bool:
    """Whether pods, or everything, cannot be created or changed without it."""
    for rule in webhook.rules():
        groups, resources = items(rule.get("apiGroups")), items(rule.get("resources"))
        is_core = "*" in groups or "" in groups
        is_wide = any(one in {"*", "*/*", "pods", "pods/*"} for one in resources)
        if is_core and is_wide and sees_writes(rule):
            return str(rule.get("scope", "*")) != "Cluster"
    return False


def _locked_places(webhook: Webhook, state: StateFacts) -> list[str]:
    """The namespaces in whose pods it counts on itself: where it runs itself, and the one of the control plane."""
    own = webhook.service.namespace if webhook.service else state.install_namespace
    bodies = _own_pods(webhook, state)
    places = {own: bodies or [{}], SYSTEM: [{}, *(bodies if own == SYSTEM else [])]}
    return sorted(
        place
        for place, labels in places.items()
        if sees_namespace(webhook.body, namespace_labels(state, place))
        and any(sees_object(webhook.body, one) for one in labels)
    )


def _own_pods(webhook: Webhook, state: StateFacts) -> list[Mapping[str, Any]]:
    """The labels of the pods of the bundle that its service leads to."""
    service = state.once("objects by reference", _by_reference).get(webhook.service) if webhook.service else None
    selector = mapping(mapping((service or {}).get("spec")).get("selector"))
    return [labels for labels in pod_labels(state, webhook.service) if selector and selector.items() <= labels.items()]


def _by_reference(state: StateFacts) -> dict[ObjectRef, JsonObject]:
    return dict(reversed(state.named))


def pod_labels(state: StateFacts, beside: ObjectRef | None) -> list[Mapping[str, Any]]:
    """The labels of every pod and pod template in the namespace of an object."""
    return state.once("labels of pods", _labels_of_pods).get(beside.namespace, []) if beside is not None else []


def _labels_of_pods(state: StateFacts) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for ref, obj in state.named:
        template = mapping(mapping(obj.get("spec")).get("template")) or obj
        found.setdefault(ref.namespace, []).append(mapping(mapping(template.get("metadata")).get("labels")))
    return found


def _of_client(webhook: Webhook) -> Iterator[Finding]:
    if url := webhook.client.get("url"):
        where = (*webhook.path, "clientConfig", "url")
        yield _OUTSIDE.finding("outside", webhook.ref, where=where, key=str(url), webhook=webhook.name, url=str(url))


def _of_trust(webhooks: Sequence[Webhook], state: StateFacts) -> Iterator[Finding]:
    """The webhooks of one configuration that the API server cannot trust as they stand here."""
    bare = [
        one
        for one in webhooks
        if not one.client.get("url")
        and not one.client.get("caBundle")
        and not any(injector in one.annotations for injector in _CA_INJECTORS)
    ]
    if not bare:
        return
    first, names = bare[0], [one.name for one in bare]
    writer, where = _writer_of(first.ref, state), (*first.path, "clientConfig", "caBundle")
    rule, variant = (_CA_LATER, "written-later") if writer else (_NO_CA, "no-ca-bundle")
    yield rule.finding(variant, first.ref, where=where, key=names, webhooks=names, writer=writer)


def _writer_of(ref: ObjectRef, state: StateFacts) -> str:
    """An account that the bundle lets change this configuration, as programs do that make their own certificate."""
    resource = f"{ref.kind.lower()}s"
    asked = [AccessRequest(verb, ref.group, resource, name=ref.name) for verb in ("update", "patch")]
    for name, rules in state.once("rules of bound accounts", _rules_of_accounts):
        if any(rbac.allows_in(rules, one) for one in asked):
            return name
    return ""


def _rules_of_accounts(state: StateFacts) -> list[tuple[str, rbac.EffectiveRules]]:
    known = rbac.RbacObjects.of([*state.objects, *EVERYWHERE])
    accounts = dict.fromkeys(account for _, account in bound_accounts(state.objects))
    return [(f"{one.namespace}/{one.name}", rbac.effective_rules(one.identity, known)) for one in accounts]


def _of_form(webhook: Webhook) -> Iterator[Finding]:
    if webhook.ref.version != "v1":
        return
    effects, name = webhook.body.get("sideEffects"), webhook.name
    if effects not in ("None", "NoneOnDryRun"):  # a tuple: a bundle may hold anything here
        variant = "no-side-effects" if effects is None else "side-effects"
        where, key = (*webhook.path, "sideEffects"), [name, str(effects)]
        yield _WRONG_FORM.finding(variant, webhook.ref, where=where, key=key, webhook=name, effects=effects)
    versions = items(webhook.body.get("admissionReviewVersions"))
    where, key = (*webhook.path, "admissionReviewVersions"), [name, "admissionReviewVersions"]
    if not {"v1", "v1beta1"} & set(map(str, versions)):
        yield _WRONG_FORM.finding("no-review-version", webhook.ref, where=where, key=key, webhook=name)
    elif "v1" not in versions:
        yield _OLD_FORM.finding("old-review-version", webhook.ref, where=where, key=key, webhook=name)


def _of_service(webhook: Webhook, services: set[ObjectIdentity], state: StateFacts) -> Iterator[Finding]:
    """A service that nobody has. Where nobody could look it is not known, which is said too."""
    service = webhook.service
    if service is None or service.identity in services:
        return
    is_known, name, where = service.identity in state.live, webhook.name, (*webhook.path, "clientConfig", "service")
    if state.live.get(service.identity) is None:
        rule, variant = (_NO_SERVICE, "no-service") if is_known else (_SERVICE_UNKNOWN, "service-unknown")
        yield rule.finding(variant, webhook.ref, where=where, key=name, webhook=name, service=service)


def _changes(facts: Facts) -> Iterator[Finding]:
    """Known webhooks that now see more or refuse where they let pass."""
    old = {(one.ref.identity, one.name): one for one in webhooks_of(facts.previous_state().objects)}
    for webhook in webhooks_of(facts.state().objects):
        before = old.get((webhook.ref.identity, webhook.name))
        if before is None:
            continue
        if webhook.fails_closed and not before.fails_closed:
            where, key = (*webhook.path, "failurePolicy"), [webhook.name, "Fail"]
            yield _WIDER.finding("fails-closed", webhook.ref, where=where, key=key, webhook=webhook.name)
        for field in _NARROWING:
            if _is_wider(field, before.body, webhook.body):
                evidence = {"before": before.body.get(field), "after": webhook.body.get(field)}
                params = {"webhook": webhook.name, "field": field, **evidence}
                where = (*webhook.path, field)
                yield _WIDER.finding("sees-more", webhook.ref, where=where, key=[webhook.name, evidence], **params)


def _is_wider(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a part no longer holds back all that it held back; what is only added to a limit holds back more."""
    old, new = before.get(key), after.get(key)
    if key == "rules":
        return sees_more(before, after)
    if key == "matchPolicy":
        return old == "Exact" and new != "Exact"
    if key == "matchConditions":
        kept = [one.get("expression") for one in maps(new)]
        return any(one.get("expression") not in kept for one in maps(old))
    return is_looser(old, new)


def _wants(content: Content, _: Plan) -> list[ObjectRef]:
    """The services that webhooks call and that the bundle does not bring."""
    brought = {one.ref.identity for one in content.manifests}
    called = {webhook.service for webhook in webhooks_of(one.body for one in content.manifests)}
    return sorted(one for one in called if one is not None and one.identity not in brought and one.name)


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

CHECK = Check("webhooks", claims=_CLAIMS, changes=_changes, standing=_standing, wants=_wants)
