"""From content, and a cluster where there is one, to a report."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import yaml

from provisioner import pipeline
from provisioner.cluster.annotations import NONCE
from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.live_reads import MAX_QUESTIONS
from provisioner.review.base.record import from_record, to_record
from provisioner.review.output.terminal import as_text
from provisioner.source import LocalSource
from provisioner.values import Action, Content, Finding, Identity, ObjectRef, OutcomeState, Report, Section, Severity
from tests.provisioner.pipeline.staging import bundle, prepare
from tests.support.kubernetes.live import until_served, wait_until

RBAC = "rbac.authorization.k8s.io"


def test_two_bundles_are_compared_without_a_cluster(tmp_path: Path) -> None:
    old = prepare(LocalSource(str(bundle(tmp_path / "old", same="x", changed="x", gone="x"))))
    new = prepare(LocalSource(str(bundle(tmp_path / "new", same="x", changed="y", come="x"))))
    plan = pipeline.look_offline(new, old).plan
    assert {one.ref.name: one.action for one in plan.actions} == {
        "same": Action.NONE,
        "changed": Action.UPDATE,
        "come": Action.CREATE,
        "gone": Action.DELETE,
    }


def test_an_offline_plan_can_never_be_applied_by_uid(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    assert not [one for one in pipeline.look_offline(content, content).plan.actions if one.uid or one.is_proved]


def test_somebody_elses_object_is_a_breaking_finding(api: ClusterClient, namespace: str, tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, taken="x"))), namespace=namespace)
    api.create({**content.manifests[0].body, "metadata": {"name": "taken", "namespace": namespace}})
    found = pipeline.look(api, content, previous=None, inventory={}).findings
    assert ("OWN-02", Severity.BREAKING) in [(one.rule, one.severity) for one in found]


def test_somebody_elses_object_is_planned_as_if_adopted_for_who_reviews_with_their_own_credential(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, taken="x"))), namespace=namespace)
    api.create({**content.manifests[0].body, "data": {"other": "y"}}, field_manager="kubectl-create")
    report = pipeline.look(api, content, previous=None, inventory={}, is_for_reader=True)
    (planned,) = report.plan.actions
    assert (planned.action, planned.problem) == (Action.UPDATE, "")
    assert [one.rule for one in report.findings if one.rule.startswith("OWN-0")] == ["OWN-03"]
    assert "1 object belongs to nobody by their marks (written by kubectl-create)" in as_text(report).replace(
        "\n       ", ""
    )


def test_what_the_installer_may_not_do_is_a_finding(api: ClusterClient, namespace: str, tmp_path: Path) -> None:
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))), namespace=namespace)
    weak = Identity.of_service_account(namespace, "weak")
    found = pipeline.look(api, content, previous=None, inventory={}, as_account=weak).findings
    assert [one.rule for one in found if one.severity is Severity.BREAKING] == ["PRE-01"]


def test_what_the_reader_may_not_read_is_an_unknown_finding(api: ClusterClient, namespace: str, tmp_path: Path) -> None:
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))), namespace=namespace)
    blind = api.acting_as(Identity.of_service_account(namespace, "weak"))
    found = pipeline.look(blind, content, previous=None, inventory={}).findings
    assert ("GAP", Severity.UNKNOWN) in [(one.rule, one.severity) for one in found]


def test_new_permissions_are_compared_with_what_the_cluster_grants_already(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    name = f"reader-{namespace}"
    text = f"""\
apiVersion: v1
kind: ServiceAccount
metadata: {{name: robot}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}}
subjects: [{{kind: ServiceAccount, name: robot, namespace: {namespace}}}]
"""
    (tmp_path / "all.yaml").write_text(text)
    content = prepare(LocalSource(str(tmp_path)), namespace=namespace)
    found = pipeline.look(api, content, previous=None, inventory={}).findings
    gained = next(one for one in found if one.rule == "RB-DIFF")
    assert f"{namespace}/robot" in gained.message
    assert not [one for one in found if one.severity is Severity.UNKNOWN]


def test_a_first_install_with_its_own_namespace_leaves_nothing_unknown(api: ClusterClient, tmp_path: Path) -> None:
    name = f"first-{uuid.uuid4().hex[:8]}"
    text = f"""\
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers:
      - {{name: web, image: "example.com/web@sha256:{"0" * 64}", ports: [{{containerPort: 80}}]}}
"""
    (tmp_path / "all.yaml").write_text(text)
    content = prepare(LocalSource(str(tmp_path)), namespace=name)
    found = pipeline.look(api, content, previous=None, inventory={}).findings
    assert not [one.message for one in found if one.severity is Severity.UNKNOWN]
    assert "OBJ-03" in [one.rule for one in found]


CRD = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %(plural)s.evidence.example.com}
spec:
  group: evidence.example.com
  scope: Namespaced
  names: {plural: %(plural)s, singular: %(singular)s, kind: %(kind)s, listKind: %(kind)sList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {%(fields)s}}}
"""


def test_the_objects_of_a_changed_crd_settle_what_its_schemas_suspect(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    word = f"live{uuid.uuid4().hex[:8]}"
    words = {"plural": f"{word}s", "singular": word, "kind": word.capitalize()}
    old, new = tmp_path / "old", tmp_path / "new"
    for folder, fields in ((old, "used: {type: string}, unused: {type: string}"), (new, "")):
        folder.mkdir()
        (folder / "crd.yaml").write_text(CRD % {**words, "fields": fields})
    before, after = (prepare(LocalSource(str(folder)), namespace=namespace) for folder in (old, new))
    inventory = MemoryInventory()
    plan = pipeline.look(api, before, previous=None, inventory={}).plan
    assert {one.state for one in pipeline.deploy(api, before, plan, inventory=inventory)} == {OutcomeState.DONE}
    try:
        meta = {"name": "one", "namespace": namespace}
        body = {"apiVersion": "evidence.example.com/v1", "kind": words["kind"], "metadata": meta}
        until_served(api, "evidence.example.com", "v1", words["kind"])
        api.create({**body, "spec": {"used": "Pl4nted"}}, field_manager="somebody")
        owned = uids(inventory.items().values())
        found = pipeline.look(api, after, previous=before, inventory=owned).findings
    finally:
        list(pipeline.remove(api, inventory))
    by_path = {one.path[-1]: one.severity for one in found if one.rule == "SCH-01"}
    assert by_path == {"used": Severity.BREAKING, "unused": Severity.DANGEROUS}
    assert "1 of 1 objects checked" in next(one.message for one in found if one.rule == "LIV-07")
    assert "Pl4nted" not in str(found)


def test_who_reads_with_their_own_credential_is_told_everything(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    """What live objects decide is withheld in a report that many read, and in that of the reader is not."""
    ours = {"name": "web", "namespace": namespace, "annotations": {NONCE: "n-1"}}
    made = api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": ours, "data": {"mode": "old"}})
    content = prepare(LocalSource(str(bundle(tmp_path, web="x"))), namespace=namespace)
    inventory = {ObjectRef.of(made).identity: str(made["metadata"]["uid"])}
    many = pipeline.look(api, content, previous=None, inventory=inventory)
    one = pipeline.look(api, content, previous=None, inventory=inventory, is_for_reader=True)
    assert any(it.is_withheld for it in many.findings)
    assert not any(it.is_withheld or it.is_private for it in one.findings)
    assert {(it.rule, it.severity) for it in many.findings} == {(it.rule, it.severity) for it in one.findings}


def installer_of(api: ClusterClient, namespace: str) -> Identity:
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    return Identity.of_service_account(namespace, "weak")


def bound(namespace: str, role: str, *, everywhere: bool = False) -> dict[str, Any]:
    meta = {"name": f"{namespace}-weak"} | ({} if everywhere else {"namespace": namespace})
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding" if everywhere else "RoleBinding",
        "metadata": meta,
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": "weak", "namespace": namespace}],
    }


ROBOT = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: robot}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: robot}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: robot}
subjects: [{kind: ServiceAccount, name: default}]
"""


def preflight_of(report: Report) -> list[Finding]:
    return report.in_section(Section.PREFLIGHT)


def test_the_yaml_of_a_report_applied_makes_the_next_look_clean(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    weak = installer_of(api, namespace)
    (bundle(tmp_path, one="x", two="y") / "robot.yaml").write_text(ROBOT)
    content = prepare(LocalSource(str(tmp_path)), namespace=namespace)

    first = pipeline.look(api, content, previous=None, inventory={}, as_account=weak)
    stopped = [one for one in preflight_of(first) if one.severity is Severity.BREAKING]
    assert {one.ref.identity for one in stopped if one.ref} == {one.ref.identity for one in content.manifests}
    assert all("API server says no" in " ".join(one.evidence["said"]) for one in stopped if one.rule == "PRE-01")
    assert all("dry_run" in one.evidence for one in stopped if one.rule == "PRE-01")
    assert len([one for one in first.plan.actions if one.problem]) == len(content.manifests)
    record = json.loads(json.dumps(to_record(first)))
    assert to_record(from_record(record)) == record

    remedy = next(one for one in first.findings if one.rule == "PRE-RULES")
    assert remedy.evidence["yaml"].rstrip() in as_text(first)
    for obj in yaml.safe_load_all(remedy.evidence["yaml"]):
        api.apply(obj, field_manager="test")

    def is_clean() -> bool:
        again = pipeline.look(api, content, previous=None, inventory={}, as_account=weak)
        return not preflight_of(again) and not [one for one in again.plan.actions if one.problem]

    wait_until(is_clean, "a clean look")


def test_an_account_whose_roles_allow_everything_needs_no_question(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    """The reader may not ask a single one; for an account without rights that is an unknown finding."""
    weak = installer_of(api, namespace)
    (bundle(tmp_path, one="x") / "robot.yaml").write_text(ROBOT)
    content = prepare(LocalSource(str(tmp_path)), namespace=namespace)
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    meta = {"name": f"{namespace}-reader"}
    reader = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": meta, "rules": rules}
    mute = api.acting_as(Identity.of_service_account(namespace, "mute"))
    binding = bound(namespace, f"{namespace}-reader", everywhere=True)
    binding["metadata"]["name"] = f"{namespace}-mute"
    binding["subjects"][0]["name"] = "mute"
    boss = bound(namespace, "cluster-admin", everywhere=True)
    try:
        for obj in (reader, binding):
            api.create(obj)
        wait_until(lambda: "API server agrees" in unknown(mute, content, weak))
        api.create(boss)
        wait_until(lambda: unknown(mute, content, weak) == "")
    finally:
        for obj in (reader, binding, boss):
            api.delete(ObjectRef.of(obj))


def unknown(reader: ClusterClient, content: Content, account: Identity) -> str:
    found = pipeline.look(reader, content, previous=None, inventory={}, as_account=account)
    return "; ".join(one.message for one in preflight_of(found) if one.severity is Severity.UNKNOWN)


def test_an_account_that_lacks_very_much_is_asked_about_in_bounds_and_the_rest_is_said(
    api: ClusterClient, namespace: str, tmp_path: Path
) -> None:
    weak = installer_of(api, namespace)
    maps = {f"map-{number}": "x" for number in range(MAX_QUESTIONS // 2)}
    content = prepare(LocalSource(str(bundle(tmp_path, **maps))), namespace=namespace)
    report = pipeline.look(api, content, previous=None, inventory={}, as_account=weak)
    found = preflight_of(report)
    asked = [words for one in found for words in one.evidence.get("said", ()) if "the API server says" in words]
    assert len(asked) == MAX_QUESTIONS
    assert [f"about {MAX_QUESTIONS} missing rights" in one.message for one in found if one.rule == "PRE-12"] == [True]
    (lacking,) = [one for one in found if one.rule == "PRE-01"]  # said once, of all of them
    assert set(lacking.evidence["objects"]) == {f"ConfigMap {namespace}/{name}" for name in maps}
