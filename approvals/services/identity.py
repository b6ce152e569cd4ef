"""Which account an identity belongs to: mapped by the operator, linked by whoever proves both, and taken away again."""

from __future__ import annotations

from collections.abc import Sequence

from django.contrib.auth.models import User
from django.db import transaction

from approvals import access, audit
from approvals.access import Caller, Credential
from approvals.audit import Actor
from approvals.clock import database_now
from approvals.errors import InvalidInput, NotAllowed, NotFound
from approvals.models import ApiToken, ChatAccount, Cluster, KubernetesIdentity, Proof, SignIn
from approvals.services import sign_ins
from approvals.services.sign_ins import MAPPED, Proved, is_local
from provisioner.values import Identity


@transaction.atomic(durable=True)
def map_identity(*, user: User, cluster: Cluster, username: str, groups: Sequence[str], by: Actor) -> None:
    """The operator's word that a local user is `username` on this cluster. `system:` names are refused (S01).

    It counts as it stands now, for whoever signs in with the account's password. Where the name changes, sessions,
    tokens and chat links of the name before end.
    """
    identity = Identity(username, tuple(sorted(groups)))
    if access.is_reserved(identity):
        raise InvalidInput(
            f"{username} or one of its groups starts with system:, which only a token of the cluster can assert"
        )
    _check_mappable(user, cluster, username)
    known = KubernetesIdentity.objects.filter(user=user, cluster=cluster).first()
    if known and known.username != username:
        _end_all_by_password(user)
        known.delete()
    KubernetesIdentity.objects.update_or_create(
        user=user,
        cluster=cluster,
        defaults={
            "authenticator": MAPPED,
            "username": username,
            "uid": "",
            "groups": list(identity.groups),
            "groups_seen_at": database_now(),
        },
    )
    facts = {"user": user.get_username(), "cluster": cluster.name, "as": username, "groups": list(identity.groups)}
    audit.record(verb="identity.mapped", actor=by, facts=facts)


@transaction.atomic(durable=True)
def forget_identity(*, user: User, cluster: Cluster, by: Actor) -> str:
    """The operator's word that the account is nobody on this cluster any more; the name that it had there.

    What has proved it ends: sessions, API tokens and chat links that stand on nothing else.
    """
    row = KubernetesIdentity.objects.filter(user=user, cluster=cluster).first()
    if row is None:
        raise NotFound(f"{user.get_username()} has no identity on cluster {cluster.name}")
    return _forget(row, by)


def forget_all(*, cluster: Cluster, by: Actor) -> None:
    """The cluster is removed: nobody is anybody there any more."""
    for row in KubernetesIdentity.objects.select_related("user", "cluster").filter(cluster=cluster).order_by("pk"):
        _forget(row, by)


def _forget(row: KubernetesIdentity, by: Actor) -> str:
    if row.authenticator == MAPPED:
        _end_all_by_password(row.user)
    _take_away_proofs(row)
    facts = {"user": row.user.get_username(), "cluster": row.cluster.name, "as": row.username}
    row.delete()
    audit.record(verb="identity.forgotten", actor=by, facts=facts)
    return row.username


@transaction.atomic(durable=True)
def link_identity(*, by: Caller, proved: Proved) -> KubernetesIdentity:
    """Have the account of this session be this person, too, who is proved now as the session's own is.

    Each still answers on its own cluster only, and for as long as it was proved in the session that asks. An account
    that the person had of their own is left behind, with its sessions and tokens ended as far as they were theirs.
    """
    if by.credential != Credential.SESSION or not by.proofs or is_local(by.user):
        raise NotAllowed(
            "only an account that signs in with a cluster token can link another identity; the identities of a "
            "local account are mapped by the operator"
        )
    access.check_fresh(by)
    row = KubernetesIdentity.objects.select_related("user").filter(**sign_ins.key_of(proved)).first()
    is_new = row is None or row.user_id != by.user.pk
    if is_new and by.user.kubernetes_identities.filter(cluster=proved.cluster).exists():
        raise InvalidInput(
            f"your account already has an identity on cluster {proved.cluster.name}: unlink that one first",
            field="token",
        )
    before = row.user.get_username() if row else ""
    if row is None:
        row = KubernetesIdentity(user=by.user, **sign_ins.key_of(proved))
    elif is_new:
        sign_ins.check_enterable(row.user)
        _take_away_proofs(row)
    row.user, row.groups, row.groups_seen_at = by.user, list(proved.identity.groups), proved.at
    row.save()
    sign_ins.note(row, proved, sign_in_id=by.holder_id)
    if is_new:
        _record("identity.linked", by, row, before=before)
    return row


@transaction.atomic(durable=True)
def unlink_identity(*, by: Caller, identity_id: int) -> KubernetesIdentity:
    """Undo a link: the person has an account of their own again from their next sign-in on.

    Raises InvalidInput for the only identity of the account, and for one that the operator mapped.
    """
    access.check_fresh(by)
    row = KubernetesIdentity.objects.select_related("cluster").filter(pk=identity_id, user=by.user).first()
    if row is None:
        raise NotFound("this identity is not linked to your account")
    if row.authenticator == MAPPED:
        raise InvalidInput("the operator mapped this identity, so only the operator can remove it")
    if by.user.kubernetes_identities.count() == 1:
        raise InvalidInput("this is the only identity of your account, so it cannot be unlinked")
    _take_away_proofs(row)
    _record("identity.unlinked", by, row)
    row.delete()
    return row


def _check_mappable(user: User, cluster: Cluster, username: str) -> None:
    if KubernetesIdentity.objects.filter(cluster=cluster, username=username).exclude(user=user).exists():
        raise InvalidInput(
            f"another account is {username} on cluster {cluster.name}: a user name belongs to one account only"
        )
    if user.kubernetes_identities.exclude(authenticator=MAPPED).exists():
        raise InvalidInput(
            f"{user.get_username()} signs in with cluster tokens and cannot also have a mapped identity: map "
            "another account"
        )


def _take_away_proofs(row: KubernetesIdentity) -> None:
    """End what stands on this identity; of sessions and tokens that stand on others, too, only this part."""
    sign_ins = list(SignIn.objects.filter(proofs__identity=row).values_list("pk", flat=True))
    tokens = list(ApiToken.objects.filter(proofs__identity=row).values_list("pk", flat=True))
    Proof.objects.filter(identity=row).delete()
    SignIn.objects.filter(pk__in=sign_ins, proofs=None, password_at=None).delete()
    ApiToken.objects.filter(pk__in=tokens, proofs=None, password_at=None).delete()
    row.chat_accounts.clear()


def _end_all_by_password(user: User) -> None:
    SignIn.objects.filter(user=user, password_at__isnull=False).delete()
    ApiToken.objects.filter(user=user, password_at__isnull=False).delete()
    for account in ChatAccount.objects.filter(user=user):
        account.identities.clear()


def _record(verb: str, by: Caller, row: KubernetesIdentity, **more: str) -> None:
    facts = {"account": by.name, "cluster": row.cluster.name, "as": row.username, "uid": row.uid, **more}
    audit.record(verb=verb, actor=Actor(by.name, "browser"), facts=facts)
