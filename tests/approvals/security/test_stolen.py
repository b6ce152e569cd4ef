"""S30: what a thief of the database, its dump, or the content folder finds, with the settings of production."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from approvals.encryption.keys import new_key
from tests.support.folders import ROOT
from tests.support.patience import scaled
from tests.support.servers.postgresql import find_programs

PASSWORD, TOKEN, LIVE, REPLY = "c4nary-password", "c4nary-token", "c4nary-live-value", "c4nary-reply-address"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()
CANARIES = [word.encode() for word in (PASSWORD, TOKEN, LIVE, REPLY, ENCODED)]
FILL = f"""
from django.utils import timezone
from approvals import services, store
from approvals.audit import Actor
from approvals.ledger import pivots
from approvals.models import ChatDelivery, Drift, InventoryItem, KeptValue, Report, Request, Revision
from provisioner.render import content_digest
from provisioner.values import Content, Manifest
now = timezone.now()
kubeconfig = '''
current-context: a
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]
clusters: [{{name: a, cluster: {{server: "https://cluster.example:6443"}}}}]
users: [{{name: a, user: {{token: {TOKEN}}}}}]
'''
cluster = services.register_cluster(name="prod", kubeconfig=kubeconfig, by=Actor("test", "shell"))
meta = {{"name": "x", "uid": "1", "generation": 1, "resourceVersion": "1"}}
wish = pivots.see(cluster=cluster, obj={{"metadata": meta, "spec": {{"sources": [1]}}}}, writer=None)
secret = Manifest({{"apiVersion": "v1", "kind": "Secret", "metadata": {{"name": "s"}}, "data": {{"p": "{ENCODED}"}},
                   "stringData": {{"q": "{PASSWORD}"}}}})
place = {{"install_namespace": "a", "service_account": "b"}}
content = store.put(Content((secret,), "a", "b", (), content_digest((secret,), **place)), format_name="plain")
request = Request.objects.get()
Report.objects.create(request=request, round=1, worst="safe", body={{"live": "{LIVE}"}}, computed_at=now,
                      exact_states={{"0": ["{LIVE}", "{PASSWORD}"]}})
KeptValue.objects.create(deployment=wish, place={{}}, place_key="k", sort="password", generation=1, value="{PASSWORD}",
                         first_request=request, made_at=now)
revision = Revision.objects.create(
    deployment=wish, number=1, request=request, content=content, state="active", started_at=now
)
item = InventoryItem.objects.create(
    deployment=wish, revision=revision, version="v1", kind="ConfigMap", name="x", nonce="n"
)
Drift.objects.create(
    item=item, revision=revision, state="open", kind="changed", fields=[{{"found": "{LIVE}"}}], found_at=now,
    changed_at=now,
)
ChatDelivery.objects.create(tool="slack", key="k", wish={{"reply_to": "https://{REPLY}"}}, received_at=now)
"""
READ = """
from approvals import store
from approvals.models import ChatDelivery, Cluster, Content, Drift, KeptValue, Report
values = [Cluster.objects.get().kubeconfig, store.get(Content.objects.get()).manifests[0].body]
values += [Report.objects.get().exact_states, KeptValue.objects.get().value, Report.objects.get().body, Drift.objects.get().fields, ChatDelivery.objects.get().wish]
print(values)
"""

LEAK = f"""
from approvals.models import Request
Request.objects.update(problem="{PASSWORD}")
"""


class Service:
    """Commands with the settings of production: nothing of a test run but its packages."""

    def __init__(self, folder: Path, database_url: str):
        self.folder = folder
        folder.mkdir()
        inherited = {name: value for name, value in os.environ.items() if name != "PYTEST_VERSION"}
        self.environment = {
            **{name: value for name, value in inherited.items() if not name.startswith("PRATIQUE_")},
            "PRATIQUE_DATABASE_URL": database_url,
            "PRATIQUE_CONTENT_DIR": str(folder / "content"),
            "PRATIQUE_SECRET_KEY": "x" * 50,
            "PRATIQUE_ENCRYPTION_KEYS": new_key(),
        }

    def run(self, *words: str, is_fine: bool = True, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "manage.py", *words], cwd=ROOT, env={**self.environment, **environment},
            capture_output=True, text=True, check=False, timeout=scaled(120), umask=0o022,
        )  # fmt: skip
        assert (done.returncode == 0) is is_fine, done.stderr
        return done.stdout + done.stderr

    def files(self) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Service:
    folder = tmp_path / "service"
    if request.param == "sqlite":
        return Service(folder, f"sqlite:///{folder}/pratique.sqlite3")
    postgres: Any = request.getfixturevalue("postgres")
    return Service(folder, str(postgres.fresh_database()))


def stolen(service: Service) -> bytes:
    """Every byte of the files, and of a dump of the database."""
    parts = list(service.files().values())
    url = service.environment["PRATIQUE_DATABASE_URL"]
    if url.startswith("postgres"):
        programs = find_programs()
        assert programs
        dumped = subprocess.run(
            [programs / "pg_dump", "--data-only", "--inserts", url], capture_output=True, check=True
        ).stdout
        parts += [dumped, bytes.fromhex(_hex_of(dumped))]
    return b"\0".join(parts)


def _hex_of(dump: bytes) -> str:
    """The columns of bytes, which a dump writes in hex."""
    words = [part.split("'")[0] for part in dump.decode().split(r"'\x")[1:]]
    return "00".join(words)


def found(data: bytes) -> list[bytes]:
    return [word for word in CANARIES if word in data]


@pytest.mark.thorough
def test_S30_no_credential_and_no_value_lies_in_a_stolen_database_or_content_store(service: Service) -> None:
    service.run("migrate", "--verbosity", "0")
    service.run("shell", "--verbosity", "0", "-c", FILL)
    assert found(stolen(service)) == []
    assert all(word.decode() in service.run("shell", "--verbosity", "0", "-c", READ) for word in CANARIES)
    assert {stat.S_IMODE(path.stat().st_mode) for path in service.files()} == {0o600}

    # The search finds what is there.
    service.run("shell", "--verbosity", "0", "-c", LEAK)
    (service.folder / "content" / "plain").write_text(TOKEN)
    assert {PASSWORD.encode(), TOKEN.encode()} <= set(found(stolen(service)))


def test_S30_nothing_starts_without_keys_or_with_bad_ones_and_says_why(tmp_path: Path) -> None:
    service = Service(tmp_path / "service", f"sqlite:///{tmp_path}/service/pratique.sqlite3")
    said = service.run("migrate", is_fine=False, PRATIQUE_ENCRYPTION_KEYS="")
    assert "PRATIQUE_ENCRYPTION_KEYS is empty: `pratique-manage new_encryption_key` prints a key." in said
    said = service.run("migrate", is_fine=False, PRATIQUE_ENCRYPTION_KEYS="hunter2hunter2")
    assert "PRATIQUE_ENCRYPTION_KEYS: key 1" in said
    assert "hunter2" not in said
    key = service.run("new_encryption_key", PRATIQUE_ENCRYPTION_KEYS="", PRATIQUE_SECRET_KEY="").strip()
    service.run("check", PRATIQUE_ENCRYPTION_KEYS=key)
    assert service.files() == {}


@pytest.mark.thorough
def test_S30_a_database_that_is_restored_without_its_key_says_which_key_it_needs(tmp_path: Path) -> None:
    service = Service(tmp_path / "service", f"sqlite:///{tmp_path}/service/pratique.sqlite3")
    service.run("migrate", "--verbosity", "0")
    service.run("shell", "--verbosity", "0", "-c", FILL)
    said = service.run("shell", "--verbosity", "0", "-c", READ, is_fine=False, PRATIQUE_ENCRYPTION_KEYS=new_key())
    assert "the kubeconfig of cluster prod is encrypted with the key" in said
    assert "which PRATIQUE_ENCRYPTION_KEYS does not have; nothing is lost: add that key and restart" in said
    assert found(said.encode()) == []
    said = service.run("rotate_encryption_keys", is_fine=False, PRATIQUE_ENCRYPTION_KEYS=new_key())
    assert "7 values are not encrypted with the first key. Keep every key you have." in said
    assert TOKEN in service.run("shell", "--verbosity", "0", "-c", READ)
