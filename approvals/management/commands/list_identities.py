"""`pratique-manage list_identities`: the identities of accounts, and what else they sign in with."""

from __future__ import annotations

from typing import Any

from approvals.management.operator_command import OperatorCommand
from approvals.models import ApiToken, ChatAccount, KubernetesIdentity, SignIn
from provisioner.escaping import visible


class Command(OperatorCommand):
    help = (
        "List identities of accounts on each cluster, with sessions, API tokens and chat accounts. Secrets "
        "are not shown."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        for identity in KubernetesIdentity.objects.select_related("user", "cluster").order_by("user__username", "pk"):
            groups = ", ".join(identity.groups) or "no groups"
            self._say(
                f"{identity.user.username} is {identity.username} ({groups}) on {identity.cluster.name},"
                f" {identity.get_authenticator_display()},"
                f" groups verified {identity.groups_seen_at.isoformat(timespec='seconds')}"
            )
        for token in ApiToken.objects.select_related("user").order_by("user__username", "pk"):
            used = token.last_used_at.isoformat(timespec="seconds") if token.last_used_at else "never"
            until = token.expires_at.isoformat(timespec="seconds")
            scopes = ", ".join(token.scopes) or "nothing: expired"
            self._say(
                f"{token.user.username} has the API token {token.name!r} for {scopes} until {until}, last used: {used}"
            )
        for row in SignIn.objects.select_related("user").order_by("user__username", "pk"):
            since, seen = (at.isoformat(timespec="seconds") for at in (row.began_at, row.seen_at))
            self._say(f"{row.user.username} has a session from {row.address} since {since}, last seen {seen}")
        for account in ChatAccount.objects.select_related("user").order_by("user__username", "pk"):
            self._say(f"{account.user.username} linked {account.tool} account {account.account} of {account.tenant}")

    def _say(self, words: str) -> None:
        self.stdout.write(visible(words))
