"""What pods need to start: objects by name, nodes that fit, and classes for their claims."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from provisioner.api_groups import RBAC_GROUP
from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.availability import pod_needs
from provisioner.review.frame import listings, mentioned
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import (
    an_object,
    config_map,
    content_with,
    core_ref,
    facts,
    findings_of,
    judged_by,
    named,
    planned,
    reading,
    web_workload,
)

find_needs = partial(findings_of, pod_needs.NEEDS_CHECK)


@pytest.mark.parametrize(
    ("pod", "exists", "severities"),
    [
        pytest.param(web_workload(env=[reading("Secret", "s", "k")]), {core_ref("Secret", "s"): True}, [], id="there"),
        pytest.param(
            web_workload(env=[reading("Secret", "s", "k")]),
            {core_ref("Secret", "s"): False},
            [Severity.BREAKING],
            id="nowhere",
        ),
        pytest.param(web_workload(env=[reading("Secret", "s", "k")]), {}, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(web_workload(env=[reading("Secret", "s", optional=True)]), {}, [], id="optional"),
        pytest.param(
            web_workload(volumes=[{"name": "v", "configMap": {"name": "c"}}]),
            {core_ref("ConfigMap", "c"): False},
            [Severity.BREAKING],
            id="a volume",
        ),
        pytest.param(
            web_workload(volumes=[{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]),
            {core_ref("Secret", "s"): False},
            [Severity.BREAKING],
            id="inside a projected volume",
        ),
        pytest.param(
            web_workload(volumes=[{"name": "v", "configMap": {"name": "kube-root-ca.crt"}}]),
            {},
            [],
            id="in every namespace",
        ),
    ],
)
def test_what_pods_read_has_to_be_there(
    pod: dict[str, Any], exists: dict[ObjectRef, bool], severities: list[Severity]
) -> None:
    found = find_needs(planned(pod, Action.CREATE), exists=exists)
    assert [one.severity for one in named(found, "SEC-04")] == severities


@pytest.mark.parametrize(
    ("key", "count"), [pytest.param("a", 0, id="a key it has"), pytest.param("b", 1, id="a key it has not")]
)
def test_a_map_of_the_bundle_needs_the_key_that_is_read(key: str, count: int) -> None:
    pod = web_workload(env=[reading("ConfigMap", "settings", key)])
    found = find_needs(planned(config_map(a="x"), Action.CREATE), planned(pod, Action.CREATE))
    assert len(named(found, "SEC-04")) == count


def test_a_secret_that_an_object_of_the_bundle_makes_is_no_obstacle() -> None:
    certificate = an_object("cert-manager.io/v1", "Certificate", "web", "shop", spec={"secretName": "tls"})
    pod = web_workload(env=[reading("Secret", "tls", "tls.crt")])
    exists = {core_ref("Secret", "tls"): False}
    (found,) = named(
        find_needs(planned(certificate, Action.CREATE), planned(pod, Action.CREATE), exists=exists), "SEC-04"
    )
    assert found.severity is Severity.NOTABLE
    assert "Certificate.cert-manager.io shop/web" in found.message


def test_a_pull_secret_that_nobody_has_is_said() -> None:
    pod = web_workload(imagePullSecrets=[{"name": "pull"}])
    found = find_needs(planned(pod, Action.CREATE), exists={core_ref("Secret", "pull"): False})
    assert [one.severity for one in named(found, "IMG-09")] == [Severity.DANGEROUS]


def test_of_secrets_only_existence_is_asked() -> None:
    given = facts(planned(web_workload(env=[reading("Secret", "s", "k")]), Action.CREATE))
    assert mentioned(given, [pod_needs.NEEDS_CHECK]) == [core_ref("Secret", "s")]


MOUNTING = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


@pytest.mark.parametrize(
    ("pod", "missing", "words"),
    [
        pytest.param(
            MOUNTING, core_ref("PersistentVolumeClaim", "data"), "mounts PersistentVolumeClaim shop/data", id="claim"
        ),
        pytest.param(
            {"serviceAccountName": "web"},
            core_ref("ServiceAccount", "web"),
            "runs as ServiceAccount shop/web",
            id="account",
        ),
    ],
)
def test_claims_and_accounts_have_to_be_there(pod: dict[str, Any], missing: ObjectRef, words: str) -> None:
    made = planned(web_workload(**pod), Action.CREATE)
    (found,) = named(find_needs(made, exists={missing: False}), "SEC-04")
    assert found.severity is Severity.BREAKING
    assert words in found.message
    assert named(find_needs(made, exists={missing: True}), "SEC-04") == []


def test_the_default_account_is_in_every_namespace() -> None:
    pod = planned(web_workload(serviceAccountName="default"), Action.CREATE)
    assert named(find_needs(pod), "SEC-04") == []
    assert mentioned(facts(pod), [pod_needs.NEEDS_CHECK]) == []


def test_what_exists_and_is_deleted_by_the_change_is_missing_afterwards() -> None:
    pod, gone = web_workload(env=[reading("ConfigMap", "settings", "a")]), config_map(a="x")
    actions = [planned(pod, Action.NONE), planned(gone, Action.DELETE, before=gone)]
    (found,) = named(find_needs(*actions, exists={core_ref("ConfigMap", "settings"): True}), "SEC-04")
    assert (found.severity, "which this change deletes" in found.message) == (Severity.BREAKING, True)


def rights(account: str, resource: str, verb: str) -> list[Any]:
    role = an_object(
        f"{RBAC_GROUP}/v1", "Role", "r", "shop", rules=[{"apiGroups": [""], "resources": [resource], "verbs": [verb]}]
    )
    binding = an_object(
        f"{RBAC_GROUP}/v1",
        "RoleBinding",
        "r",
        "shop",
        roleRef={"apiGroup": RBAC_GROUP, "kind": "Role", "name": "r"},
        subjects=[{"kind": "ServiceAccount", "name": account, "namespace": "shop"}],
    )
    return [planned(one, Action.CREATE) for one in (role, binding)]


@pytest.mark.parametrize(
    ("account", "resource", "verb", "severity"),
    [
        pytest.param("redis", "secrets", "create", Severity.NOTABLE, id="may make it"),
        pytest.param("redis", "secrets", "get", Severity.BREAKING, id="may only read it"),
        pytest.param("redis", "configmaps", "create", Severity.BREAKING, id="may make something else"),
        pytest.param("stranger", "secrets", "create", Severity.BREAKING, id="no pod runs as the account"),
    ],
)
def test_an_account_of_the_bundle_that_may_make_it_is_named(
    account: str, resource: str, verb: str, severity: Severity
) -> None:
    """So the init container of Argo CD's Redis makes the Secret of its password."""
    pod = planned(web_workload(env=[reading("Secret", "password", "auth")], serviceAccountName="redis"), Action.CREATE)
    exists = {core_ref("Secret", "password"): False, core_ref("ServiceAccount", "redis"): True}
    (found,) = named(find_needs(pod, *rights(account, resource, verb), exists=exists), "SEC-04")
    assert found.severity is severity
    assert ("unless a container of their own makes it" in found.message) is (severity is Severity.NOTABLE)


def certgen(kind: str = "Job", name: str = "certgen") -> dict[str, Any]:
    spec = {"serviceAccountName": "certgen", "containers": [{"name": "main", "image": "x"}]}
    return an_object("batch/v1" if kind == "Job" else "apps/v1", kind, name, "shop", spec={"template": {"spec": spec}})


def of_secret(*others: dict[str, Any], exists: bool | None = False, **rest: Any) -> tuple[Severity, str]:
    """What is said of a pod that reads a Secret that others may make."""
    pod = web_workload(volumes=[{"name": "v", "secret": {"secretName": "tls"}}])
    there = {core_ref("ServiceAccount", "certgen"): True} | (
        {} if exists is None else {core_ref("Secret", "tls"): exists}
    )
    actions = [planned(pod, Action.CREATE), *(planned(one, Action.CREATE) for one in others)]
    (found,) = named(find_needs(*actions, exists=there, **rest), "SEC-04")
    return found.severity, found.message.partition("Secret shop/tls, ")[2]


def test_a_job_whose_account_may_create_the_secret_is_named() -> None:
    """So certgen of Contour makes the certificates that Envoy and Contour read."""
    made = [one.after for one in rights("certgen", "secrets", "create")]
    severity, words = of_secret(certgen(), certgen("Deployment", "an-operator"), *made)
    assert severity is Severity.NOTABLE
    assert words.partition(": ")[0] == "which is neither in the bundle nor in the cluster"
    assert words.endswith("do not start unless Job shop/certgen or Deployment shop/an-operator makes it")


def test_a_job_that_the_cluster_itself_gives_the_right_is_named() -> None:
    given = tuple(one.after for one in rights("certgen", "secrets", "create"))
    severity, words = of_secret(certgen(), live_rbac=given)
    assert (severity, "unless Job shop/certgen makes it" in words) == (Severity.NOTABLE, True)


def test_a_job_without_the_right_makes_nothing() -> None:
    assert of_secret(certgen(), live_rbac=())[0] is Severity.BREAKING


def test_what_nobody_could_look_for_may_still_be_made() -> None:
    made = [one.after for one in rights("certgen", "secrets", "create")]
    assert of_secret(certgen(), *made, exists=None) == (
        Severity.NOTABLE,
        "and whether it exists is not known: its pods do not start without it, unless Job shop/certgen makes it",
    )


def test_the_certificate_that_a_service_asks_its_platform_for_is_no_obstacle() -> None:
    service = an_object("v1", "Service", "web", "shop")
    service["metadata"]["annotations"] = {"service.beta.openshift.io/serving-cert-secret-name": "tls"}
    pod = web_workload(volumes=[{"name": "v", "secret": {"secretName": "tls"}}])
    actions = [planned(one, Action.CREATE) for one in (service, pod)]
    (found,) = named(find_needs(*actions, exists={core_ref("Secret", "tls"): False}), "SEC-04")
    assert found.severity is Severity.NOTABLE


def mounting(source: dict[str, Any], **mount: Any) -> dict[str, Any]:
    made = web_workload(volumes=[{"name": "v", **source}])
    made["spec"]["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "v", "mountPath": "/etc/x", **mount}]
    return made


def projected(*sources: dict[str, Any]) -> dict[str, Any]:
    return {"projected": {"sources": list(sources)}}


def conf(*keys: str, **more: Any) -> dict[str, Any]:
    items = [{"key": key, "path": f"as/{key}"} for key in keys]
    return {"configMap": {"name": "c", **({"items": items} if items else {}), **more}}


@pytest.mark.parametrize(
    ("pod", "variants"),
    [
        pytest.param(mounting(conf("a")), [], id="a key that is there"),
        pytest.param(mounting(conf("a", "gone")), ["no-key"], id="a key that is gone"),
        pytest.param(mounting(conf("gone", optional=True)), [], id="optional"),
        pytest.param(mounting(projected(conf("gone"))), ["no-key"], id="projected"),
        pytest.param(mounting(conf(), subPath="a"), [], id="a file that is there"),
        pytest.param(mounting(conf(), subPath="gone"), ["no-file"], id="a file that is gone"),
        pytest.param(mounting(conf("a"), subPath="a"), ["no-file"], id="a file by its key that has another name"),
        pytest.param(mounting(conf("a"), subPath="as/a"), [], id="a file by its name"),
        pytest.param(mounting(conf("a"), subPath="as"), [], id="a folder"),
    ],
)
def test_keys_that_volumes_name_are_in_the_bundle(pod: dict[str, Any], variants: list[str]) -> None:
    brought = config_map("c", a="1")
    found = find_needs(planned(pod, Action.CREATE), planned(brought, Action.CREATE))
    assert [one.variant for one in named(found, "SEC-04")] == variants


def test_what_comes_without_keys_is_filled_by_somebody_unless_it_had_the_key() -> None:
    pod, empty, full = mounting(conf("a")), config_map("c"), config_map("c", a="1")
    first = find_needs(planned(pod, Action.CREATE), planned(empty, Action.CREATE))
    assert [one.severity for one in named(first, "SEC-04")] == [Severity.NOTABLE]
    actions = planned(pod, Action.UPDATE, before=pod), planned(empty, Action.UPDATE, before=full)
    then = find_needs(*actions, previous=content_with(pod, full))
    assert [one.severity for one in named(then, "SEC-04")] == [Severity.BREAKING]


NODES = Listing("", "v1", "Node")


def node(name: str, *taints: str, **labels: str) -> dict[str, Any]:
    """`taints` as kubectl writes them: key=value:effect."""
    made = an_object("v1", "Node", name, spec={"taints": [taint(one) for one in taints]})
    made["metadata"]["labels"] = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", **labels}
    return made


def taint(text: str) -> dict[str, str]:
    named, _, effect = text.partition(":")
    key, _, value = named.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


LISTED = Listed((node("one", disk="fast", size="4"), node("two", zone="a")), 2)


def workload(kind: str = "Deployment", **pod: Any) -> dict[str, Any]:
    return an_object("apps/v1", kind, "web", "shop", spec={"template": {"spec": pod}})


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def term(key: str, operator: str, *values: str, within: str = "matchExpressions") -> dict[str, Any]:
    return {within: [{"key": key, "operator": operator, "values": list(values)}]}


def find_node_findings(obj: dict[str, Any], listed: Listed | None = LISTED) -> list[Finding]:
    around = ClusterSurroundings(lists={NODES: listed} if listed else {})
    found = judged_by(facts(planned(obj, Action.CREATE), around=around), [pod_needs.NODES_CHECK])
    return [one for one in found if one.rule != "UNCLAIMED"]


@pytest.mark.parametrize(
    ("pod", "severities"),
    [
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "arm64"}}, [Severity.BREAKING], id="no such machine"),
        pytest.param({"nodeSelector": {"kubernetes.io/arch": "amd64"}}, [], id="one such machine"),
        pytest.param({"nodeSelector": {"disk": "slow"}}, [Severity.DANGEROUS], id="no such label"),
        pytest.param({"nodeSelector": {"disk": "fast"}}, [], id="such a label"),
        pytest.param({"nodeSelector": {"disk": "fast", "zone": "a"}}, [Severity.DANGEROUS], id="not on one node"),
        pytest.param(required(term("zone", "In", "a", "b")), [], id="affinity that fits"),
        pytest.param(required(term("zone", "In", "b")), [Severity.DANGEROUS], id="affinity that does not"),
        pytest.param(required(term("zone", "In", "b"), term("disk", "Exists")), [], id="one of two terms"),
        pytest.param(required({}), [Severity.DANGEROUS], id="a term without requirements"),
        pytest.param(required(term("size", "Gt", "3")), [], id="greater"),
        pytest.param(required(term("size", "Gt", "4")), [Severity.DANGEROUS], id="not greater"),
        pytest.param(required(term("size", "Lt", "x")), [Severity.DANGEROUS], id="no number"),
        pytest.param(required(term("metadata.name", "In", "two", within="matchFields")), [], id="by name"),
        pytest.param(
            {"nodeSelector": {"disk": "fast"}, **required(term("zone", "Exists"))},
            [Severity.DANGEROUS],
            id="both are needed",
        ),
        pytest.param({}, [], id="any node"),
    ],
)
def test_some_node_has_to_be_what_pods_ask_for(pod: dict[str, Any], severities: list[Severity]) -> None:
    assert [(one.rule, one.severity) for one in find_node_findings(workload(**pod))] == [
        ("IMG-10", it) for it in severities
    ]


def test_what_the_pods_asked_of_nodes_before_is_not_new() -> None:
    old, new = (workload(nodeSelector={"disk": "slow"}, containers=[{"name": "a", "image": one}]) for one in "ab")
    around = ClusterSurroundings(lists={NODES: LISTED})
    changed = planned(new, Action.UPDATE, before=old)
    report = judged_by(facts(changed, previous=content_with(old), around=around), [pod_needs.NODES_CHECK])
    assert [one.is_new for one in report if one.rule == "IMG-10"] == [False]


def test_a_daemon_set_that_fits_no_node_runs_nowhere_which_is_notable() -> None:
    (found,) = find_node_findings(workload("DaemonSet", nodeSelector={"gpu": "yes"}))
    assert (found.severity, "it runs no pod now" in found.message) == (Severity.NOTABLE, True)


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(None, id="not read"),
        pytest.param(Listed(total=None, problem="forbidden"), id="nobody may"),
        pytest.param(Listed(LISTED.objects, 5000), id="not all of them"),
    ],
)
def test_what_nobody_could_look_up_is_unknown(listed: Listed | None) -> None:
    assert [one.severity for one in find_node_findings(workload(nodeSelector={"disk": "slow"}), listed)] == [
        Severity.UNKNOWN
    ]
    assert find_node_findings(workload(nodeSelector={"kubernetes.io/os": "linux"}), listed) == []


def test_nodes_are_read_only_where_pods_ask_for_some() -> None:
    assert listings(facts(planned(workload(), Action.CREATE)), [pod_needs.NODES_CHECK]) == []
    assert listings(facts(planned(workload(nodeSelector={"a": "b"}), Action.CREATE)), [pod_needs.NODES_CHECK]) == [
        NODES
    ]


TAINTED = Listed((node("gpu", "dedicated=gpu:NoSchedule", disk="fast"), node("control", "control:NoExecute")), 2)


def tolerates(**toleration: str) -> dict[str, Any]:
    return {"tolerations": [toleration]}


@pytest.mark.parametrize(
    ("pod", "is_kept_off"),
    [
        pytest.param(tolerates(key="dedicated", value="gpu"), False, id="the same value"),
        pytest.param(tolerates(key="dedicated", value="gpu", effect="NoSchedule"), False, id="the same effect"),
        pytest.param(tolerates(key="dedicated", operator="Exists"), False, id="any value"),
        pytest.param(tolerates(operator="Exists"), False, id="any taint"),
        pytest.param(tolerates(key="control"), False, id="a taint without a value"),
        pytest.param(tolerates(key="dedicated", value="db"), True, id="another value"),
        pytest.param(tolerates(key="dedicated"), True, id="no value"),
        pytest.param(tolerates(key="dedicated", value="gpu", effect="NoExecute"), True, id="another effect"),
        pytest.param(tolerates(value="gpu"), True, id="no key"),
        pytest.param(tolerates(key="others", operator="Exists"), True, id="another key"),
        pytest.param({}, True, id="no toleration"),
        pytest.param({"nodeSelector": {"disk": "fast"}, **tolerates(key="control")}, True, id="of another node"),
        pytest.param(
            {"nodeSelector": {"disk": "fast"}, **tolerates(key="dedicated", operator="Exists")},
            False,
            id="of that node",
        ),
    ],
)
def test_taints_keep_off_pods_that_do_not_tolerate_them(pod: dict[str, Any], is_kept_off: bool) -> None:
    found = find_node_findings(workload(**pod), TAINTED)
    assert [(one.rule, one.severity) for one in found] == [("IMG-10", Severity.DANGEROUS)] * is_kept_off
    assert all("does not tolerate the taints of" in one.message for one in found)


def test_a_finding_names_the_taints_of_the_nodes_that_would_do() -> None:
    (found,) = find_node_findings(workload(nodeSelector={"disk": "fast"}), TAINTED)
    assert "each of 1 node that would do (dedicated=gpu:NoSchedule): its pods wait" in found.message
    assert found.path == ("spec", "template", "spec", "tolerations")


@pytest.mark.parametrize("one", ["node.kubernetes.io/not-ready:NoSchedule", "other:PreferNoSchedule"])
def test_a_taint_that_passes_or_only_asks_keeps_nothing_off(one: str) -> None:
    assert find_node_findings(workload(), Listed((node("one", one),), 1)) == []


def test_nobody_is_kept_off_where_not_all_nodes_were_read() -> None:
    assert find_node_findings(workload(), Listed(TAINTED.objects, 5000)) == []


def test_nodes_are_read_where_pods_tolerate_taints() -> None:
    tolerant = workload(tolerations=[{"operator": "Exists"}])
    assert listings(facts(planned(tolerant, Action.CREATE)), [pod_needs.NODES_CHECK]) == [NODES]


FAST = ObjectRef("storage.k8s.io", "v1", "StorageClass", "", "fast")
SPEC: dict[str, Any] = {"accessModes": ["ReadWriteOnce"]}


def claim(**spec: Any) -> dict[str, Any]:
    return an_object("v1", "PersistentVolumeClaim", "data", "shop", spec={**SPEC, "storageClassName": "fast", **spec})


def stateful_set() -> dict[str, Any]:
    templates = [{"metadata": {"name": "data"}, "spec": {**SPEC, "storageClassName": "fast"}}]
    return an_object("apps/v1", "StatefulSet", "db", "shop", spec={"volumeClaimTemplates": templates})


CLASSES = Listing("storage.k8s.io", "v1", "StorageClass", metadata_only=True)


def storage_class(name: str, *, is_default: bool) -> dict[str, Any]:
    made = an_object("storage.k8s.io/v1", "StorageClass", name)
    made["metadata"]["annotations"] = {"storageclass.kubernetes.io/is-default-class": str(is_default).lower()}
    return made


def with_claim_of_its_own(kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    template = {"spec": {**SPEC, **spec}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    return an_object("apps/v1", kind, "web", "shop", spec={"template": {"spec": {"volumes": volumes}}})


def find_classes(*actions: Any, exists: bool | None = None, classes: Listed | None = None) -> list[Finding]:
    lists = {} if classes is None else {CLASSES: classes}
    around = ClusterSurroundings(exists={} if exists is None else {FAST.identity: exists}, lists=lists)
    found = judged_by(facts(*actions, around=around), [pod_needs.STORAGE_CHECK])
    return [one for one in found if one.rule != "UNCLAIMED"]


@pytest.mark.parametrize(
    ("obj", "action", "exists", "severities"),
    [
        pytest.param(claim(), Action.CREATE, True, [], id="there"),
        pytest.param(claim(), Action.CREATE, False, [Severity.DANGEROUS], id="nowhere"),
        pytest.param(claim(), Action.CREATE, None, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(claim(), Action.NONE, False, [], id="a claim that has its volume"),
        pytest.param(claim(volumeName="v"), Action.CREATE, False, [], id="a claim for one volume"),
        pytest.param(claim(storageClassName=""), Action.CREATE, None, [], id="no class"),
        pytest.param(stateful_set(), Action.UPDATE, False, [Severity.DANGEROUS], id="a template"),
        pytest.param(
            with_claim_of_its_own(storageClassName="fast"), Action.UPDATE, False, [Severity.DANGEROUS], id="of each pod"
        ),
    ],
)
def test_a_class_that_claims_ask_for_has_to_be_there(
    obj: dict[str, Any], action: Action, exists: bool | None, severities: list[Severity]
) -> None:
    found = find_classes(planned(obj, action, before=obj), exists=exists)
    assert [(one.rule, one.severity) for one in found] == [("AVL-06", it) for it in severities]


def test_a_volume_of_the_bundle_needs_no_class() -> None:
    volume = an_object("v1", "PersistentVolume", "v", spec={"storageClassName": "fast"})
    assert find_classes(planned(volume, Action.CREATE), planned(claim(), Action.CREATE), exists=False) == []


def test_a_class_that_the_change_deletes_is_missing_although_it_exists() -> None:
    gone = an_object("storage.k8s.io/v1", "StorageClass", "fast")
    actions = [planned(claim(), Action.CREATE), planned(gone, Action.DELETE, before=gone)]
    assert [one.severity for one in find_classes(*actions, exists=True)] == [Severity.BREAKING]


def test_only_the_existence_of_a_class_is_asked() -> None:
    assert mentioned(facts(planned(claim(), Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [FAST]


WITHOUT_CLASS = an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=SPEC)


@pytest.mark.parametrize(
    ("obj", "action", "classes", "severities"),
    [
        pytest.param(WITHOUT_CLASS, Action.CREATE, Listed(), [Severity.DANGEROUS], id="no class at all"),
        pytest.param(
            WITHOUT_CLASS,
            Action.CREATE,
            Listed((storage_class("slow", is_default=False),), 1),
            [Severity.DANGEROUS],
            id="no default",
        ),
        pytest.param(
            WITHOUT_CLASS, Action.CREATE, Listed((storage_class("fast", is_default=True),), 1), [], id="a default"
        ),
        pytest.param(WITHOUT_CLASS, Action.CREATE, None, [Severity.UNKNOWN], id="not read"),
        pytest.param(
            WITHOUT_CLASS,
            Action.CREATE,
            Listed(total=None, problem="forbidden"),
            [Severity.UNKNOWN],
            id="nobody may look",
        ),
        pytest.param(WITHOUT_CLASS, Action.NONE, Listed(), [], id="a claim that is there"),
        pytest.param(claim(storageClassName=""), Action.CREATE, Listed(), [], id="none on purpose"),
        pytest.param(with_claim_of_its_own(), Action.CREATE, Listed(), [Severity.DANGEROUS], id="of each pod"),
    ],
)
def test_a_claim_without_a_class_needs_a_default(
    obj: dict[str, Any], action: Action, classes: Listed | None, severities: list[Severity]
) -> None:
    found = find_classes(planned(obj, action, before=obj), classes=classes)
    assert [(one.rule, one.severity) for one in found] == [("AVL-06", it) for it in severities]


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param(storage_class("own", is_default=True), id="a default class"),
        pytest.param(an_object("v1", "PersistentVolume", "v", spec={}), id="a volume without a class"),
    ],
)
def test_a_bundle_may_bring_what_its_claims_need(beside: dict[str, Any]) -> None:
    assert find_classes(planned(beside, Action.CREATE), planned(WITHOUT_CLASS, Action.CREATE), classes=Listed()) == []


def test_classes_are_listed_only_for_new_claims_without_one() -> None:
    assert listings(facts(planned(WITHOUT_CLASS, Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [CLASSES]
    for action, obj in ((Action.NONE, WITHOUT_CLASS), (Action.CREATE, claim())):
        assert listings(facts(planned(obj, action, before=obj)), [pod_needs.STORAGE_CHECK]) == []
