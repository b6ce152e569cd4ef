"""The stages joined: from sources to content, from content and cluster to a report, and into the cluster."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from provisioner import pipeline
from provisioner.cluster.api import Cluster
from provisioner.cluster.inventory import MemoryInventory, uids
from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch
from provisioner.reading import MAX_QUESTIONS
from provisioner.render import BUILT_IN
from provisioner.review.as_text import as_text
from provisioner.review.record import from_record, to_record
from provisioner.source import EgressPolicy, LocalSource
from provisioner.unpack import Limits
from provisioner.values import (
    Action,
    Content,
    Finding,
    HealthState,
    Identity,
    ObjectRef,
    OutcomeState,
    Pin,
    Plan,
    Report,
    Section,
    Severity,
    SourceKind,
    Tree,
)

RBAC = "rbac.authorization.k8s.io"
CONFIG_MAP = 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: "%s"}\n'


def bundle(folder: Path, **maps: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in maps.items():
        (folder / f"{name}.yaml").write_text(CONFIG_MAP % (name, value))
    return folder


def prepare(
    *sources: LocalSource, pins: tuple[Pin, ...] = (), namespace: str = "shop", subfolders: bool = False
) -> Content:
    return pipeline.prepare(
        sources,
        options=pipeline.PrepareOptions(namespace, "installer", allow_subfolders=subfolders),
        egress=EgressPolicy(),
        credentials=None,
        limits=Limits(),
        is_namespaced=BUILT_IN.get,
        pins=pins,
    )


# prepare


def test_a_folder_becomes_content_with_its_pin(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    assert [str(one.ref) for one in content.manifests] == ["ConfigMap shop/one"]
    assert [pin.kind for pin in content.pins] == [SourceKind.LOCAL]


def test_the_same_sources_give_the_same_digest(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x", two="y")))
    assert prepare(source).digest == prepare(source).digest


def test_several_sources_are_joined_at_their_destinations(tmp_path: Path) -> None:
    first = LocalSource(str(bundle(tmp_path / "a", one="x")))
    second = LocalSource(str(bundle(tmp_path / "b", two="y")), destination="extra")
    content = prepare(first, second, subfolders=True)
    assert sorted(one.ref.name for one in content.manifests) == ["one", "two"]
    assert [pin.destination for pin in content.pins] == ["", "extra"]


def test_a_source_that_is_no_longer_what_was_pinned_is_refused(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    pins = prepare(source).pins
    bundle(tmp_path, one="changed")
    with pytest.raises(DigestMismatch, match="pinned was"):
        prepare(source, pins=pins)


def test_a_source_that_still_is_what_was_pinned_is_taken(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    first = prepare(source)
    assert prepare(source, pins=first.pins) == first


def test_each_source_needs_its_pin(tmp_path: Path) -> None:
    source = LocalSource(str(bundle(tmp_path, one="x")))
    with pytest.raises(BadSource, match="one for each"):
        prepare(source, pins=(*prepare(source).pins, *prepare(source).pins))


def test_no_source_is_no_bundle() -> None:
    with pytest.raises(BadSource):
        prepare()


@pytest.mark.parametrize(
    ("trees", "words"),
    [
        pytest.param([("", {"a": b""}), ("", {"b": b""})], "two sources", id="the same destination"),
        pytest.param([("x", {"a": b""}), ("/x/", {"b": b""})], "two sources", id="the same, written differently"),
        pytest.param([("", {"x/a": b""}), ("x", {"b": b""})], "destination of another", id="a file inside another's"),
        pytest.param([("", {"x": b""}), ("x", {"b": b""})], "destination of another", id="a file where a folder goes"),
        pytest.param([("x", {"y/a": b""}), ("x/y", {"b": b""})], "destination of another", id="nested destinations"),
        pytest.param([("../x", {"a": b""})], "plain folder", id="climbing"),
        pytest.param([("x/../../y", {"a": b""})], "plain folder", id="climbing inside"),
        pytest.param([("x//y", {"a": b""})], "plain folder", id="empty part"),
        pytest.param([("x\\y", {"a": b""})], "plain folder", id="backslash"),
    ],
)
def test_destinations_must_not_overlap(trees: list[tuple[str, dict[str, bytes]]], words: str) -> None:
    with pytest.raises(BadSource, match=words):
        pipeline.join([(folder, Tree(files)) for folder, files in trees], Limits())


def test_destinations_beside_each_other_are_fine() -> None:
    trees = [("", {"a": b"1"}), ("x", {"a": b"2"}), ("xy", {"a": b"3"}), ("x/y", {"a": b"4"})]
    joined = pipeline.join([(folder, Tree(files)) for folder, files in trees], Limits())
    assert joined.files == {"a": b"1", "x/a": b"2", "xy/a": b"3", "x/y/a": b"4"}


def test_all_sources_together_stay_below_the_limit() -> None:
    trees = [("", Tree({"a": b"x" * 60})), ("b", Tree({"a": b"x" * 60}))]
    with pytest.raises(BundleTooLarge, match="max_bytes"):
        pipeline.join(trees, Limits(max_bytes=100))


# look_offline


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


# deploy: what is wrong is found before anything is touched


def test_promise_1_other_bytes_than_the_reviewed_ones_are_refused_before_anything_is_touched(tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))))
    forged = replace(content, manifests=prepare(LocalSource(str(bundle(tmp_path / "b", one="y")))).manifests)
    nobody = Cluster.connect(_kubeconfig_to_nowhere(), timeout_seconds=1.0)
    with pytest.raises(DigestMismatch, match="reviewed was"):
        pipeline.deploy(nobody, forged, Plan((), ""), inventory=MemoryInventory())


def _kubeconfig_to_nowhere() -> dict[str, object]:
    return {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "t"}}],
    }


# on a real API server


@pytest.fixture
def api(controlplane) -> Cluster:  # type: ignore[no-untyped-def]
    return Cluster.connect(controlplane.kubeconfig("admin"), timeout_seconds=20.0)


@pytest.fixture
def namespace(api: Cluster) -> Iterator[str]:
    name = f"pipeline-{uuid.uuid4().hex[:8]}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    api.delete(ObjectRef("", "v1", "Namespace", "", name))


def test_a_bundle_is_looked_at_deployed_observed_and_removed(api: Cluster, namespace: str, tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, one="x", two="y"))), namespace=namespace)
    inventory = MemoryInventory()
    first = pipeline.look(api, content, previous=None, inventory={})
    assert {one.action for one in first.plan.actions} == {Action.CREATE}
    assert first.worst is Severity.SAFE
    assert pipeline.plan_again(api, content, previous=None, inventory={}).digest == first.plan.digest

    done = list(pipeline.deploy(api, content, first.plan, inventory=inventory, deadline_seconds=60))
    assert {one.state for one in done} == {OutcomeState.DONE}
    refs = [one.ref for one in content.manifests]
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.CURRENT}

    owned = uids(inventory.items().values())
    again = pipeline.look(api, content, previous=content, inventory=owned)
    assert {one.action for one in again.plan.actions} == {Action.NONE}

    gone = list(pipeline.remove(api, inventory, deadline_seconds=60))
    assert {one.state for one in gone} == {OutcomeState.DONE}
    assert {one.state for one in pipeline.observe(api, refs).values()} == {HealthState.NOT_FOUND}
    assert inventory.items() == {}


def test_somebody_elses_object_is_a_breaking_finding(api: Cluster, namespace: str, tmp_path: Path) -> None:
    content = prepare(LocalSource(str(bundle(tmp_path, taken="x"))), namespace=namespace)
    api.create({**content.manifests[0].body, "metadata": {"name": "taken", "namespace": namespace}})
    found = pipeline.look(api, content, previous=None, inventory={}).findings
    assert ("OWN-02", Severity.BREAKING) in [(one.rule, one.severity) for one in found]


def test_what_the_installer_may_not_do_is_a_finding(api: Cluster, namespace: str, tmp_path: Path) -> None:
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))), namespace=namespace)
    weak = Identity.of_service_account(namespace, "weak")
    found = pipeline.look(api, content, previous=None, inventory={}, as_account=weak).findings
    assert [one.rule for one in found if one.severity is Severity.BREAKING] == ["PRE-01"]


def test_what_the_reader_may_not_read_is_an_unknown_finding(api: Cluster, namespace: str, tmp_path: Path) -> None:
    api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "weak", "namespace": namespace}})
    content = prepare(LocalSource(str(bundle(tmp_path, one="x"))), namespace=namespace)
    blind = api.acting_as(Identity.of_service_account(namespace, "weak"))
    found = pipeline.look(blind, content, previous=None, inventory={}).findings
    assert ("GAP", Severity.UNKNOWN) in [(one.rule, one.severity) for one in found]


def test_new_permissions_are_compared_with_what_the_cluster_grants_already(
    api: Cluster, namespace: str, tmp_path: Path
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


def test_a_first_install_with_its_own_namespace_leaves_nothing_unknown(api: Cluster, tmp_path: Path) -> None:
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
    api: Cluster, namespace: str, tmp_path: Path
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
        until = time.monotonic() + 30
        while api.resource_of("evidence.example.com", "v1", words["kind"]) is None and time.monotonic() < until:
            time.sleep(0.2)
        api.create({**body, "spec": {"used": "Pl4nted"}}, field_manager="somebody")
        owned = uids(inventory.items().values())
        found = pipeline.look(api, after, previous=before, inventory=owned).findings
    finally:
        list(pipeline.remove(api, inventory))
    by_path = {one.path[-1]: one.severity for one in found if one.rule == "SCH-01"}
    assert by_path == {"used": Severity.BREAKING, "unused": Severity.DANGEROUS}
    assert "1 of 1 objects checked" in next(one.message for one in found if one.rule == "LIV-07")
    assert "Pl4nted" not in str(found)


# the preflight as a part of the report


def installer_of(api: Cluster, namespace: str) -> Identity:
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


def test_the_yaml_of_a_report_applied_makes_the_next_look_clean(api: Cluster, namespace: str, tmp_path: Path) -> None:
    weak = installer_of(api, namespace)
    (bundle(tmp_path, one="x", two="y") / "robot.yaml").write_text(ROBOT)
    content = prepare(LocalSource(str(tmp_path)), namespace=namespace)

    first = pipeline.look(api, content, previous=None, inventory={}, as_account=weak)
    stopped = [one for one in preflight_of(first) if one.severity is Severity.BREAKING]
    assert {one.ref.identity for one in stopped if one.ref} == {one.ref.identity for one in content.manifests}
    assert all("API server says no" in " ".join(one.evidence["said"]) for one in stopped if one.rule == "PRE-01")
    assert all("dry_run" in one.evidence for one in stopped if one.rule == "PRE-01")
    assert len([one for one in first.plan.actions if one.problem]) == len(content.manifests)
    assert from_record(json.loads(json.dumps(to_record(first)))).findings == first.findings

    remedy = next(one for one in first.findings if one.rule == "PRE-RULES")
    assert remedy.evidence["yaml"].rstrip() in as_text(first)
    for obj in yaml.safe_load_all(remedy.evidence["yaml"]):
        api.apply(obj, field_manager="test")

    def is_clean() -> bool:
        again = pipeline.look(api, content, previous=None, inventory={}, as_account=weak)
        return not preflight_of(again) and not [one for one in again.plan.actions if one.problem]

    assert _in_time(is_clean)


def test_an_account_whose_roles_allow_everything_needs_no_question(
    api: Cluster, namespace: str, tmp_path: Path
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
        assert _in_time(lambda: "API server agrees" in unknown(mute, content, weak))
        api.create(boss)
        assert _in_time(lambda: unknown(mute, content, weak) == "")
    finally:
        for obj in (reader, binding, boss):
            api.delete(ObjectRef.of(obj))


def unknown(reader: Cluster, content: Content, account: Identity) -> str:
    found = pipeline.look(reader, content, previous=None, inventory={}, as_account=account)
    return "; ".join(one.message for one in preflight_of(found) if one.severity is Severity.UNKNOWN)


def _in_time(holds: Callable[[], bool]) -> bool:
    """Whether it holds once the API server's authorizer has seen what was granted."""
    until = time.monotonic() + 30
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.3)
    return True


def test_an_account_that_lacks_very_much_is_asked_about_in_bounds_and_the_rest_is_said(
    api: Cluster, namespace: str, tmp_path: Path
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
