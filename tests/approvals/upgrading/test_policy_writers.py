"""Policies of before everybody who saved them was kept: who they were is found out from what is there (S05, S13)."""

from __future__ import annotations

import json

import pytest

from tests.support.approvals.databases import manage, ran

BEFORE, AFTER = "0038", "0040"
# ada wrote the policy, bert and gone (whose account is deleted since) edited it, carol did last. ada has been unlinked
# since, and proves another name; another policy of the same cluster is as later versions keep it.
FILL = """
from datetime import timedelta
from django.contrib.auth.models import User
from django.db import transaction
OIDC, URL = "oidc", "https://sso.example.com"
people = {name: User.objects.create_user(name, date_joined=now - timedelta(days=9)) for name in ("ada", "bert", "carol")}
cluster = model("Cluster").create(name="prod", uid="u", created_at=now)
other = model("Cluster").create(name="other", uid="v", created_at=now)
def identity(name, where, **more):
    model("KubernetesIdentity").create(user_id=people[name].pk, cluster=where, groups_seen_at=now, **more)
identity("ada", cluster, authenticator="token-review", username="ada-now", uid="u-2")
identity("bert", cluster, authenticator="mapped", username="bert-k")
identity("carol", cluster, authenticator=OIDC, issuer=URL, subject="s-c", username="sso:carol")
def entry(verb, actor, via, **facts):
    with transaction.atomic():
        audit.record(verb=verb, actor=audit.Actor(actor, via), facts=facts)
entry("identity.proved", "ada-then", "token", cluster="prod", uid="u-1", account="ada")
entry("identity.proved", "stranger", "token", cluster="prod", uid="u-9")
entry("identity.proved", "ada", "oidc", issuer=URL, subject="s-a", clusters={"other": "sso:ada"})
entry("identity.mapped", "root", "shell", user="gone", cluster="prod", **{"as": "gone-k"})
def policy(name, **more):
    begun = timezone.now()
    return model("Policy").create(
        name=name, kind="grant", cluster=cluster, expression="true", author_id=people["ada"].pk,
        editor_id=people["carol"].pk, created_at=begun, changed_at=begun + timedelta(hours=1), version=4, **more,
    )
old = policy("old")
for name in ("ada", "bert", "gone", "carol"):
    entry("policy.saved", name, "browser", name="old", cluster="prod")
entry("policy.saved", "stranger", "browser", name="another", cluster="prod")
entry("identity.mapped", "root", "shell", user="bert", cluster="prod", **{"as": "bert-later"})
kept = {"username": "kept", "uid": "", "user_id": people["ada"].pk, "subjects": []}
policy("of-later", author_known_as=kept, editor_known_as=kept)
print(json.dumps({name: user.pk for name, user in people.items()}))
"""
READ = """
print(json.dumps({
    one.name: {"author": one.author_known_as, "editor": one.editor_known_as, "writers": one.writers}
    for one in model("Policy").order_by("name")
}))
"""


@pytest.mark.thorough
def test_S13_who_wrote_the_policies_of_before_is_told_by_the_audit_and_the_identities(database_url: str) -> None:
    manage(database_url, "migrate", "--verbosity", "0", "auth")
    manage(database_url, "migrate", "--verbosity", "0", "approvals", BEFORE)
    people = json.loads(ran(database_url, BEFORE, FILL))
    manage(database_url, "migrate", "--verbosity", "0", "approvals", AFTER)
    found = json.loads(ran(database_url, AFTER, READ))

    subjects = [["https://sso.example.com", "s-a"]]
    then = {"username": "ada-then", "uid": "u-1", "user_id": people["ada"], "subjects": subjects}
    now = {**then, "username": "ada-now", "uid": "u-2"}
    bert = {"username": "bert-k", "uid": "", "user_id": people["bert"], "subjects": []}
    gone = {"username": "gone-k", "uid": "", "user_id": None, "subjects": []}
    carol = {
        "username": "sso:carol",
        "uid": "",
        "user_id": people["carol"],
        "subjects": [["https://sso.example.com", "s-c"]],
    }
    assert (found["old"]["author"], found["old"]["editor"]) == (then, carol)
    assert found["old"]["writers"] == [then, carol, now, bert, gone]

    kept = found["of-later"]["author"]
    assert kept["username"] == found["of-later"]["editor"]["username"] == "kept"
    assert found["of-later"]["writers"][0] == kept
    manage(database_url, "migrate", "--verbosity", "0")
