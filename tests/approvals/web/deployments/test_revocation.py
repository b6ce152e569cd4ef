"""Revoking a revision on the page of its deployment."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.models import User
from django.test import Client

from approvals.models import BundleDeployment, Revision
from tests.support.approvals.fixtures import World

PAGE = "/deployments/prod/strimzi"
REVOKE = f'action="{PAGE}/revoke"'
REINSTATE = f'action="{PAGE}/reinstate"'
GO_BACK = "Request rollback to revision 1"
WHY = "<b>leaks keys</b>"


def test_a_revoked_revision_says_by_whom_and_why_and_is_not_offered(
    here: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    here.kubernetes.allow("ada", "update")
    client = browse(here.ada)
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE), GO_BACK in text) == (2, 0, True)
    assert ("Request to apply revision 2 again" in text, "Request rollback to revision 2" in text) == (True, False)
    assert client.post(f"{PAGE}/revoke", {"revision": "1", "reason": WHY}).status_code == 302
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE), GO_BACK in text) == (1, 1, False)
    assert "&lt;b&gt;leaks keys&lt;/b&gt;" in text
    refused = client.post(f"{PAGE}/rollback", {"revision": "1"})
    assert refused.status_code == 409
    assert "revision 1 was revoked by ada: &lt;b&gt;leaks keys&lt;/b&gt;" in refused.content.decode()
    assert client.post(f"{PAGE}/reinstate", {"revision": "1"}).status_code == 302
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_a_revocation_without_reason_or_revision_is_sent_back_with_words(
    here: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    client = browse(here.ada)
    answer = client.post(f"{PAGE}/revoke", {"revision": "1", "reason": " "})
    assert answer.status_code == 422
    assert "give a reason" in answer.content.decode()
    assert client.post(f"{PAGE}/revoke", {"revision": "one", "reason": "x"}).status_code == 422
    assert not Revision.objects.exclude(revoked_at=None).exists()


def test_who_may_only_read_is_offered_nothing_and_refused(
    here: World, twice: BundleDeployment, browse: Callable[[User], Client]
) -> None:
    here.kubernetes.allow("bert", "get")
    client = browse(here.bert)
    text = client.get(PAGE).content.decode()
    assert (text.count(REVOKE), text.count(REINSTATE)) == (0, 0)
    assert client.post(f"{PAGE}/revoke", {"revision": "1", "reason": "x"}).status_code == 403
    assert not Revision.objects.exclude(revoked_at=None).exists()
