"""The migrations that encrypt, beside a process of the version before that goes on writing (security-rules.md S30)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from approvals.encryption.keys import new_key
from tests.support.approvals.databases import AT, MODELS
from tests.support.folders import ROOT
from tests.support.patience import scaled

SECONDS = 120
CANARY = "c4nary-written-by-an-old-process"
# What an old process does: it knows the plain columns only.
BEFORE = """
import hashlib
from django.core.files.base import ContentFile
from django.core.files.storage import storages
cluster = model("Cluster").create(name="known", uid="u", created_at=now, kubeconfig="first")
deployment = model("BundleDeployment").create(
    cluster=cluster, uid="1", name="x", generation=1, resource_version="1", spec={}, options_digest="", seen_at=now,
)
request = model("Request").create(
    deployment=deployment, number=1, generation=1, spec={}, options_digest="", state="failed",
    created_at=now, changed_at=now, expires_at=now,
)
content = model("Content").create(
    digest="sha256:" + "a" * 64, install_namespace="n", service_account="s", format="plain", object_count=1, byte_count=1,
    created_at=now,
)
revision = model("Revision").create(
    deployment=deployment, number=1, request=request, content=content, state="active", started_at=now,
)
item = model("InventoryItem").create(
    deployment=deployment, revision=revision, version="v1", kind="ConfigMap", namespace="shop", name="s", nonce="n", uid="u",
)
print("filled")
"""
SINCE = f"""
from django.core.files.base import ContentFile
from django.core.files.storage import storages
text = "{CANARY}"
model("Cluster").filter(name="known").update(kubeconfig=text + "-newer")
model("Cluster").create(name="new", uid="v", created_at=now, kubeconfig=text)
request, revision = model("Request").get(), model("Revision").get()
model("Report").create(
    request=request, round=1, worst="safe", headline=[], severities={{}}, actions={{}}, body={{"a": text}}, computed_at=now,
)
model("Drift").create(
    item=model("InventoryItem").get(), revision=revision, state="open", kind="changed", fields=[{{"a": text}}],
    found_at=now, changed_at=now,
)
model("ChatDelivery").create(tool="slack", key="k", wish={{"a": text}}, received_at=now)
storages["content"].save("sha256/aa/" + "a" * 64, ContentFile(text.encode()))
print("written")
"""
# Holds its transaction open until the migration waits for it. On a slow machine that may begin too late to wait, which
# the test then does not notice.
SLOW = f"""
import sys, time
from django.db import transaction
with transaction.atomic():
    model("Cluster").create(name="slow", uid="w", created_at=now, kubeconfig="{CANARY}-slow")
    model("Cluster").filter(name="known").update(kubeconfig="{CANARY}-slow")
    print("holding", flush=True)
    time.sleep(6)
    at = time.monotonic()
print("let go", at, flush=True)
"""
READ = """
import json
from django.core.files.storage import storages
from approvals.models import ChatDelivery, Cluster, Content, Drift, Report
from approvals.encryption.envelope import StoredPlace, decrypt_file
with storages["content"].open("sha256/aa/" + "a" * 64, "rb") as file:
    content = decrypt_file(file, place=StoredPlace("content", ("sha256:" + "a" * 64,))).decode() if %(content)s else ""
print(json.dumps({
    "clusters": {one.name: one.kubeconfig for one in Cluster.objects.order_by("name")},
    "reports": [one.body for one in Report.objects.all()],
    "drifts": [one.fields for one in Drift.objects.all()],
    "wishes": [one.wish for one in ChatDelivery.objects.all()],
    "content": content,
}))
"""


class Place:
    """A database and a content store, with the same key for every process."""

    def __init__(self, url: str, folder: Path) -> None:
        self.environment = {
            **os.environ,
            "PRATIQUE_DATABASE_URL": url,
            "PRATIQUE_CONTENT_DIR": str(folder / "content"),
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        }

    def manage(self, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=scaled(SECONDS),
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def migrate(self, *to: str) -> None:
        self.manage("migrate", "--verbosity", "0", *to)

    def old(self, program: str, number: str = "0020") -> list[str]:
        """A command that runs as the tables were at a migration."""
        text = MODELS + AT.replace("{number}", number) + program
        return ["shell", "--verbosity", "0", "-c", text]

    def read(self, *, content: bool) -> dict[str, object]:
        found = self.manage("shell", "--verbosity", "0", "-c", READ % {"content": content}).splitlines()[-1]
        answer: dict[str, object] = json.loads(found)
        return answer


@pytest.fixture
def place(database_url: str, tmp_path: Path) -> Place:
    made = Place(database_url, tmp_path)
    made.migrate("approvals", "0018")
    made.manage(*made.old(BEFORE, "0018"))
    made.migrate("approvals", "0020")
    return made


@pytest.mark.thorough
def test_S30_what_an_old_process_wrote_between_two_migrations_is_encrypted_and_kept(place: Place) -> None:
    place.manage(*place.old(SINCE))
    place.migrate()
    assert place.read(content=True) == {
        "clusters": {"known": f"{CANARY}-newer", "new": CANARY},
        "reports": [{"a": CANARY}],
        "drifts": [[{"a": CANARY}]],
        "wishes": [{"a": CANARY}],
        "content": CANARY,
    }


@pytest.mark.thorough
def test_S30_a_write_that_is_not_ended_when_the_migration_begins_is_waited_for(place: Place) -> None:
    place.manage(*place.old(SINCE))
    command = [sys.executable, "manage.py", *place.old(SLOW)]
    with subprocess.Popen(command, cwd=ROOT, env=place.environment, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "holding\n"
            place.migrate()
            migrated_at = time.monotonic()
            said, let_go_at = writer.stdout.readline().rsplit(maxsplit=1)
            assert (said, writer.wait(timeout=scaled(SECONDS))) == ("let go", 0)
            assert float(let_go_at) < migrated_at
        finally:
            writer.kill()
    clusters = place.read(content=True)["clusters"]
    assert clusters == {"known": f"{CANARY}-slow", "new": CANARY, "slow": f"{CANARY}-slow"}
