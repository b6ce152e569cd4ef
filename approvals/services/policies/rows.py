"""Saving policies: type-checked, and by people who may approve what they select (security-rules.md S13)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from approvals import access, audit
from approvals.access import Caller
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import Changed, CouldNotAsk, InvalidInput, NotAllowed, NotFound
from approvals.gate.deciding_objects import policy_of_row
from approvals.gate.rights import UNKNOWN_AUTHOR
from approvals.ledger.deciding import policy_rows
from approvals.ledger.deciding.deciding_objects import look_again
from approvals.locks import for_change
from approvals.models import BundleDeployment, Cluster, Policy
from approvals.policy import POLICY, BadExpression, check_compiled, check_form
from approvals.policy.built_in import BUILT_IN, BuiltInGuard
from approvals.policy.document import COLUMNS, LoadedPolicy
from provisioner.api_groups import OWN_GROUP
from provisioner.expressions.evaluator import ask
from provisioner.values import AccessRequest, Identity

NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
GLOB = "*?["
MAX_ASKED = 20


@dataclass(frozen=True, slots=True)
class PolicyRights:
    """As whom a policy stands. `lacks` says why it approves nothing at present, `rule` is the RBAC that would let it;
    `editor` says what its last editor lost since, which stops nothing. Each is "" where there is nothing to say.
    `writers` are the names of everybody who ever saved it: it approves nothing that they ask for (S05)."""

    identity: str
    lacks: str = ""
    rule: str = ""
    editor: str = ""
    writers: tuple[str, ...] = ()


def save_policy(
    *,
    by: Caller,
    name: str,
    kind: str,
    mode: str,
    cluster: Cluster,
    names: Sequence[str],
    labels: Mapping[str, str],
    expression: str,
    message: str,
    is_active: bool,
    via: str,
    allows_known_powers: bool = False,
    version: int | None = None,
) -> Policy:
    """Create the policy of this name, or save a new version of it, for which `by` needs the right to both.

    `version` is the one that `by` has read, 0 for none; None takes the present one. Raises Changed where somebody saved
    it meanwhile, else a Refused by what is wrong.
    """
    if not NAME.fullmatch(name):
        raise InvalidInput(f"the name is {name!r}; expected lowercase letters, digits and dashes", field="name")
    if kind not in Policy.Kind.values:
        raise InvalidInput(f"the kind is {kind!r}; expected one of {', '.join(Policy.Kind.values)}", field="kind")
    if mode not in Policy.Mode.values:
        raise InvalidInput(f"the mode is {mode!r}; expected one of {', '.join(Policy.Mode.values)}", field="mode")
    try:
        check_form(expression)
        check_compiled(ask(POLICY, [expression])[0])
    except BadExpression as exc:
        raise InvalidInput(f"the expression is invalid: {exc}", field="expression") from exc
    known = Policy.objects.select_related("cluster").filter(name=name, uid="").first()
    if known:
        for each in [known.cluster] if known.cluster else Cluster.objects.order_by("name"):
            check_author(by, each, known.names)
    check_author(by, cluster, names)
    if is_active and policy_rows.names_of_objects(cluster, [name]):
        words = f"an ApprovalPolicy of cluster {cluster.name} is called {name}, or was: choose another name"
        raise InvalidInput(words, field="name")
    return _save(
        by,
        via,
        version if version is not None else known.version if known else 0,
        name=name,
        kind=kind,
        mode=mode,
        cluster=cluster,
        names=list(names),
        labels=dict(labels),
        expression=expression,
        message=message,
        is_active=is_active,
        allows_known_powers=allows_known_powers,
    )


def disable_policy(*, by: Caller, policy: Policy, via: str) -> Policy:
    """Save a version of the policy that decides nothing: what it said of requests stays on record. Raises as
    `save_policy`."""
    kept = {column: getattr(policy, column) for column in ("cluster", *COLUMNS)}
    return save_policy(by=by, via=via, version=policy.version, is_active=False, **kept)


@transaction.atomic(durable=True)
def _switch(by: Caller, via: str, cluster: Cluster, guard: BuiltInGuard, *, is_active: bool) -> Policy:
    now = database_now()
    row = for_change(Policy.objects.filter(cluster=cluster, uid=guard.uid)).first()
    if row is None:
        raise NotFound(f"{guard.name} is no built-in guard of cluster {cluster.name}")
    if row.is_active != is_active:
        row.is_active, row.version, row.changed_at, row.editor = is_active, row.version + 1, now, by.user
        row.editor_known_as = access.person_of(by, cluster).record()
        row.save(update_fields=["is_active", "version", "changed_at", "editor", "editor_known_as"])
        look_again(cluster)
        about = {"name": guard.name, "cluster": cluster.name, "is_active": is_active}
        audit.record(verb="policy.switched", actor=Actor(by.name, via), facts=about)
    return row


def switch_guard(*, by: Caller, cluster: Cluster, name: str, is_active: bool, via: str) -> Policy:
    """Switch a built-in guard of the cluster on or off, for which `by` needs `approve` on all that it selects: every
    BundleDeployment there. Raises NotFound, or a Refused."""
    guard = next((one for one in BUILT_IN if one.name == name), None)
    if guard is None:
        raise NotFound(f"{name[:100]!r} is no built-in guard")
    check_author(by, cluster, [])
    return _switch(by, via, cluster, guard, is_active=is_active)


def check_author(by: Caller, cluster: Cluster, names: Sequence[str]) -> None:
    """Raise a Refused unless they may write a policy that selects these names.

    Who writes a policy must hold `approve` on all that it selects: on every name, or on each plain name listed.

    Asked when it is saved, and never again (S13).
    """
    identity = access.acting_as(by, cluster)
    if access.is_machine(identity):
        raise NotAllowed(
            f"{identity.username} is a machine account or a member of system:masters, and those cannot approve"
        )
    for question in _questions(names):
        permission = access.ask_for(identity, cluster, question, fresh=True)
        if not permission.could_ask:
            raise CouldNotAsk(permission.words)
        if not permission.allowed:
            what = f"{_words_of(question)} of cluster {cluster.name}"
            raise NotAllowed(
                f"a policy can approve only what its author can: you need `approve` on {what}", rule=permission.rule
            )


def may_change_policy(*, by: Caller, policy: Policy) -> bool:
    """Whether Kubernetes would let them save this policy as it is; for its page, and asked afresh when it is saved.

    Of a long list of names the first are asked about.
    """
    if policy.cluster is None:
        return False
    identity = access.find_identity(by, policy.cluster).identity
    if identity is None or access.is_machine(identity):
        return False
    answers = access.ask_each(identity, policy.cluster, _questions(policy.names)[:MAX_ASKED])
    return all(answer.allowed for answer in answers.values())


def may_write_policies(*, by: Caller, clusters: Iterable[Cluster]) -> bool:
    """Whether Kubernetes would let them save some policy: for every deployment of a cluster, or for one that is there.

    Of many deployments the first are asked about.
    """
    for cluster in clusters:
        identity = access.find_identity(by, cluster).identity
        if identity is None or access.is_machine(identity):
            continue
        if any(answer.allowed for answer in access.ask_each(identity, cluster, _questions([])).values()):
            return True
        there = BundleDeployment.objects.filter(cluster=cluster, gone_at__isnull=True).order_by("name")
        names = list(there.values_list("name", flat=True)[:MAX_ASKED])
        answers = access.ask_each(identity, cluster, _questions(names)) if names else {}
        if any(answer.allowed for answer in answers.values()):
            return True
    return False


def _questions(names: Sequence[str]) -> list[AccessRequest]:
    """What approving all that is selected takes: each plain name listed, or with any pattern every name."""
    is_listed = names and not any(mark in name for name in names for mark in GLOB)
    return [
        AccessRequest("approve", OWN_GROUP, "bundledeployments", name=name) for name in (names if is_listed else [""])
    ]


def _words_of(question: AccessRequest) -> str:
    return f"BundleDeployment {question.name}" if question.name else "every BundleDeployment"


def rights_of_policy(policy: Policy) -> PolicyRights:
    """What Kubernetes says of a policy's own identity now, and of who saved it last; for its page.

    Of a long list of names the first are asked about.
    """
    cluster, editor = policy.cluster, ""
    if cluster is None:
        return PolicyRights(access.policy_identity(policy).username)
    rights = describe_rights(policy_of_row(policy), cluster)
    # Why its last editor could not save it today; "" where they could, or nobody can tell.
    identity = access.last_known_of(policy.editor, cluster) if policy.editor else None
    name = policy.editor.get_username() if policy.editor else ""
    if identity is None:
        editor = f"{name} no longer has an identity on cluster {cluster.name}" if name else ""
    else:
        for question in _questions(policy.names)[:MAX_ASKED]:
            answer = access.ask_for(identity, cluster, question, fresh=False)
            if answer.could_ask and not answer.allowed:
                editor = f"{name} is no longer allowed to approve {_words_of(question)} on cluster {cluster.name}"
                break
    return replace(rights, editor=editor)


def describe_rights(policy: LoadedPolicy, cluster: Cluster) -> PolicyRights:
    """What Kubernetes says of a policy's own identity now, and who wrote it."""
    writers = tuple(sorted({name for name, _ in access.writers_of(policy, cluster)}))
    if not policy.is_author_known:
        return PolicyRights(policy.identity, UNKNOWN_AUTHOR, writers=writers)
    asked = _questions(policy.document.names)[:MAX_ASKED]
    answers = [access.ask_for(Identity(policy.identity), cluster, question, fresh=False) for question in asked]
    lacking = next((answer for answer in answers if not answer.allowed), None)
    return PolicyRights(policy.identity, *((lacking.words, lacking.rule) if lacking else ("", "")), writers=writers)


@transaction.atomic(durable=True)
def _save(by: Caller, via: str, known_version: int, *, name: str, cluster: Cluster, **columns: object) -> Policy:
    now = database_now()
    policy = for_change(Policy.objects.filter(name=name, uid="")).first()
    if (policy.version if policy else 0) != known_version:
        if not known_version:
            raise Changed(f"there is a policy {name} already: choose another name")
        raise Changed(f"policy {name} was changed by someone else since you opened it: reload it and try again")
    person = access.person_of(by, cluster).record()
    before = policy.cluster_id if policy else cluster.pk
    if policy is None:
        policy = Policy.objects.create(
            name=name,
            cluster=cluster,
            **columns,
            author=by.user,
            author_known_as=person,
            editor=by.user,
            editor_known_as=person,
            writers=[person],
            created_at=now,
            changed_at=now,
        )
    else:
        for column, value in {"cluster": cluster, **columns}.items():
            setattr(policy, column, value)
        policy.version += 1
        # What stands is the work of all of them, and nobody can tell whose part is left (S13). The columns beside are
        # read, too: a process of the version before writes only those.
        policy.writers = access.each_once([*policy.writers, policy.author_known_as, policy.editor_known_as, person])
        policy.editor, policy.editor_known_as = by.user, person
        policy.changed_at = now
        policy.save()
    # One from before policies belonged to a cluster was in force everywhere.
    concerned = Cluster.objects.filter(pk__in={before, cluster.pk}) if before else Cluster.objects.all()
    for one in concerned.only("name"):
        look_again(one)
    audit.record(
        verb="policy.saved",
        actor=Actor(by.name, via),
        facts={**columns, "name": name, "version": policy.version, "cluster": cluster.name},
    )
    return policy
