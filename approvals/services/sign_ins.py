"""Signing in: what was proved enters the account that is its own, and no other (security-rules.md S01)."""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from approvals import access, audit, instruments, rate_limits
from approvals.access import Caller, Permission
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import NotAllowed
from approvals.models import Cluster, KubernetesIdentity, Proof, SignIn
from provisioner.api_groups import OWN_GROUP
from provisioner.errors import PratiqueError
from provisioner.values import AccessRequest, Identity

# RFC 6750, section 2.1. Not every Kubernetes token is a JWT: OpenShift's and EKS's are not.
BEARER = re.compile(r"[A-Za-z0-9._~+/:-]{1,16384}={0,2}", re.ASCII)
DO_NOT_FIT = (
    "the token was not accepted: check the name of the cluster, and that the token is valid on that cluster "
    "for audience pratique. The cluster might also be unreachable"
)
# About what a cluster takes to answer, so that the time does not tell which clusters there are.
REFUSAL_SECONDS = 0.3
TOKEN_REVIEW, MAPPED = KubernetesIdentity.Authenticator.TOKEN_REVIEW, KubernetesIdentity.Authenticator.MAPPED
# Groups that stay the same are written at most this often: a proxy or an ID token says them with each call.
NOTED_EVERY = timedelta(minutes=1)
MAX_NAME = 150
MAX_AGENT = 300

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Browser:
    """What a sign-in came from; `agent` is the User-Agent, "" where it says none."""

    address: str
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Proved:
    """What a cluster, or an issuer that counts on it, has just said about the bearer of a token.

    `issuer` and `subject` are "" where it was the cluster itself.
    """

    cluster: Cluster
    identity: Identity
    at: datetime
    authenticator: str = TOKEN_REVIEW
    issuer: str = ""
    subject: str = ""


@dataclass(frozen=True, slots=True)
class Rights:
    """What an identity may do on its cluster, each as Kubernetes answered; deciding asks for more (S12)."""

    read: Permission
    request: Permission
    decide: Permission

    @property
    def are_enough(self) -> bool:
        """Whether nothing has to be said before."""
        return self.read.allowed and self.decide.allowed


def prove(*, cluster: str, token: str, address: str) -> Proved:
    """Whom the cluster of this name takes the token's bearer for.

    `address` is the client's. Raises NotAllowed in the same words, and after the same time, whether there is no such
    cluster, it does not answer or it does not know the token; TooManyAttempts where that happened too often.
    """
    attempt = rate_limits.Attempt(rate_limits.CLUSTER_TOKEN, address, cluster)
    attempt.begin()
    begin = time.monotonic()
    where = Cluster.objects.filter(name=cluster).first() if BEARER.fullmatch(token) else None
    identity = None
    if where is not None:
        try:
            identity = access.kubernetes().review_token(where, token)
        except PratiqueError as exc:
            # Told to the operator, not to a stranger.
            logger.warning("a token could not be verified", extra={"cluster": where.name, "code": exc.code})
    if where is None or identity is None:
        time.sleep(max(0.0, begin + REFUSAL_SECONDS - time.monotonic()))
        instruments.refused_sign_ins.labels("cluster_token").inc()
        raise NotAllowed(DO_NOT_FIT)
    attempt.succeed()
    return Proved(where, identity, database_now())


def rights_to_tell(proved: Proved) -> Rights | None:
    """What a machine account lacks, to be said before it enters; None for people, and where nothing is missing."""
    if access.is_human(proved.identity):
        return None
    rights = rights_of(proved)
    return None if rights.are_enough else rights


def rights_of(proved: Proved) -> Rights:
    """Asked of Kubernetes anew."""
    read, request = _ask(proved, "get", "bundledeploymentrequests"), _ask(proved, "create", "bundledeployments")
    decide = _ask(proved, "approve", "bundledeployments")
    if decide.allowed and access.is_machine(proved.identity):
        words = (
            f"{proved.identity.username} is a machine account: machine accounts decide only if the operator lists them"
        )
        decide = Permission(False, words, identity=proved.identity)
    return Rights(read, request, decide)


def _ask(proved: Proved, verb: str, resource: str) -> Permission:
    question = AccessRequest(verb, OWN_GROUP, resource)
    return access.ask_for(proved.identity, proved.cluster, question, fresh=True)


def sign_in(*, proved: Proved, browser: Browser, before: Caller | None = None) -> SignIn:
    """Begin a session in the account of this very person, which is made if need be.

    A session of the same account that was there `before` ends; what it has proved on other clusters is carried over.
    Raises NotAllowed where the account is switched off, or is entered with a password only.
    """
    try:
        return _sign_in(proved, browser, before)
    except IntegrityError:
        # Somebody came in as the same new person at the same time: now the account is there.
        return _sign_in(proved, browser, before)


@transaction.atomic(durable=True)
def sign_in_with_password(*, user: User, browser: Browser, before: Caller | None = None) -> SignIn:
    """Begin a session of a local account whose password was just given; the operator's mappings are its identities."""
    row = begin(user, browser, before, password_at=database_now())
    audit.record(verb="session.began", actor=Actor(user.get_username(), "password"), facts={"address": browser.address})
    return row


@transaction.atomic(durable=True)
def _sign_in(proved: Proved, browser: Browser, before: Caller | None) -> SignIn:
    identity = keep(proved)
    row = begin(identity.user, browser, before, but=identity)
    note(identity, proved, sign_in=row)
    audit.record(
        verb="identity.proved",
        actor=Actor(proved.identity.username, "token"),
        facts={
            "cluster": proved.cluster.name,
            "uid": proved.identity.uid,
            "groups": list(proved.identity.groups),
            "account": identity.user.get_username(),
            "address": browser.address,
        },
    )
    return row


def keep(proved: Proved, user: User | None = None) -> KubernetesIdentity:
    """The row of this person, with the groups of now; in a transaction. Raises NotAllowed.

    Who is new gets an account of their own, or is `user`. A word older than what is known, such as an ID token that was
    issued before a group was lost, changes nothing.
    """
    who = proved.identity
    _take_over(proved)
    found = KubernetesIdentity.objects.select_related("user").filter(**key_of(proved)).first()
    if found is None:
        plain = f"{who.username}@{proved.cluster.name}"
        account = user or User.objects.create_user(free_name(plain, proved.cluster.pk, who.username, who.uid))
        found = KubernetesIdentity(user=account, **key_of(proved))
    check_enterable(found.user)
    is_known = (who.username, list(who.groups)) == (found.username, found.groups)
    age = proved.at - found.groups_seen_at if found.pk else NOTED_EVERY
    if age < timedelta() or (is_known and age < NOTED_EVERY):
        return found
    found.username, found.uid = who.username, who.uid
    found.groups, found.groups_seen_at = list(who.groups), proved.at
    found.save()
    return found


def keep_all(
    user: User, proved: Iterable[Proved], authenticator: KubernetesIdentity.Authenticator
) -> list[tuple[KubernetesIdentity, Proved]]:
    """The person's rows, as far as they are this account's; in a transaction. Raises NotAllowed (S01).

    On a cluster where the account is linked to somebody else, that stays who it is.
    """
    check_enterable(user)
    linked = set(user.kubernetes_identities.exclude(authenticator=authenticator).values_list("cluster_id", flat=True))
    rows = [(keep(each, user), each) for each in proved if each.cluster.pk not in linked]
    return [(row, each) for row, each in rows if row.user_id == user.pk]


@transaction.atomic(durable=True)
def caller_by_admission(*, proved: Proved) -> Caller:
    """Who made an object in a cluster, as its admission has proved, so a person is one vote on all channels (S12).

    That is the account which is already known on this very cluster by the name and uid, however it is entered; what it
    may do here is what the object says. Its groups are those of now. Raises NotAllowed where it is switched off.
    """
    row = known_as(proved.cluster, proved.identity) or keep(proved)
    if not row.user.is_active:
        raise NotAllowed("this account is disabled")
    if row.authenticator != MAPPED and proved.at > row.groups_seen_at:
        row.groups, row.groups_seen_at = list(proved.identity.groups), proved.at
        row.save(update_fields=["groups", "groups_seen_at"])
    return access.of_admission(row, proved.identity, proved.at)


def known_as(cluster: Cluster, identity: Identity) -> KubernetesIdentity | None:
    """The one row of this name on the cluster, unless its uid is another one: a name is given to others later."""
    named = KubernetesIdentity.objects.filter(cluster=cluster, username=identity.username)
    rows = list(named.filter(uid__in=["", identity.uid]).select_related("user", "cluster")[:2])
    return rows[0] if len(rows) == 1 else None


def _take_over(proved: Proved) -> None:
    """What a proxy called the same person, from before it was said to have the issuer's people, is the issuer's now:
    whoever is told of no proxies, as a worker, knows them by the rows (S05)."""
    proxied = KubernetesIdentity.objects.filter(authenticator=KubernetesIdentity.Authenticator.PROXY)
    for issuer, subject in access.also_known_as(proved.issuer, proved.subject):
        known = proxied.filter(issuer=proved.issuer, subject=proved.subject).values("cluster")
        for row in proxied.filter(issuer=issuer, subject=subject).exclude(cluster__in=known):
            row.issuer, row.subject = proved.issuer, proved.subject
            row.save(update_fields=["issuer", "subject"])


def key_of(proved: Proved) -> dict[str, Any]:
    """What makes a bearer one person: never the name alone (S01).

    An issuer gives a subject to nobody else, whatever the person is called; a cluster gives a name anew, with a new
    uid.
    """
    by_name = {} if proved.subject else {"username": proved.identity.username, "uid": proved.identity.uid}
    return {
        "cluster": proved.cluster,
        "authenticator": proved.authenticator,
        "issuer": proved.issuer,
        "subject": proved.subject,
        **by_name,
    }


def note(identity: KubernetesIdentity, proved: Proved, **holder: Any) -> None:
    """Have the session or token of `holder` carry this proof."""
    facts = {"groups": list(proved.identity.groups), "proved_at": proved.at}
    Proof.objects.update_or_create(identity=identity, **holder, defaults=facts)


def sign_in_on_all(
    user: User,
    proved: Collection[Proved],
    browser: Browser,
    before: Caller | None,
    *,
    authenticator: KubernetesIdentity.Authenticator,
    actor: Actor,
    facts: Mapping[str, Any],
    **began_by: Any,
) -> SignIn:
    """Begin a session by one word that counts on many clusters; in a transaction. Raises NotAllowed.

    What the same authenticator said before counts no longer, also where it now says nothing. `actor` and `facts` are
    the audit's, `began_by` the columns of what the session is asked again by.
    """
    identities = keep_all(user, proved, authenticator)
    row = begin(user, browser, before)
    for column, value in began_by.items():
        setattr(row, column, value)
    row.save(update_fields=list(began_by))
    Proof.objects.filter(sign_in=row, identity__authenticator=authenticator).delete()
    for identity, each in identities:
        note(identity, each, sign_in=row)
    clusters = {each.cluster.name: each.identity.username for each in proved}
    groups = {each.cluster.name: list(each.identity.groups) for each in proved}
    told = {**facts, "clusters": clusters, "groups": groups, "address": browser.address}
    audit.record(verb="identity.proved", actor=actor, facts=told)
    return row


def check_enterable(user: User) -> None:
    """No cluster's word enters an account that is somebody by another's word."""
    if not user.is_active:
        raise NotAllowed("this account is disabled")
    if is_local(user):
        raise NotAllowed(
            f"the account {user.get_username()} has a password, a mapping or staff rights, so it cannot be "
            "entered with a cluster token: sign in with its password, or ask the operator"
        )


def is_local(user: User) -> bool:
    """Whether the account is entered with its own password only."""
    return (
        user.is_staff
        or user.is_superuser
        or user.has_usable_password()
        or user.kubernetes_identities.filter(authenticator=MAPPED).exists()
    )


def begin(
    user: User,
    browser: Browser,
    before: Caller | None,
    *,
    but: KubernetesIdentity | None = None,
    password_at: datetime | None = None,
) -> SignIn:
    now = database_now()
    agent = browser.agent[:MAX_AGENT]
    row = SignIn.objects.create(
        user=user, began_at=now, seen_at=now, address=browser.address, agent=agent, password_at=password_at
    )
    SignIn.objects.filter(user=user, began_at__lt=now - timedelta(hours=settings.PRATIQUE["SESSION_HOURS"])).delete()
    if before is None:
        return row
    rows = Proof.objects.filter(sign_in=before.holder_id, sign_in__user=user).exclude(identity=but)
    # What an issuer or a proxy said is carried over with what it is asked again by, and ended by.
    old = SignIn.objects.select_related("grant").filter(pk=before.holder_id or 0, user=user).first()
    if old:
        row.grant, row.proxy, row.proxy_subject = old.grant, old.proxy, old.proxy_subject
        row.save(update_fields=["grant", "proxy", "proxy_subject"])
    for proof in rows.filter(proved_at__gte=now - access.groups_limit()):
        Proof.objects.create(sign_in=row, identity_id=proof.identity_id, groups=proof.groups, proved_at=proof.proved_at)
    SignIn.objects.filter(pk=before.holder_id or 0).delete()
    return row


def free_name(plain: str, *key: object) -> str:
    """A name for a new account that nobody has: one of the same name may be anybody's. `key` is whose it is.

    A mark of the key is added where the plain name is taken. Whoever knows the key can take that name as well, so the
    last resort is one that nobody can foresee.
    """
    # As Django keeps names, so that the same one in other letters is found, and without what no database keeps.
    plain = "".join(filter(str.isprintable, User.normalize_username(plain)))
    mark = hashlib.sha256(repr(key).encode()).hexdigest()[:12]
    for name in (plain, _marked(plain, mark)):
        if len(name) <= MAX_NAME and not User.objects.filter(username=name).exists():
            return name
    return _marked(plain, secrets.token_hex(16))


def _marked(plain: str, mark: str) -> str:
    return f"{plain[: MAX_NAME - len(mark) - 1]}#{mark}"
