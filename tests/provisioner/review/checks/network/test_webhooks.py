"""Webhooks and admission policies: what they lock, slow, alter or leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.governance import admission
from provisioner.review.checks.network import webhook_failures, webhooks
from provisioner.values import Action, Finding, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, facts, judged_by, planned

GROUP = "admissionregistration.k8s.io"
OWN_SERVICE = {"namespace": "shop", "name": "guard"}


def webhook(*resources: str, group: str = "", **body: Any) -> dict[str, Any]:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}
    found = {"name": "a.example.com", "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"]}
    return {**found, "clientConfig": {"service": OWN_SERVICE, "caBundle": "AA=="}, **body}


def ruled(**rule: Any) -> dict[str, Any]:
    """A webhook with one rule over the core group, and these parts of it."""
    found = webhook()
    return {**found, "rules": [{**found["rules"][0], **rule}]}


def configuration(*listed: dict[str, Any], name: str = "guard") -> dict[str, Any]:
    return an_object(f"{GROUP}/v1", "ValidatingWebhookConfiguration", name, webhooks=list(listed))


def found_by(*actions: Any, checks: Any = None, **rest: Any) -> list[Finding]:
    """What these checks say; that others look at the same objects is not their matter."""
    found = judged_by(facts(*actions, **rest), checks or [webhook_failures.EFFECTS_CHECK])
    return [finding for finding in found if finding.rule != "UNCLAIMED"]


def rules_of(*objects: dict[str, Any], **rest: Any) -> list[str]:
    return sorted(one.rule for one in found_by(*(planned(one, Action.CREATE) for one in objects), **rest))


NAME = "kubernetes.io/metadata.name"


def without(*namespaces: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": NAME, "operator": "NotIn", "values": list(namespaces)}]}


def only(*namespaces: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": NAME, "operator": "In", "values": list(namespaces)}]}


KEPT_OUT = without("kube-system", "kube-node-lease")
LEASES = "coordination.k8s.io"


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        pytest.param(webhook("configmaps"), [], id="harmless"),
        pytest.param(webhook("configmaps", timeoutSeconds=30), ["WH-07"], id="slow"),
        pytest.param(webhook("configmaps", timeoutSeconds=10), [], id="as slow as the default"),
        pytest.param(webhook("leases", group="coordination.k8s.io"), ["WH-08"], id="leases"),
        pytest.param(webhook("nodes"), ["WH-08"], id="nodes"),
        pytest.param(webhook("tokenreviews", group="authentication.k8s.io"), ["WH-08"], id="sign-ins"),
        pytest.param(webhook("*", group="*"), ["WH-08"], id="everything"),
        pytest.param(webhook("leases", group=""), [], id="a resource of that name in another group"),
        pytest.param(webhook("nodes", failurePolicy="Ignore"), [], id="lets pass while it is down"),
        pytest.param(
            webhook("leases", group=LEASES, namespaceSelector=KEPT_OUT), [], id="keeps the namespaces of leases out"
        ),
        pytest.param(
            webhook("leases", group=LEASES, namespaceSelector=without("kube-system")), ["WH-08"], id="leases of nodes"
        ),
        pytest.param(
            webhook("leases", group=LEASES, namespaceSelector=only("kube-system")), ["WH-08"], id="only kube-system"
        ),
        pytest.param(webhook("nodes", namespaceSelector=KEPT_OUT), ["WH-08"], id="no namespace selector spares a node"),
        pytest.param(webhook("nodes", objectSelector={"matchLabels": {"a": "b"}}), [], id="labelled objects only"),
        pytest.param(
            webhook("nodes", objectSelector={"matchExpressions": [{"key": "skip", "operator": "DoesNotExist"}]}),
            ["WH-08"],
            id="all objects but some",
        ),
        pytest.param(ruled(resources=["nodes"], operations=["DELETE"]), [], id="only what is deleted"),
        pytest.param(ruled(resources=["nodes"], scope="Namespaced"), [], id="only what is in namespaces"),
        pytest.param(ruled(resources=["*"], operations=["UPDATE"]), ["WH-08"], id="every resource"),
        pytest.param(ruled(resources=["*/status"], operations=["UPDATE"]), ["WH-08"], id="every status"),
        pytest.param({**webhook(), "rules": [{}, "x", {"resources": "pods"}]}, [], id="rules that are none"),
    ],
)
def test_webhooks_that_slow_or_lock_the_cluster_are_said(hook: dict[str, Any], expected: list[str]) -> None:
    assert rules_of(configuration(hook)) == expected


def service(port: int, **selector: str) -> dict[str, Any]:
    return an_object("v1", "Service", "guard", "shop", spec={"ports": [{"port": port}], "selector": selector})


def pods(namespace: str = "shop", **labels: str) -> dict[str, Any]:
    template = {"metadata": {"labels": labels}, "spec": {"containers": []}}
    return an_object("apps/v1", "Deployment", "guard", namespace, spec={"template": template})


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([service(443, app="g"), pods(app="g")], [], id="all fits"),
        pytest.param([service(8443, app="g"), pods(app="g")], ["WH-03"], id="another port"),
        pytest.param([service(443, app="g"), pods(app="x")], ["WH-03"], id="no such pods"),
        pytest.param([service(443, app="g"), pods("other", app="g")], ["WH-03"], id="pods of another namespace"),
        pytest.param([{**service(1), "spec": {"selector": {"app": "g"}}}, pods(app="g")], ["WH-03"], id="no port"),
        pytest.param([service(443)], [], id="no selector: somebody writes its endpoints"),
    ],
)
def test_the_service_of_a_webhook_has_to_lead_to_pods(objects: list[dict[str, Any]], expected: list[str]) -> None:
    assert rules_of(configuration(webhook("configmaps")), *objects) == expected


def test_a_webhook_that_goes_leaves_its_objects_unchecked() -> None:
    gone = configuration(webhook("orders", group="shop.example.com"))
    crd = an_object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "orders.shop.example.com",
        spec={"group": "shop.example.com", "names": {"kind": "Order"}, "versions": []},
    )
    odd = an_object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "odd", spec={"group": []})
    found = found_by(planned(gone, Action.DELETE, before=gone), planned(crd, Action.NONE), planned(odd, Action.NONE))
    assert [(finding.rule, finding.evidence["groups"]) for finding in found if finding.rule == "WH-10"] == [
        ("WH-10", ["shop.example.com"])
    ]


@pytest.mark.parametrize(("count", "expected"), [pytest.param(4, [], id="few"), pytest.param(5, ["WH-07"], id="many")])
def test_one_more_webhook_of_many_is_said(count: int, expected: list[str]) -> None:
    live = tuple(
        configuration(webhook("configmaps", name=f"w{number}.example.com"), name=f"w{number}")
        for number in range(count)
    )
    lists = {Listing(GROUP, "", "ValidatingWebhookConfiguration"): Listed(live, count)}
    assert rules_of(configuration(webhook("configmaps")), around=ClusterSurroundings(lists=lists)) == expected


@pytest.mark.parametrize(
    ("versions", "severity"),
    [
        pytest.param(["v1"], None, id="v1"),
        pytest.param(["v1", "v1beta1"], None, id="both"),
        pytest.param(["v1beta1"], Severity.DANGEROUS, id="only the old one"),
        pytest.param(["v2"], Severity.BREAKING, id="none that is in use"),
    ],
)
def test_a_webhook_has_to_understand_reviews(versions: list[str], severity: Severity | None) -> None:
    hook = webhook("configmaps", admissionReviewVersions=versions)
    found = found_by(planned(configuration(hook), Action.CREATE), checks=[webhooks.CHECK])
    assert [finding.severity for finding in found if finding.rule == "WH-06"] == ([severity] if severity else [])


def pods_of_guard(**labels: str) -> list[dict[str, Any]]:
    return [service(443, app="guard"), pods(app="guard", **labels)]


OWN_NAMESPACE = an_object("v1", "Namespace", "shop")
LABELLED = {**OWN_NAMESPACE, "metadata": {"name": "shop", "labels": {"guarded": "yes"}}}
OPTED_IN = {"matchLabels": {"guarded": "yes"}}


@pytest.mark.parametrize(
    ("hook", "beside", "places"),
    [
        pytest.param({}, [], "kube-system and of shop", id="everywhere"),
        pytest.param({"namespaceSelector": without("kube-system")}, [], "shop", id="its own namespace"),
        pytest.param({"namespaceSelector": without("shop")}, [], "kube-system", id="the control plane"),
        pytest.param({"namespaceSelector": without("kube-system", "shop")}, [], "", id="both left out"),
        pytest.param({"namespaceSelector": only("shop")}, [], "shop", id="only its own, by name"),
        pytest.param({"namespaceSelector": {"matchLabels": {NAME: "kube-system"}}}, [], "kube-system", id="by label"),
        pytest.param({"namespaceSelector": only("other")}, [], "", id="only another"),
        pytest.param({"namespaceSelector": OPTED_IN}, [], "", id="where somebody opted in"),
        pytest.param({"namespaceSelector": OPTED_IN}, [LABELLED], "shop", id="its own namespace opts in"),
        pytest.param({"objectSelector": {"matchLabels": {"tier": "web"}}}, pods_of_guard(), "", id="other pods only"),
        pytest.param(
            {"objectSelector": {"matchLabels": {"tier": "web"}}},
            pods_of_guard(tier="web"),
            "shop",
            id="its own pods too",
        ),
        pytest.param(
            {"objectSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["guard"]}]}},
            pods_of_guard(),
            "kube-system",
            id="all but its own pods",
        ),
        pytest.param({"failurePolicy": "Ignore"}, [], "", id="lets pass while it is down"),
        pytest.param({"namespaceSelector": {"matchExpressions": "x"}}, [], "kube-system and of shop", id="no selector"),
    ],
)
def test_a_webhook_that_counts_on_itself_is_said_with_whose_pods(
    hook: dict[str, Any], beside: list[dict[str, Any]], places: str
) -> None:
    objects = [configuration(webhook("pods", **hook)), *beside]
    found = found_by(*(planned(one, Action.CREATE) for one in objects), checks=[webhooks.CHECK])
    locks = [finding for finding in found if finding.rule == "WH-01"]
    assert [one.severity for one in locks] == ([Severity.CRITICAL] if places else [])
    assert all(f"before any pod of {places} starts" in one.message for one in locks)


def test_conditions_that_may_let_pass_are_mentioned() -> None:
    hook = webhook("pods", matchConditions=[{"name": "a", "expression": "request.namespace != 'shop'"}])
    (found,) = [
        finding
        for finding in found_by(planned(configuration(hook), Action.CREATE), checks=[webhooks.CHECK])
        if finding.rule == "WH-01"
    ]
    assert "unless its matchConditions let it pass" in found.message


@pytest.mark.parametrize(
    ("body", "live", "told"),
    [
        pytest.param({}, {}, ("WH-03", "service-unknown"), id="whether its service exists is not known"),
        pytest.param({}, {"guard": None}, ("WH-03", "no-service"), id="its service does not exist"),
        pytest.param({"sideEffects": "Some"}, {"guard": {}}, ("WH-06", "side-effects"), id="has side effects"),
        pytest.param({"sideEffects": None}, {"guard": {}}, ("WH-06", "no-side-effects"), id="says nothing of them"),
    ],
)
def test_what_keeps_a_webhook_from_working_is_said(body: Any, live: dict[str, Any], told: tuple[str, str]) -> None:
    known = {ObjectRef("", "v1", "Service", "shop", name).identity: obj for name, obj in live.items()}
    made = planned(configuration(webhook("orders", **body)), Action.CREATE)
    found = found_by(made, checks=[webhooks.CHECK], live=known)
    assert [(finding.rule, finding.variant) for finding in found] == [told]


def test_an_old_configuration_lets_pass_where_it_does_not_say() -> None:
    old = {**configuration(webhook("pods")), "apiVersion": f"{GROUP}/v1beta1"}
    found = found_by(planned(old, Action.CREATE), checks=[webhooks.CHECK])
    assert "WH-01" not in {finding.rule for finding in found}


def term(operator: str, *values: str, key: str = "env") -> dict[str, Any]:
    return {"namespaceSelector": {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}}


@pytest.mark.parametrize(
    ("before", "after", "is_wider"),
    [
        pytest.param(ruled(resources=["*"]), ruled(resources=["pods"]), False, id="one of all resources"),
        pytest.param(ruled(resources=["pods"]), ruled(resources=["*"]), True, id="all resources"),
        pytest.param(
            ruled(resources=["*"]), ruled(resources=["pods/status"]), True, id="a subresource, which * has not"
        ),
        pytest.param(
            ruled(resources=["*/*"]), ruled(resources=["pods/status"]), False, id="a subresource, which */* has"
        ),
        pytest.param(ruled(resources=["pods/*"]), ruled(resources=["pods/exec"]), False, id="one of all of pods"),
        pytest.param(
            ruled(operations=["*"]),
            ruled(operations=["CREATE", "UPDATE", "DELETE", "CONNECT"]),
            False,
            id="all by name",
        ),
        pytest.param(
            ruled(operations=["CREATE", "UPDATE", "DELETE", "CONNECT"]), ruled(operations=["*"]), False, id="all by *"
        ),
        pytest.param(ruled(resources=["pods"]), ruled(resources=["pods"], apiVersions=["*"]), True, id="every version"),
        pytest.param(
            ruled(resources=["pods"], scope="Namespaced"), ruled(resources=["pods"], scope="*"), True, id="every scope"
        ),
        pytest.param(webhook(**term("In", "a", "b")), webhook(**term("In", "a")), False, id="fewer values"),
        pytest.param(webhook(**term("In", "a")), webhook(**term("In", "a", "b")), True, id="more values"),
        pytest.param(webhook(**term("NotIn", "a")), webhook(**term("NotIn", "a", "b")), False, id="more left out"),
        pytest.param(webhook(**term("NotIn", "a", "b")), webhook(**term("NotIn", "a")), True, id="fewer left out"),
        pytest.param(webhook(**term("Exists")), webhook(**term("In", "a")), False, id="a value instead of any"),
        pytest.param(webhook(**term("In", "a")), webhook(**term("Exists")), True, id="any instead of a value"),
        pytest.param(webhook(**term("NotIn", "a")), webhook(**term("In", "b")), False, id="another value by name"),
        pytest.param(webhook(**term("NotIn", "a")), webhook(**term("In", "a")), True, id="the value that was left out"),
        pytest.param(
            webhook(**term("In", "a")), webhook(namespaceSelector={"matchLabels": {"env": "a"}}), False, id="as a label"
        ),
        pytest.param(webhook(**term("DoesNotExist")), webhook(**term("NotIn", "a")), True, id="labelled ones too"),
        pytest.param(webhook(**term("NotIn", "a")), webhook(**term("DoesNotExist")), False, id="unlabelled ones only"),
        pytest.param(webhook(**term("Exists")), webhook(**term("DoesNotExist")), True, id="the others"),
        pytest.param(webhook(**term("In", "a")), webhook(), True, id="no selector any more"),
        pytest.param(webhook(), webhook(**term("In", "a")), False, id="a selector where none was"),
    ],
)
def test_what_a_webhook_sees_is_compared_by_what_it_means(
    before: dict[str, Any], after: dict[str, Any], is_wider: bool
) -> None:
    change = planned(configuration(after), Action.UPDATE, before=configuration(before))
    previous = facts(planned(configuration(before), Action.CREATE)).content
    found = found_by(change, checks=[webhooks.CHECK], previous=previous)
    assert bool([finding for finding in found if finding.rule == "WH-09"]) is is_wider


def test_a_webhook_without_rules_goes_without_a_crash() -> None:
    gone = configuration({"name": "a", "rules": [{}, "x"]}, {"name": "b", "rules": 7})
    assert [finding.rule for finding in found_by(planned(gone, Action.DELETE, before=gone))] == ["WH-10"]


# Admission policies


def policy(*resources: str, kind: str = "ValidatingAdmissionPolicy", **spec: Any) -> dict[str, Any]:
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": list(resources)}]
    constraints = {"resourceRules": rules, **spec.pop("constraints", {})}
    return an_object(f"{GROUP}/v1", kind, "limits", spec={"matchConstraints": constraints, **spec})


PARAMETERS = {"apiVersion": "v1", "kind": "ConfigMap"}


def binding(**parameters: Any) -> dict[str, Any]:
    spec = {"policyName": "limits"} | ({"paramRef": parameters} if parameters else {})
    return an_object(f"{GROUP}/v1", "ValidatingAdmissionPolicyBinding", "limits", spec=spec)


def judged(*objects: dict[str, Any], **exists: bool) -> list[tuple[str, Severity]]:
    known = {
        ObjectRef("", "v1", "ConfigMap", "shop", "values").identity: exists.get("values"),
        ObjectRef(GROUP, "v1", "ValidatingAdmissionPolicy", "", "limits").identity: exists.get("limits"),
    }
    around = ClusterSurroundings(exists={key: answer for key, answer in known.items() if answer is not None})
    actions = [planned(one, Action.CREATE) for one in objects]
    return [
        (finding.rule, finding.severity)
        for finding in found_by(*actions, checks=[admission.POLICIES_CHECK], around=around)
    ]


@pytest.mark.parametrize(
    ("obj", "severities"),
    [
        pytest.param(policy("orders"), [], id="its own objects"),
        pytest.param(policy("pods"), [Severity.NOTABLE], id="pods"),
        pytest.param(policy("pods", kind="MutatingAdmissionPolicy"), [Severity.DANGEROUS], id="alters pods"),
        pytest.param(
            policy("pods", paramKind=PARAMETERS), [Severity.CRITICAL, Severity.NOTABLE], id="locks without parameters"
        ),
        pytest.param(
            policy("pods", paramKind=PARAMETERS, failurePolicy="Ignore"), [Severity.NOTABLE], id="lets pass without"
        ),
    ],
)
def test_policies_are_judged_as_webhooks_are(obj: dict[str, Any], severities: list[Severity]) -> None:
    assert judged(obj) == [("WH-11", severity) for severity in severities]


@pytest.mark.parametrize(
    ("parameters", "exists", "severities"),
    [
        pytest.param({"name": "values", "namespace": "shop"}, {"values": True}, [], id="there"),
        pytest.param({"name": "values", "namespace": "shop"}, {"values": False}, [Severity.BREAKING], id="nowhere"),
        pytest.param({"name": "values", "namespace": "shop"}, {}, [Severity.UNKNOWN], id="nobody may look"),
        pytest.param(
            {"name": "values", "namespace": "shop", "parameterNotFoundAction": "Allow"},
            {"values": False},
            [],
            id="not needed",
        ),
    ],
)
def test_parameters_have_to_be_there(
    parameters: dict[str, Any], exists: dict[str, bool], severities: list[Severity]
) -> None:
    found = judged(policy("orders", paramKind=PARAMETERS), binding(**parameters), **exists)
    assert [severity for _, severity in found] == severities


def test_a_binding_without_its_policy_is_said() -> None:
    assert judged(binding(), limits=False) == [("WH-11", Severity.DANGEROUS)]
    assert judged(binding(), limits=True) == []
