"""Requests over a time longer than PRATIQUE_KEEP_DAYS, whose contents lie in a bucket: what goes, and what stays."""

from __future__ import annotations

import base64
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from approvals import audit, store, tasks
from approvals.errors import InvalidInput
from approvals.models import AuditEntry, BundleDeployment, Content, LookupAnswers, Request, Verdict
from provisioner.values import Identity
from tests.support.journeys.deployed_site import DeployedSite, group, role
from tests.support.servers.http import GitServer
from tests.support.servers.s3 import S3Server
from tests.support.stores import use_bucket

DAYS = 30
PASSWORD = "kept since the first day"
COPY = b"""\
apiVersion: v1
kind: Secret
metadata: {name: copy}
data: {password: '{{ (lookup "v1" "Secret" .Release.Namespace "db").data.password }}'}
stringData: {version: '{{ .Chart.Version }}'}
"""


def go_to(site: DeployedSite, repository: Any, version: str) -> Request:
    """A chart that looks up a password, applied."""
    repository.commit(
        {"Chart.yaml": f"apiVersion: v2\nname: shop\nversion: {version}\n".encode(), "templates/copy.yaml": COPY}
    )
    source = {"kind": "git", "git": {"repository": repository.url, "ref": {"branch": "main"}}}
    config = {"lookup": [{"kind": "Secret", "name": "db"}], "values": {"round": version}}
    wished = site.prepare(site.namespace, source, format="helm", config=config)
    request = site.approve(wished, reason=f"read {version}")
    assert request.state == "applied", request.problem
    return request


def live(site: DeployedSite) -> str:
    found = site.live("Secret", "copy")
    assert base64.b64decode(found["data"]["password"]).decode() == PASSWORD
    return base64.b64decode(found["data"]["version"]).decode()


def put_password(site: DeployedSite) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": site.namespace}}
    site.api.apply({**secret, "stringData": {"password": PASSWORD}}, field_manager="test")
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["db"], "verbs": ["get"]}
    for each in role("get-db", site.namespace, rule, group("requesters")):
        site.api.apply(each, field_manager="test")
    site.until_may(Identity("rita", ("requesters",)), "get", "secrets", name="db")


def age(deployment: BundleDeployment) -> None:
    then = timezone.now() - timedelta(days=DAYS + 1)
    deployment.requests.update(settled_at=then)
    Content.objects.update(used_at=then)


@pytest.mark.thorough
def test_after_their_days_bytes_and_details_go_and_verdicts_and_the_audit_stay(
    site: DeployedSite, git_server: GitServer, s3: S3Server, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3.bucket()
    use_bucket(settings, monkeypatch, bucket)
    settings.PRATIQUE = {**settings.PRATIQUE, "KEEP_DAYS": DAYS}
    folder: Path = s3.files_of(bucket)
    put_password(site)
    repository = git_server.repository(site.namespace)
    done = [go_to(site, repository, version) for version in ("1.0.0", "2.0.0", "3.0.0", "4.0.0")]
    wished = done[0].deployment
    names = [store.path_of(str(one.content_id)) for one in done]
    before = [(folder / name).read_bytes() for name in names]
    assert not any(word in data for data in before for word in (PASSWORD.encode(), base64.b64encode(PASSWORD.encode())))
    said = set(AuditEntry.objects.values_list("pk", "hash"))
    verdicts = list(Verdict.objects.order_by("pk").values())
    tasks.clear()
    assert [(folder / name).exists() for name in names] == [True] * 4, "nothing goes before its time"

    age(wished)
    tasks.clear()
    assert [(folder / name).exists() for name in names] == [False, False, True, True]
    assert [one.reports.exists() for one in done] == [False, False, True, True]
    assert set(LookupAnswers.objects.values_list("request", flat=True)) == {done[2].pk, done[3].pk}
    assert list(Verdict.objects.order_by("pk").values()) == verdicts
    assert [one.reviews.get().reason for one in done] == [f"read {number}.0.0" for number in range(1, 5)]
    assert [bool(Request.objects.get(pk=one.pk).pins) for one in done] == [True] * 4
    assert said <= set(AuditEntry.objects.values_list("pk", "hash"))
    assert audit.verify_chain().is_whole

    with pytest.raises(InvalidInput, match="its content was removed on"):
        site.roll_back(wished)
    site.roll_back(wished, 3)
    site.work()
    assert (site.approve(wished).state, live(site)) == ("applied", "3.0.0")

    site.look_after(wished)  # which puts the finalizer on it
    site.delete(wished)
    site.work()
    assert site.approve(wished).state == "applied"
    site.look_after(wished)
    BundleDeployment.objects.filter(pk=wished.pk).update(gone_at=timezone.now() - timedelta(days=DAYS + 1))
    age(wished)
    tasks.clear()
    assert [one for one in folder.rglob("*") if one.is_file()] == []
    assert Verdict.objects.count() == len(verdicts) + 2
    assert audit.verify_chain().is_whole
