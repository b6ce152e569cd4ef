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


def with_volume(**source: Any) -> dict[str, Any]:
    return web_workload(volumes=[{"name": "v", **source}])


READS = web_workload(env=[reading("Secret", "s", "k")])
READS_KEY = web_workload(env=[reading("ConfigMap", "settings", "a")])
MOUNTS_CLAIM = with_volume(persistentVolumeClaim={"claimName": "data"})
S, C, CLAIMED = core_ref("Secret", "s"), core_ref("ConfigMap", "c"), core_ref("PersistentVolumeClaim", "data")
MADE = an_object("cert-manager.io/v1", "Certificate", "web", "shop", spec={"secretName": "s"})
SERVED = an_object("v1", "Service", "web", "shop")
SERVED["metadata"]["annotations"] = {"service.beta.openshift.io/serving-cert-secret-name": "s"}
ROBOT, RUNS_AS = core_ref("ServiceAccount", "web"), web_workload(serviceAccountName="web")
PULLS = web_workload(imagePullSecrets=[{"name": "pull"}])


@pytest.mark.parametrize(
    ("objects", "exists", "expected"),
    [
        pytest.param([READS], {S: True}, [], id="there"),
        pytest.param([READS], {S: False}, ["SEC-04 breaking"], id="nowhere"),
        pytest.param([READS], {}, ["SEC-04 unknown"], id="nobody may look"),
        pytest.param([web_workload(env=[reading("Secret", "s", optional=True)])], {}, [], id="optional"),
        pytest.param([with_volume(configMap={"name": "c"})], {C: False}, ["SEC-04 breaking"], id="a volume"),
        pytest.param(
            [with_volume(projected={"sources": [{"secret": {"name": "s"}}]})],
            {S: False},
            ["SEC-04 breaking"],
            id="inside a projected volume",
        ),
        pytest.param([with_volume(configMap={"name": "kube-root-ca.crt"})], {}, [], id="in every namespace"),
        pytest.param([READS_KEY, config_map(a="x")], {}, [], id="a key that a map of the bundle has"),
        pytest.param([READS_KEY, config_map(b="x")], {}, ["SEC-04 breaking"], id="a key that it has not"),
        pytest.param([READS, MADE], {S: False}, ["SEC-04 notable"], id="made by an object of the bundle"),
        pytest.param([READS, SERVED], {S: False}, ["SEC-04 notable"], id="a Service asks its platform for it"),
        pytest.param([PULLS], {core_ref("Secret", "pull"): False}, ["IMG-09 dangerous"], id="to pull images with"),
        pytest.param([MOUNTS_CLAIM], {CLAIMED: False}, ["SEC-04 breaking"], id="no claim"),
        pytest.param([MOUNTS_CLAIM], {CLAIMED: True}, [], id="a claim"),
        pytest.param([RUNS_AS], {ROBOT: False}, ["SEC-04 breaking"], id="no account"),
        pytest.param([RUNS_AS], {ROBOT: True}, [], id="an account"),
        pytest.param([web_workload(serviceAccountName="default")], {}, [], id="the default account"),
    ],
)
def test_what_pods_need_has_to_be_there(
    objects: list[dict[str, Any]], exists: dict[ObjectRef, bool], expected: list[str]
) -> None:
    found = find_needs(*(planned(obj, Action.CREATE) for obj in objects), exists=exists)
    assert [f"{finding.rule} {finding.severity}" for finding in found] == expected


@pytest.mark.parametrize(
    ("objects", "missing", "words"),
    [
        ([MOUNTS_CLAIM], CLAIMED, "mounts PersistentVolumeClaim shop/data"),
        ([RUNS_AS], ROBOT, "runs as ServiceAccount shop/web"),
        ([READS, MADE], S, "Certificate.cert-manager.io shop/web"),
    ],
    ids=["claim", "account", "secret"],
)
def test_what_is_missing_is_named_with_its_maker(objects: list[dict[str, Any]], missing: ObjectRef, words: str) -> None:
    (found,) = find_needs(*(planned(obj, Action.CREATE) for obj in objects), exists={missing: False})
    assert words in found.message


def test_only_existence_is_asked_and_nothing_of_the_default_account() -> None:
    pods = [planned(READS, Action.CREATE), planned(web_workload(serviceAccountName="default"), Action.CREATE)]
    assert mentioned(facts(*pods), [pod_needs.NEEDS_CHECK]) == [S]


def test_what_exists_and_is_deleted_by_the_change_is_missing_afterwards() -> None:
    gone = config_map(a="x")
    actions = [planned(READS_KEY, Action.NONE), planned(gone, Action.DELETE, before=gone)]
    (found,) = find_needs(*actions, exists={core_ref("ConfigMap", "settings"): True})
    assert (found.rule, str(found.severity)) == ("SEC-04", "breaking")
    assert "which this change deletes" in found.message


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


ASKS = tuple(action.after for action in rights("certgen", "secrets", "create"))
OPERATOR = certgen("Deployment", "an-operator")


@pytest.mark.parametrize(
    ("others", "exists", "live", "severity", "words"),
    [
        pytest.param(
            [certgen(), OPERATOR, *ASKS],
            False,
            None,
            "notable",
            "which is neither in the bundle nor in the cluster: its pods do not start unless Job shop/certgen or "
            "Deployment shop/an-operator makes it",
            id="so certgen of Contour makes the certificates that Envoy and Contour read",
        ),
        pytest.param([certgen()], False, ASKS, "notable", "unless Job shop/certgen makes it", id="the cluster lets it"),
        pytest.param([certgen()], False, (), "breaking", "", id="without the right"),
        pytest.param(
            [certgen(), *ASKS],
            None,
            None,
            "notable",
            "and whether it exists is not known: its pods do not start without it, unless Job shop/certgen makes it",
            id="nobody could look",
        ),
    ],
)
def test_a_job_whose_account_may_create_a_secret_is_named(
    others: list[dict[str, Any]], exists: bool | None, live: Any, severity: str, words: str
) -> None:
    objects = [with_volume(secret={"secretName": "tls"}), *others]
    there = {core_ref("ServiceAccount", "certgen"): True} | (
        {} if exists is None else {core_ref("Secret", "tls"): exists}
    )
    actions = [planned(obj, Action.CREATE) for obj in objects]
    (found,) = named(find_needs(*actions, exists=there, live_rbac=live), "SEC-04")
    assert str(found.severity) == severity
    assert found.message.endswith(words)


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
    assert [finding.variant for finding in named(found, "SEC-04")] == variants


def test_what_comes_without_keys_is_filled_by_somebody_unless_it_had_the_key() -> None:
    pod, empty, full = mounting(conf("a")), config_map("c"), config_map("c", a="1")
    first = find_needs(planned(pod, Action.CREATE), planned(empty, Action.CREATE))
    assert [finding.severity for finding in named(first, "SEC-04")] == [Severity.NOTABLE]
    actions = planned(pod, Action.UPDATE, before=pod), planned(empty, Action.UPDATE, before=full)
    then = find_needs(*actions, previous=content_with(pod, full))
    assert [finding.severity for finding in named(then, "SEC-04")] == [Severity.BREAKING]


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
    return [finding for finding in found if finding.rule != "UNCLAIMED"]


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
    assert [(finding.rule, finding.severity) for finding in find_node_findings(workload(**pod))] == [
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


UNREAD = Listed(total=None, problem="forbidden")


@pytest.mark.parametrize(
    "listed", [None, UNREAD, Listed(LISTED.objects, 5000)], ids=["not read", "nobody may", "not all of them"]
)
def test_what_nobody_could_look_up_is_unknown(listed: Listed | None) -> None:
    asks = workload(nodeSelector={"disk": "slow"})
    assert [finding.severity for finding in find_node_findings(asks, listed)] == [Severity.UNKNOWN]
    assert find_node_findings(workload(nodeSelector={"kubernetes.io/os": "linux"}), listed) == []


@pytest.mark.parametrize(
    ("pod", "read"),
    [({}, []), ({"nodeSelector": {"a": "b"}}, [NODES]), ({"tolerations": [{"operator": "Exists"}]}, [NODES])],
    ids=["asks for nothing", "asks for some", "tolerates taints"],
)
def test_nodes_are_read_only_where_pods_ask_for_some(pod: dict[str, Any], read: list[Listing]) -> None:
    assert listings(facts(planned(workload(**pod), Action.CREATE)), [pod_needs.NODES_CHECK]) == read


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
    assert [(finding.rule, finding.severity) for finding in found] == [("IMG-10", Severity.DANGEROUS)] * is_kept_off
    assert all("does not tolerate the taints of" in finding.message for finding in found)


def test_a_finding_names_the_taints_of_the_nodes_that_would_do() -> None:
    (found,) = find_node_findings(workload(nodeSelector={"disk": "fast"}), TAINTED)
    assert "each of 1 node that would do (dedicated=gpu:NoSchedule): its pods wait" in found.message
    assert found.path == ("spec", "template", "spec", "tolerations")


@pytest.mark.parametrize(
    "listed",
    [
        pytest.param(Listed((node("a", "node.kubernetes.io/not-ready:NoSchedule"),), 1), id="a taint that passes"),
        pytest.param(Listed((node("a", "other:PreferNoSchedule"),), 1), id="a taint that only asks"),
        pytest.param(Listed(TAINTED.objects, 5000), id="not all nodes were read"),
    ],
)
def test_nobody_is_kept_off_for_certain(listed: Listed) -> None:
    assert find_node_findings(workload(), listed) == []


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


def with_claim_of_its_own(**spec: Any) -> dict[str, Any]:
    return workload(volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {**SPEC, **spec}}}}])


def find_classes(*actions: Any, exists: bool | None = None, classes: Listed | None = None) -> list[Finding]:
    lists = {} if classes is None else {CLASSES: classes}
    around = ClusterSurroundings(exists={} if exists is None else {FAST.identity: exists}, lists=lists)
    found = judged_by(facts(*actions, around=around), [pod_needs.STORAGE_CHECK])
    return [finding for finding in found if finding.rule != "UNCLAIMED"]


WITHOUT_CLASS = an_object("v1", "PersistentVolumeClaim", "data", "shop", spec=SPEC)
NO_DEFAULT = Listed((storage_class("slow", is_default=False),), 1)
DEFAULT = Listed((storage_class("fast", is_default=True),), 1)


@pytest.mark.parametrize(
    ("obj", "action", "exists", "severity"),
    [
        pytest.param(claim(), Action.CREATE, True, "", id="there"),
        pytest.param(claim(), Action.CREATE, False, "dangerous", id="nowhere"),
        pytest.param(claim(), Action.CREATE, None, "unknown", id="nobody may look"),
        pytest.param(claim(), Action.NONE, False, "", id="a claim that has its volume"),
        pytest.param(claim(volumeName="v"), Action.CREATE, False, "", id="a claim for one volume"),
        pytest.param(claim(storageClassName=""), Action.CREATE, None, "", id="no class"),
        pytest.param(stateful_set(), Action.UPDATE, False, "dangerous", id="a template"),
        pytest.param(
            with_claim_of_its_own(storageClassName="fast"), Action.UPDATE, False, "dangerous", id="of each pod"
        ),
    ],
)
def test_a_class_that_claims_ask_for_has_to_be_there(
    obj: dict[str, Any], action: Action, exists: bool | None, severity: str
) -> None:
    found = find_classes(planned(obj, action, before=obj), exists=exists)
    assert [(finding.rule, str(finding.severity)) for finding in found] == ([("AVL-06", severity)] if severity else [])


@pytest.mark.parametrize(
    ("obj", "action", "classes", "severity"),
    [
        pytest.param(WITHOUT_CLASS, Action.CREATE, Listed(), "dangerous", id="no class at all"),
        pytest.param(WITHOUT_CLASS, Action.CREATE, NO_DEFAULT, "dangerous", id="no default"),
        pytest.param(WITHOUT_CLASS, Action.CREATE, DEFAULT, "", id="a default"),
        pytest.param(WITHOUT_CLASS, Action.CREATE, None, "unknown", id="not read"),
        pytest.param(WITHOUT_CLASS, Action.CREATE, UNREAD, "unknown", id="nobody may look"),
        pytest.param(WITHOUT_CLASS, Action.NONE, Listed(), "", id="a claim that is there"),
        pytest.param(claim(storageClassName=""), Action.CREATE, Listed(), "", id="none on purpose"),
        pytest.param(with_claim_of_its_own(), Action.CREATE, Listed(), "dangerous", id="of each pod"),
    ],
)
def test_a_claim_without_a_class_needs_a_default(
    obj: dict[str, Any], action: Action, classes: Listed | None, severity: str
) -> None:
    found = find_classes(planned(obj, action, before=obj), classes=classes)
    assert [(finding.rule, str(finding.severity)) for finding in found] == ([("AVL-06", severity)] if severity else [])


def test_a_class_that_the_change_deletes_is_missing_although_it_exists() -> None:
    gone = an_object("storage.k8s.io/v1", "StorageClass", "fast")
    actions = [planned(claim(), Action.CREATE), planned(gone, Action.DELETE, before=gone)]
    assert [finding.severity for finding in find_classes(*actions, exists=True)] == [Severity.BREAKING]


def test_only_the_existence_of_a_class_is_asked() -> None:
    assert mentioned(facts(planned(claim(), Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [FAST]


@pytest.mark.parametrize(
    ("beside", "wants"),
    [
        pytest.param(storage_class("own", is_default=True), WITHOUT_CLASS, id="a default class"),
        pytest.param(an_object("v1", "PersistentVolume", "v", spec={}), WITHOUT_CLASS, id="a volume without a class"),
        pytest.param(
            an_object("v1", "PersistentVolume", "v", spec={"storageClassName": "fast"}), claim(), id="a volume of it"
        ),
    ],
)
def test_a_bundle_may_bring_what_its_claims_need(beside: dict[str, Any], wants: dict[str, Any]) -> None:
    actions = [planned(obj, Action.CREATE) for obj in (beside, wants)]
    assert find_classes(*actions, exists=False, classes=Listed()) == []


def test_classes_are_listed_only_for_new_claims_without_one() -> None:
    assert listings(facts(planned(WITHOUT_CLASS, Action.CREATE)), [pod_needs.STORAGE_CHECK]) == [CLASSES]
    for action, obj in ((Action.NONE, WITHOUT_CLASS), (Action.CREATE, claim())):
        assert listings(facts(planned(obj, action, before=obj)), [pod_needs.STORAGE_CHECK]) == []
