"""Accounts and bindings themselves (RB-44, 46, 48, 50, 51), what one account may do that another may not, and who of a
bundle makes what its pods need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner import rbac
from provisioner.api_groups import RBAC_GROUP
from provisioner.errors import TooManyRights
from provisioner.json_values import items, mapping, maps
from provisioner.rbac import EffectiveRules, RbacObjects, RbacSubject, Risk, RoleProblem, ScopedRule
from provisioner.review.base.facts import Facts, ReviewRule, StateFacts
from provisioner.review.rights.renamed_roles import RbacBeforeAfter, rbac_before_after_of
from provisioner.review.rules import Phrase
from provisioner.review.rules.files import sentence_of
from provisioner.review.workloads.pod_specs import Mention, PodSpec, pod_specs
from provisioner.values import AccessRequest, Finding, GroupKind, JsonObject, ObjectRef, Section, Severity

_FOREIGN = ReviewRule("RB-44", Section.PERMISSIONS, Severity.NOTABLE)
_MOVED = ReviewRule("RB-46", Section.PERMISSIONS, Severity.BREAKING)
_WILDCARD = ReviewRule("RB-48", Section.PERMISSIONS, Severity.NOTABLE)
_EXPOSED = ReviewRule("RB-50", Section.PERMISSIONS, Severity.DANGEROUS)
_CLOUD = ReviewRule("RB-51", Section.PERMISSIONS, Severity.DANGEROUS)

_ACCOUNT = GroupKind("", "ServiceAccount")
_SERVICE = GroupKind("", "Service")
_CRD = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
BINDINGS = (GroupKind(RBAC_GROUP, "RoleBinding"), GroupKind(RBAC_GROUP, "ClusterRoleBinding"))
_ROLES = (GroupKind(RBAC_GROUP, "Role"), GroupKind(RBAC_GROUP, "ClusterRole"))
CLOUD_IDENTITIES = {
    "eks.amazonaws.com/role-arn": "aws",
    "iam.gke.io/gcp-service-account": "google",
    "azure.workload.identity/client-id": "azure",
}
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class _WayIn:
    """A service that lets the world in, to the pods of its namespace that have all of `selector`."""

    namespace: str
    selector: Mapping[str, Any]

    def leads_to(self, pod: PodSpec) -> bool:
        labels = pod.labels
        return self.namespace == pod.ref.namespace and all(
            labels.get(key) == value for key, value in self.selector.items()
        )


def account_ref(subject: RbacSubject) -> ObjectRef:
    return ObjectRef.of_service_account(subject.namespace, subject.name)


def bound_accounts(objects: tuple[JsonObject, ...]) -> Iterator[tuple[ObjectRef, RbacSubject]]:
    """Every ServiceAccount that a binding among `objects` names, with the binding."""
    for obj in objects:
        ref = ObjectRef.of(obj)
        if ref.group_kind in BINDINGS:
            for subject in dict.fromkeys(rbac.binding_subjects(obj)):
                if subject.kind == "ServiceAccount" and subject.namespace:
                    yield ref, subject


def of_accounts(state: StateFacts) -> Iterator[Finding]:
    """Findings about one side of a change: foreign subjects, wildcards, identities outside of the cluster."""
    own = {ref.identity for ref, _ in state.named}
    for binding, subject in bound_accounts(state.objects):
        ref = account_ref(subject)
        if ref.identity in own or subject.name == _DEFAULT:
            continue
        is_absent = ref.identity in state.live and state.live[ref.identity] is None
        variant, key = "absent" if is_absent else "foreign", [str(subject), is_absent]
        yield _FOREIGN.finding(variant, binding, where=("subjects",), key=key, account=subject)
    yield from of_wildcards(state)
    for ref, obj in state.named:
        if ref.group_kind != _ACCOUNT:
            continue
        annotations = mapping(mapping(obj.get("metadata")).get("annotations"))
        for name in sorted(set(annotations) & set(CLOUD_IDENTITIES)):
            where, identity = ("metadata", "annotations", name), annotations[name]
            yield _CLOUD.finding(CLOUD_IDENTITIES[name], ref, where=where, key=identity, identity=identity)


def of_wildcards(state: StateFacts) -> Iterator[Finding]:
    """Rules over every resource of a named group: what that is today, so that what it gains is seen as new."""
    defined: dict[str, set[str]] = {}
    for obj in state.objects:
        if ObjectRef.of(obj).group_kind == _CRD:
            spec = mapping(obj.get("spec"))
            defined.setdefault(str(spec.get("group")), set()).add(str(mapping(spec.get("names")).get("plural")))
    for ref, obj in state.named:
        if ref.group_kind not in _ROLES:
            continue
        for index, entry in enumerate(maps(obj.get("rules"))):
            groups = entry.get("apiGroups")
            if "*" not in items(entry.get("resources")) or not isinstance(groups, list) or "*" in groups:
                continue
            means, told = {}, []
            for group in sorted(map(str, groups)):
                names = sorted({*rbac.BUILT_IN_RESOURCES.get(group, ()), *defined.get(group, ())})
                if group not in means:
                    variant = f"groups.{'known' if names else 'unknown'}{'' if group else '-core'}"
                    told.append(Phrase.of(_WILDCARD.id, variant, group=group, resources=names))
                means[group] = names
            where = ("rules", index)
            yield _WILDCARD.finding(
                "every-resource", ref, where=where, key=means, index=index, groups=told, means=means
            )


def _role(binding: JsonObject) -> dict[str, Any]:
    """The role of a binding with the group that the server fills in."""
    role = mapping(binding.get("roleRef"))
    return {**role, "apiGroup": role.get("apiGroup") or RBAC_GROUP}


def moved_bindings(facts: Facts) -> Iterator[Finding]:
    """Bindings that shall name another role: the API server refuses that, for a roleRef never changes."""
    for planned in facts.plan.actions:
        if planned.ref.group_kind not in BINDINGS or planned.before is None or planned.after is None:
            continue
        old, new = (_role(side) for side in (planned.before, planned.after))
        if old != new:
            before, after = (f"{role.get('kind')} {role.get('name')}" for role in (old, new))
            key = [str(old.get("name")), str(new.get("name"))]
            yield _MOVED.finding("moved", planned.ref, where=("roleRef",), key=key, before=before, after=after)


def exposed_accounts(state: StateFacts, roles: RbacObjects) -> Iterator[Finding]:
    """Pods that are easily taken over and run with an account that is worth it."""
    # Read once for all pods: a bundle may have hundreds of both.
    ways_in = []
    for obj in state.objects:
        spec = mapping(obj.get("spec"))
        selector = mapping(spec.get("selector"))
        if spec.get("type") in ("LoadBalancer", "NodePort") and selector:
            ref = ObjectRef.of(obj)
            ways_in += [_WayIn(ref.namespace, selector)] if ref.group_kind == _SERVICE else []
    for pod in pod_specs(state.objects):
        reasons = sorted(_exposure(pod, ways_in))
        if not reasons or pod.body.get("automountServiceAccountToken") is False:
            continue
        subject = account_of(pod, state.install_namespace)
        held = rbac.risks(rbac.effective_rules(subject.identity, roles), sensitive=[state.install_namespace])
        powers = [risk for risk in held if risk.severity.is_at_least(Severity.DANGEROUS) and not risk.implied_by]
        if powers:
            sentences = list(map(sentence_of, powers))
            yield _EXPOSED.finding(
                "exposed",
                pod.ref,
                where=pod.path,
                key=[reasons, str(subject)],
                exposed=[Phrase.of(_EXPOSED.id, f"exposed.{reason}") for reason in reasons],
                account=subject,
                worst=sentences[0],
                powers=sentences,
            )


def _exposure(pod: PodSpec, ways_in: list[_WayIn]) -> Iterator[str]:
    if pod.ref.kind == "DaemonSet":
        yield "on-every-node"
    if pod.body.get("hostNetwork") is True:
        yield "shares-network"
    if any(container.security.get("privileged") is True for container in pod.containers()):
        yield "privileged"
    if any(way.leads_to(pod) for way in ways_in):
        yield "reached"


@dataclass(frozen=True, slots=True)
class Gain:
    """`risks` are the dangerous ones, `added` all rights that are more; `unknown` why nobody knows, as POD-32 names the
    reasons."""

    risks: tuple[Risk, ...] = ()
    added: tuple[ScopedRule, ...] = ()
    unknown: tuple[str | Mapping[str, RoleProblem], ...] = ()

    @property
    def powers(self) -> list[Phrase]:
        """The risks as sentences of the account."""
        return list(map(sentence_of, self.risks))

    @property
    def sense(self) -> list[tuple[object, ...]]:
        """The risks as what makes a finding of them this one."""
        return [(risk.id, risk.scope, *risk.sense) for risk in self.risks]


def account_of(pod: PodSpec, install_namespace: str) -> RbacSubject:
    """The account that a pod runs as."""
    return RbacSubject("ServiceAccount", pod.account, pod.ref.namespace or install_namespace)


def pods_by_account(facts: Facts) -> Mapping[RbacSubject, list[PodSpec]]:
    """The pods of the bundle by the account that they run as, as it will be."""
    return facts.once("pods by account", _pods_by_account)


def _pods_by_account(facts: Facts) -> Mapping[RbacSubject, list[PodSpec]]:
    found: dict[RbacSubject, list[PodSpec]] = {}
    for pod in pod_specs(tuple(manifest.body for manifest in facts.content.manifests)):
        found.setdefault(account_of(pod, facts.content.install_namespace), []).append(pod)
    return found


@dataclass(frozen=True, slots=True)
class AccountPowers:
    """The powers of accounts before and after a change, as far as roles and bindings are known."""

    states: RbacBeforeAfter
    brought: frozenset[RbacSubject]
    install_namespace: str
    is_unread: bool

    @classmethod
    def of(cls, facts: Facts) -> AccountPowers:
        states = rbac_before_after_of(facts)
        refs = (ref for ref, _ in facts.state().named if ref.group_kind == _ACCOUNT)
        place = facts.content.install_namespace
        brought = frozenset(RbacSubject("ServiceAccount", ref.name, ref.namespace or place) for ref in refs)
        return cls(states, brought, place, facts.live_rbac is None and not facts.is_offline)

    def gained(self, old: RbacSubject | None, new: RbacSubject) -> Gain:
        """What `new` may do after the change that `old` may not before it; without `old`, all that it may do."""
        before = rbac.effective_rules(old.identity, self.states.before) if old else EffectiveRules(new.identity)
        after = rbac.effective_rules(new.identity, self.states.after)
        known = {(risk.id, risk.scope, risk.sense) for risk in self._risks(before)}
        gained = tuple(
            risk
            for risk in self._risks(after)
            if risk.severity.is_at_least(Severity.DANGEROUS) and not risk.is_among(known)
        )
        try:
            added = rbac.diff(before, after).added
        except TooManyRights:
            return Gain(gained, unknown=("too-many",))
        # Without the roles of the cluster, only what a bundle brings is known, and what it binds.
        unknown: list[str | Mapping[str, RoleProblem]] = []
        if self.is_unread:
            unknown.append("unread")
        elif not self.states.is_whole and new not in self.brought:
            unknown.append("not-of-bundle")
        problems = (problem for problem in after.problems if not (self.states.is_whole and problem.is_missing))
        return Gain(gained, added, (*unknown, *({"words": problem} for problem in problems)))

    def _risks(self, held: EffectiveRules) -> list[Risk]:
        return [risk for risk in rbac.risks(held, sensitive=[self.install_namespace]) if not risk.implied_by]


# Annotations of Services by which a controller of the platform makes a Secret.
_SERVING_CERTIFICATES = (
    "service.beta.openshift.io/serving-cert-secret-name",
    "service.alpha.openshift.io/serving-cert-secret-name",
)
# Fields of custom resources that hold the object that is made of them.
_TARGETS = ("target", "destination")
# What runs to an end.
_ENDING = frozenset({"Job", "Pod"})
MAX_MAKERS = 3


class Makers:
    """Who of the bundle makes what its pods need."""

    def __init__(self, facts: Facts):
        self._facts = facts

    def with_result(self, wanted: ObjectRef) -> ObjectRef | None:
        """The object that names the wanted one as its result, as certificates and external secrets do."""
        for manifest in self._facts.content.manifests:
            ref, body = manifest.ref, manifest.body
            if ref.group_kind == _SERVICE and ref.namespace == wanted.namespace:
                annotations = mapping(mapping(body.get("metadata")).get("annotations"))
                named = [annotations.get(certificate) for certificate in _SERVING_CERTIFICATES]
                if wanted.kind == "Secret" and wanted.name in named:
                    return ref
            elif "." in ref.group and ref.namespace in {"", wanted.namespace}:
                spec = mapping(body.get("spec"))
                results = [spec.get("secretName"), *(mapping(spec.get(key)).get("name") for key in _TARGETS)]
                if wanted.name in results or (ref.name == wanted.name and wanted.kind in ref.kind):
                    return ref
        return None

    def able(self, need: Mention) -> dict[str, Any]:
        """Which pods of the bundle may create what one of them needs, as `makers`, and as `by` whether those are `own`
        containers of the pod, `others` or `both`; nothing for none.

        So init containers, jobs and operators make what pods read: nobody can see by their names what they make. Those
        that run to an end come first, as that is what they are for.
        """
        wanted, own = need.ref, need.pod.ref
        asked = AccessRequest("create", wanted.group, f"{wanted.kind.lower()}s", namespace=wanted.namespace)
        known = rbac_before_after_of(self._facts).after
        refs = {
            pod.ref
            for account, pods in pods_by_account(self._facts).items()
            if rbac.allows_in(rbac.effective_rules(account.identity, known), asked)
            for pod in pods
        }
        ordered = sorted(refs, key=lambda ref: (ref == own, ref.kind not in _ENDING, ref))
        makers = ordered[:MAX_MAKERS]
        if not makers:
            return {}
        is_own, others = own in makers, [ref for ref in makers if ref != own]
        return {"by": "both" if is_own and others else "own" if is_own else "others", "makers": others}
