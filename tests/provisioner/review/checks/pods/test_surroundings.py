"""What pods read of others, mount over their image, and are surrounded by: probes, nodes, names, each other."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import Check
from provisioner.review.checks.pods import commands, credentials, runtime, security
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, core_ref, facts, findings_of, named, planned
from tests.support.provisioner.contents import reading as variable
from tests.support.provisioner.roles import account, bound, cluster_role, rule

SECRET = core_ref("Secret", "s")
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def workload(container: dict[str, Any] | None = None, name: str = "web", **pod: Any) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", **(container or {})}], **pod}
    return an_object("apps/v1", "Deployment", name, "shop", spec={"template": {"spec": spec}})


READER = workload({"env": [variable("Secret", "s", "k")]})


def of(check: Check, rule: str, old: dict[str, Any] | None, new: dict[str, Any], **rest: Any) -> list[Finding]:
    changed = planned(new, Action.UPDATE, before=old) if old else planned(new, Action.CREATE)
    given = rest.pop("previous", None)
    previous = content_with(old) if old else given
    return named(findings_of(check, changed, previous=previous, **rest), rule)


def messages(found: list[Finding]) -> list[str]:
    return [finding.message.removeprefix("Deployment shop/web ") for finding in found]


@pytest.mark.parametrize(
    ("old", "previous", "severity"),
    [
        pytest.param(workload(), None, Severity.DANGEROUS, id="an object that stays"),
        pytest.param(None, (workload(name="other"),), Severity.DANGEROUS, id="an object that comes later"),
        pytest.param(None, None, Severity.NOTABLE, id="a first request"),
        pytest.param(READER, None, None, id="what it read before"),
        pytest.param(
            None, ({**READER, "metadata": {"name": "old", "namespace": "shop"}},), None, id="what another read"
        ),
    ],
)
def test_a_secret_that_is_nobodys_of_the_bundle_is_told(
    old: dict[str, Any] | None, previous: tuple[Any, ...] | None, severity: Severity | None
) -> None:
    before = content_with(*previous) if previous else None
    found = of(credentials.READ_SECRETS_CHECK, "POD-30", old, READER, exists={SECRET: True}, previous=before)
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_a_secret_that_pods_of_the_bundle_may_make_is_told_apart() -> None:
    both = workload({"env": [variable("Secret", "s", "k"), variable("Secret", "t", "k")]}, serviceAccountName="maker")
    maker = an_object("v1", "ServiceAccount", "maker", "shop")
    roles = (cluster_role("makes", rule("create", "secrets")), bound("makes", account("maker", "shop")))
    actions = [planned(both, Action.UPDATE, before=workload()), planned(maker, Action.CREATE)]
    given = {"exists": {SECRET: True}, "previous": content_with(workload()), "live_rbac": roles}
    (found,) = named(findings_of(credentials.READ_SECRETS_CHECK, *actions, **given), "POD-30")
    assert (found.evidence["foreign"], found.evidence["made"]) == (["s"], ["t"])
    assert found.variant == "foreign-and-perhaps-made"


@pytest.mark.parametrize(
    "beside",
    [
        pytest.param(an_object("v1", "Secret", "s", "shop"), id="brought"),
        pytest.param(
            an_object("cert-manager.io/v1", "Certificate", "c", "shop", spec={"secretName": "s"}),
            id="named as a result",
        ),
    ],
)
def test_a_secret_that_the_bundle_brings_or_makes_is_not(beside: dict[str, Any]) -> None:
    actions = [planned(READER, Action.UPDATE, before=workload()), planned(beside, Action.CREATE)]
    assert not named(findings_of(credentials.READ_SECRETS_CHECK, *actions, previous=content_with(workload())), "POD-30")


@pytest.mark.parametrize(
    ("path", "severity"),
    [
        ("/bin/ls", Severity.DANGEROUS),
        ("/usr/sbin/", Severity.DANGEROUS),
        ("/usr/lib", Severity.DANGEROUS),
        ("/usr/lib/x/libc.so.6", Severity.DANGEROUS),
        ("/etc/ld.so.preload", Severity.DANGEROUS),
        ("/etc/../bin", Severity.DANGEROUS),
        ("/etc/passwd", Severity.NOTABLE),
        ("/etc/ssl/certs", Severity.NOTABLE),
        ("/etc/nginx", None),
        ("/usr/lib/nginx/conf", None),
        ("/binary", None),
    ],
)
def test_a_volume_over_files_that_the_image_runs_or_trusts_is_told(path: str, severity: Severity | None) -> None:
    mounting = {"volumeMounts": [{"name": "v", "mountPath": path}]}
    for source, is_told in (({"configMap": {"name": "m"}}, True), ({"hostPath": {"path": "/x"}}, False)):
        found = of(commands.HIDDEN_FILES_CHECK, "POD-31", None, workload(mounting, volumes=[{"name": "v", **source}]))
        assert [finding.severity for finding in found] == ([severity] if severity and is_told else [])


PROBE = {"httpGet": {"port": 80}}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param({"livenessProbe": PROBE}, {}, "main has no liveness probe any more", id="a probe goes"),
        pytest.param(
            {}, {"startupProbe": PROBE}, "main has a new startup probe: httpGet nothing → port 80", id="comes"
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            {"readinessProbe": {"exec": {"command": ["/x"]}}},
            "readiness probe of main: exec nothing → command /x; readiness probe of main: httpGet port 80 → nothing",
            id="asks something else",
        ),
        pytest.param(
            {"readinessProbe": PROBE},
            {"readinessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "periodSeconds": 10}},
            "",
            id="with the defaults written out",
        ),
        pytest.param(
            {"resources": {"limits": {"memory": "1Gi"}}},
            {"resources": {"limits": {"memory": "1024Mi"}}},
            "",
            id="the same amount",
        ),
        pytest.param(
            {"resources": {"limits": {"memory": "1Gi"}}}, {}, "main: memory limit 1Gi → none", id="a limit goes"
        ),
        pytest.param(
            {"resources": {"requests": {"cpu": "100m"}}},
            {"resources": {"requests": {"cpu": 50}}},
            "main: cpu request 100m → 50",
            id="a request grows",
        ),
    ],
)
def test_probes_requests_and_limits_are_told_where_they_differ(
    old: dict[str, Any], new: dict[str, Any], words: str
) -> None:
    found = of(runtime.BOUNDS_CHECK, "POD-34", workload(old), workload(new))
    assert messages(found) == ([f"has other probes, requests or limits: {words}"] if words else [])


@pytest.mark.parametrize(
    ("pod", "is_told"),
    [
        pytest.param({"tolerations": [{"key": CONTROL_PLANE, "operator": "Exists"}]}, True, id="the taint"),
        pytest.param({"tolerations": [{"key": CONTROL_PLANE, "effect": "NoSchedule"}]}, True, id="the taint, empty"),
        pytest.param({"tolerations": [{"operator": "Exists"}]}, True, id="every taint"),
        pytest.param({"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]}, False, id="of another effect"),
        pytest.param({"tolerations": [{"key": CONTROL_PLANE, "value": "x"}]}, False, id="with a value"),
        pytest.param({"tolerations": [{"key": "dedicated", "operator": "Exists"}]}, False, id="another taint"),
        pytest.param({"nodeSelector": {CONTROL_PLANE: ""}}, True, id="selector"),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [{"matchExpressions": [{"key": CONTROL_PLANE, "operator": "Exists"}]}]
                        }
                    }
                }
            },
            True,
            id="affinity",
        ),
        pytest.param(
            {
                "affinity": {
                    "nodeAffinity": {
                        "preferredDuringSchedulingIgnoredDuringExecution": [
                            {
                                "weight": 1,
                                "preference": {
                                    "matchExpressions": [{"key": CONTROL_PLANE, "operator": "DoesNotExist"}]
                                },
                            }
                        ]
                    }
                }
            },
            False,
            id="elsewhere",
        ),
    ],
)
def test_pods_that_may_run_on_the_control_plane_are_told(pod: dict[str, Any], is_told: bool) -> None:
    found = of(runtime.PLACEMENT_CHECK, "POD-35", None, workload(**pod))
    assert [finding.severity for finding in found] == ([Severity.NOTABLE] if is_told else [])
    assert not [
        finding for finding in of(runtime.PLACEMENT_CHECK, "POD-35", workload(**pod), workload(**pod)) if finding.is_new
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, {}, "nodeSelector disk ssd → nothing", id="selector"),
        pytest.param({}, {"schedulerName": "own"}, "schedulerName nothing → own", id="scheduler"),
        pytest.param({}, {"schedulerName": "default-scheduler"}, "", id="the usual one"),
        pytest.param(
            {},
            {"tolerations": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
            "tolerations nothing → dedicated=db:NoSchedule",
            id="toleration",
        ),
        pytest.param({}, {"tolerations": [{"operator": "Exists"}]}, "", id="what POD-35 tells"),
        pytest.param({}, {"nodeSelector": {"kubernetes.io/os": "linux"}}, "", id="Linux"),
        pytest.param({"priorityClassName": "high"}, {}, "priorityClassName high → nothing", id="priority"),
    ],
)
def test_other_rules_for_nodes_are_told(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    found = of(runtime.PLACEMENT_CHECK, "POD-36", workload(**old), workload(**new))
    assert messages(found) == ([f"is scheduled differently: {words}"] if words else [])


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ({"hostAliases": [{"ip": "192.0.2.7", "hostnames": ["a.b", "c"]}]}, "a.b, c is 192.0.2.7"),
        ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["192.0.2.8"]}}, "it asks 192.0.2.8"),
        ({"dnsPolicy": "Default"}, "it asks the name servers of its node"),
        ({"dnsConfig": {"searches": ["x.y"]}}, "it looks in x.y"),
        ({"dnsPolicy": "ClusterFirstWithHostNet"}, ""),
    ],
)
def test_names_that_lead_elsewhere_are_told_of_new_objects_too(pod: dict[str, Any], words: str) -> None:
    expected = [f"resolves names differently than the cluster: {words}"] if words else []
    assert messages(of(runtime.NAMES_CHECK, "POD-37", None, workload(**pod))) == expected
    assert [finding.is_new for finding in of(runtime.NAMES_CHECK, "POD-37", workload(), workload(**pod))] == [True]
    assert len(of(runtime.NAMES_CHECK, "POD-37", workload(**pod), workload())) == 1
    assert not [
        finding for finding in of(runtime.NAMES_CHECK, "POD-37", workload(**pod), workload(**pod)) if finding.is_new
    ]


def test_files_of_the_image_that_become_writable_are_told() -> None:
    read_only = workload({"securityContext": {"readOnlyRootFilesystem": True}})
    assert len(of(security.ISOLATION_CHECK, "POD-38", read_only, workload())) == 1
    assert not of(security.ISOLATION_CHECK, "POD-38", workload(), read_only)


def secured(*, mounts: Any = (), **security: Any) -> dict[str, Any]:
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c"}}]
    return workload({"securityContext": security, "volumeMounts": list(mounts)}, volumes=volumes)


TMP, CONF = {"name": "tmp", "mountPath": "/tmp"}, {"name": "conf", "mountPath": "/etc/x"}
AS_WHOM = "main does not start if the image runs as root or names its user by a word (runAsNonRoot without runAsUser)"
READ_ONLY = "main can no longer write to the files of the image (readOnlyRootFilesystem), "


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param(
            {"mounts": [CONF]},
            {"mounts": [CONF], "readOnlyRootFilesystem": True},
            f"{READ_ONLY}and no writable volume is mounted",
            id="read-only",
        ),
        pytest.param(
            {}, {"mounts": [TMP], "readOnlyRootFilesystem": True}, f"{READ_ONLY}only to /tmp", id="but for a volume"
        ),
        pytest.param(
            {"mounts": [TMP]},
            {"mounts": [{**TMP, "readOnly": True}]},
            "main can no longer write to /tmp",
            id="a mount that becomes read-only",
        ),
        pytest.param({}, {"runAsNonRoot": True}, AS_WHOM, id="not as root"),
        pytest.param({"runAsUser": 7, "runAsNonRoot": True}, {"runAsNonRoot": True}, AS_WHOM, id="its number goes"),
        pytest.param({}, {"runAsNonRoot": True, "runAsUser": 7}, "", id="as a number"),
        pytest.param(
            {"capabilities": {"drop": ["NET_RAW"]}},
            {"capabilities": {"drop": ["all"]}},
            "main loses the capabilities ALL",
            id="all capabilities",
        ),
        pytest.param(
            {"capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]}},
            {"capabilities": {"drop": ["NET_RAW"]}},
            "main loses the capabilities NET_ADMIN",
            id="one that was added",
        ),
        pytest.param(
            {},
            {"allowPrivilegeEscalation": False},
            "main can no longer gain privileges by sudo or setuid (allowPrivilegeEscalation)",
            id="no sudo",
        ),
    ],
)
def test_what_containers_must_not_do_any_more_is_told(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    found = of(security.HARDENING_CHECK, "POD-39", secured(**old), secured(**new))
    assert messages(found) == ([f"gets limits that can stop its programs: {words}"] if words else [])
    assert not of(security.HARDENING_CHECK, "POD-39", secured(**new), secured(**new))
    assert not of(security.HARDENING_CHECK, "POD-39", None, secured(**new))


def test_root_that_must_not_be_root_is_breaking_in_new_objects_too() -> None:
    both = workload({"securityContext": {"runAsNonRoot": True}}, securityContext={"runAsUser": 0})
    assert [finding.severity for finding in of(security.HARDENING_CHECK, "POD-39", None, both)] == [Severity.BREAKING]


def test_containers_that_see_each_other_and_a_runtime_that_goes_are_told() -> None:
    assert of(security.ISOLATION_CHECK, "POD-38", None, workload(shareProcessNamespace=True))
    assert of(security.ISOLATION_CHECK, "POD-38", workload(runtimeClassName="gvisor"), workload())
    assert not of(security.ISOLATION_CHECK, "POD-38", workload(), workload(runtimeClassName="gvisor"))


def test_a_folder_of_the_node_that_becomes_writable_is_new() -> None:
    volumes = [{"name": "v", "hostPath": {"path": "/srv"}}]
    read, write = (
        workload({"volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": it}]}, volumes=volumes)
        for it in (True, False)
    )
    assert [(finding.severity, finding.is_new) for finding in of(security.PODS_CHECK, "POD-05", read, write)] == [
        (Severity.CRITICAL, True)
    ]
    assert [(finding.severity, finding.is_new) for finding in of(security.PODS_CHECK, "POD-05", write, write)] == [
        (Severity.CRITICAL, False)
    ]


def test_a_check_asks_whether_a_secret_of_others_is_in_the_cluster() -> None:
    given = facts(planned(READER, Action.CREATE))
    assert list(credentials.READ_SECRETS_CHECK.mentions(given)) == [SECRET]
