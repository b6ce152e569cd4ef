"""S36: no changed field is called safe unless a rule judged it."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check
from provisioner.review.base.messages import UNCLAIMED, UNJUDGED, unjudged_fields
from provisioner.review.frame import report
from provisioner.values import Action, Finding, ObjectRef, PlannedAction, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, planned, web_workload

SERVICE = an_object("v1", "Service", "web", "shop", spec={"selector": {"app": "web"}})
ELSEWHERE = an_object("v1", "Service", "web", "shop", spec={"selector": {"app": "web"}, "type": "ExternalName"})
ORDER = an_object("shop.example.com/v1", "Order", "first", "shop", spec={"size": 1})


def unjudged(*actions: PlannedAction, checks: list[Check] | None = None, **rest: Any) -> list[Finding]:
    found = report(facts(*actions, **rest), checks or []).findings
    return [one for one in found if one.rule in {UNJUDGED, UNCLAIMED}]


def update(before: dict[str, Any], after: dict[str, Any], **rest: Any) -> PlannedAction:
    return planned(after, Action.UPDATE, before=before, **rest)


def test_S36_a_field_that_no_rule_judges_is_notable_and_shows_both_values() -> None:
    (found,) = unjudged(update(web_workload(dnsPolicy="ClusterFirst"), web_workload(dnsPolicy="Default")))
    assert (found.severity, found.message) == (
        Severity.NOTABLE,
        "Deployment shop/web: no rule judges spec.template.spec.dnsPolicy: ClusterFirst → Default",
    )
    assert found.evidence["changes"] == [
        {"path": ["spec", "template", "spec", "dnsPolicy"], "before": "ClusterFirst", "after": "Default"}
    ]


@pytest.mark.parametrize(
    ("paths", "is_judged"),
    [(("spec.type",), True), (("spec",), True), (("spec.selector",), False), (("spec.type.x",), False)],
    ids=["its own", "above", "beside", "below"],
)
def test_a_rule_judges_the_fields_that_it_claims_and_no_others(paths: tuple[str, ...], *, is_judged: bool) -> None:
    check = Check("some", claims=(Claim("SV-01", EVERY_KIND, paths),))
    assert (unjudged(update(SERVICE, ELSEWHERE), checks=[check]) == []) is is_judged


def test_the_same_field_of_several_objects_is_said_in_the_same_words() -> None:
    names = ("a", "b")
    changes = [update(config_map(name, mode="fast"), config_map(name, mode="slow")) for name in names]
    words = [one.message.partition(": ")[2] for one in unjudged(*changes)]
    assert words == ["no rule judges data.mode: fast → slow"] * 2


def test_a_new_object_is_one_finding_of_what_the_content_sets() -> None:
    wished = an_object("v1", "Service", "web", "shop", spec={"sessionAffinity": "ClientIP"})
    stored = {**wished, "spec": {"sessionAffinity": "ClientIP", "internalTrafficPolicy": "Cluster"}}
    given = facts(planned(wished, Action.CREATE))
    action = planned(stored, Action.CREATE)
    (found,) = unjudged(action, content=given.content)
    assert found.message == "Service shop/web: no rule judges 1 field of the new object: spec.sessionAffinity"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param({"PASSWORD": "Pl4nted"}, {"PASSWORD": "0ther"}, id="named like a credential"),
        pytest.param({"url": "https://me:Pl4nted@x"}, {"url": "https://me:0ther@x"}, id="written like one"),
    ],
)
def test_a_credential_is_not_shown_and_yet_said_to_change(old: dict[str, str], new: dict[str, str]) -> None:
    (found,) = unjudged(update(config_map(**old), config_map(**new)))
    assert "Pl4nted" not in str(found)
    assert "0ther" not in str(found)
    assert "hidden values changed" in found.message


def test_a_secret_shows_only_that_it_changes() -> None:
    before, after = (
        an_object("v1", "Secret", "s", "shop", data={"password": value}) for value in ("hidden", "changed")
    )
    (found,) = unjudged(update(before, after))
    assert found.message == "Secret shop/s: no rule judges data.password: hidden → changed"


@pytest.mark.parametrize(
    ("action", "severity", "rule"),
    [
        pytest.param(planned(ORDER, Action.CREATE), Severity.NOTABLE, UNCLAIMED, id="new"),
        pytest.param(update({**ORDER, "spec": {"size": 9}}, ORDER), Severity.NOTABLE, UNCLAIMED, id="changed"),
        pytest.param(
            planned(an_object("security.openshift.io/v1", "Scc", "s", allow=True), Action.CREATE),
            Severity.DANGEROUS,
            UNCLAIMED,
            id="that governs",
        ),
        pytest.param(
            planned(an_object("shop.example.com/v1", "Order", "bare", "shop"), Action.CREATE),
            Severity.NOTABLE,
            UNCLAIMED,
            id="that holds nothing",
        ),
        pytest.param(planned(ORDER, Action.UPDATE), Severity.UNKNOWN, UNCLAIMED, id="whose fields were not read"),
        pytest.param(planned(SERVICE, Action.UPDATE), Severity.UNKNOWN, UNJUDGED, id="known, but not read"),
        pytest.param(
            update(
                an_object("storage.k8s.io/v1", "StorageClass", "s", provisioner="a"),
                an_object("storage.k8s.io/v1", "StorageClass", "s", provisioner="b"),
            ),
            Severity.DANGEROUS,
            UNJUDGED,
            id="known, and governs where no rule looks",
        ),
    ],
)
def test_a_kind_that_no_rule_names_is_one_finding_an_object(
    action: PlannedAction, severity: Severity, rule: str
) -> None:
    assert [(one.rule, one.severity) for one in unjudged(action)] == [(rule, severity)]


def test_fields_of_the_server_are_not_removed_by_what_could_not_be_planned() -> None:
    live = {**SERVICE, "spec": {**SERVICE["spec"], "clusterIP": "10.0.0.1"}}
    wished = facts(planned(ELSEWHERE, Action.CREATE)).content
    action = planned(ELSEWHERE, Action.UPDATE, before=live, after=None, problem="it conflicts")
    assert [one.evidence["fields"] for one in unjudged(action, content=wished)] == [["spec.type"]]


def test_a_label_that_a_selector_names_is_not_harmless() -> None:
    before, after = (
        {**config_map(), "metadata": {"name": "settings", "namespace": "shop", "labels": {"helm.sh/chart": version}}}
        for version in ("web-1", "web-2")
    )
    assert unjudged(update(before, after)) == []
    chooses = an_object("v1", "Service", "web", "shop", spec={"selector": {"helm.sh/chart": "web-2"}})
    found = unjudged(update(before, after), planned(chooses, Action.NONE))
    assert [one.evidence["fields"] for one in found] == [["metadata.labels.[helm.sh/chart]"]]


def test_what_is_harmless_by_nature_is_safe_and_says_so() -> None:
    before, after = (
        an_object("batch/v1", "CronJob", "c", "shop", spec={"successfulJobsHistoryLimit": count}) for count in (1, 2)
    )
    (found,) = [finding for finding in report(facts(update(before, after)), []).findings if finding.rule == "HARMLESS"]
    assert (found.severity, found.evidence["fields"]) == (Severity.SAFE, ["spec.successfulJobsHistoryLimit"])


def test_the_fields_of_many_objects_that_are_told_at_once_are_all_counted() -> None:
    many = [update(config_map(f"m{place}", a="1"), config_map(f"m{place}", a="2")) for place in range(20)]
    (found,) = unjudged(*many)
    assert list(unjudged_fields(found.rule, found.evidence)) == ["data.a"] * 20


@pytest.mark.parametrize(
    ("spec", "labels", "words"),
    [
        pytest.param({"size": 2}, {}, "spec.size 1 → 2", id="one"),
        pytest.param(
            {"size": 2, "deep": {"more": "x" * 90}},
            {"a": "b"},
            f"spec.deep.more not set → {'x' * 60}…; and 2 more",
            id="long",
        ),
        pytest.param({"size": 1}, {"a": "b", "c": "d"}, "2 values of metadata.labels change", id="labels alone"),
        pytest.param({"size": 1, "password": "Pl4nted"}, {}, "spec.password not set → hidden", id="a credential"),
    ],
)
def test_what_changes_in_a_kind_that_no_rule_names_is_said_with_its_first_values(
    spec: dict[str, Any], labels: dict[str, str], words: str
) -> None:
    after = an_object("shop.example.com/v1", "Order", "first", "shop", spec=spec)
    after["metadata"] = {**after["metadata"], "labels": labels} if labels else after["metadata"]
    (found,) = unjudged(update(ORDER, after))
    assert found.message == f"Updates Order.shop.example.com shop/first, which no check looks at: {words}"


PART_OF = "app.kubernetes.io/part-of"
HOOK = an_object(
    "admissionregistration.k8s.io/v1",
    "ValidatingWebhookConfiguration",
    "w",
    webhooks=[{"name": "w.example.com", "objectSelector": {"matchLabels": {PART_OF: "x"}}}],
)
POLICY = an_object(
    "networking.k8s.io/v1", "NetworkPolicy", "n", "shop", spec={"podSelector": {"matchLabels": {PART_OF: "x"}}}
)


LABELLED_WORKLOAD = an_object(
    "apps/v1", "Deployment", "web", "shop", spec={"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}
)


def labelled(obj: dict[str, Any], **labels: str) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "labels": labels}}


@pytest.mark.parametrize(
    ("obj", "others", "left"),
    [
        pytest.param(labelled(config_map(), **{PART_OF: "x"}), [], [], id="a recommended label"),
        pytest.param(labelled(config_map(), **{PART_OF: "x"}), [POLICY], [], id="that selects pods"),
        pytest.param(
            labelled(config_map(), **{PART_OF: "x"}),
            [HOOK],
            [f"metadata.labels.[{PART_OF}]"],
            id="that a webhook names",
        ),
        pytest.param(labelled(config_map(), team="x"), [], ["metadata.labels.team"], id="any other label"),
        pytest.param(config_map("free", a="b"), [], [], id="data that nobody reads"),
        pytest.param(
            config_map("read", a="b"),
            [web_workload(volumes=[{"name": "v", "configMap": {"name": "read"}}])],
            ["data.a"],
            id="data that pods mount",
        ),
        pytest.param(
            config_map("read", a="b"),
            [web_workload(containers=[{"name": "main", "args": ["--config-map=shop/read"]}])],
            ["data.a"],
            id="data that pods name",
        ),
        pytest.param(
            an_object("v1", "ConfigMap", "x", "kube-system", data={"a": "b"}), [], ["data.a"], id="data of Kubernetes"
        ),
        pytest.param(
            an_object("v1", "ConfigMap", "x", "other", data={"a": "b"}), [], ["data.a"], id="data beside others' pods"
        ),
        pytest.param(
            an_object("v1", "Service", "s", "shop", spec={"selector": {"app": "web"}, "ports": [{"port": 80}]}),
            [LABELLED_WORKLOAD],
            [],
            id="a Service of the bundle's pods",
        ),
        pytest.param(
            an_object("v1", "Service", "s", "shop", spec={"selector": {"app": "x"}, "ports": [{"port": 80}]}),
            [LABELLED_WORKLOAD],
            ["spec.ports[].port", "spec.selector.app"],
            id="a Service of others' pods",
        ),
    ],
)
def test_S36_what_needs_no_rule_in_a_new_object_is_listed_with_its_reason(
    obj: dict[str, Any], others: list[dict[str, Any]], left: list[str]
) -> None:
    found = unjudged(*(planned(one, Action.CREATE) for one in (obj, *others)))
    assert [
        field for one in found if one.ref == ObjectRef.of(obj) for field in unjudged_fields(one.rule, one.evidence)
    ] == left
    changed = unjudged(update(labelled(config_map(), **{PART_OF: "a"}), labelled(config_map(), **{PART_OF: "b"})))
    assert [one.evidence["fields"] for one in changed] == [[f"metadata.labels.[{PART_OF}]"]]


def test_a_kind_that_governs_others_stays_dangerous_where_rules_judge_its_metadata_alone() -> None:
    """An annotation makes a StorageClass the default, which a rule judges; what else it says no rule does."""
    before, after = (
        {**an_object("storage.k8s.io/v1", "StorageClass", "fast"), "mountOptions": options}
        for options in ([], ["noexec"])
    )
    found = report(facts(planned(after, Action.UPDATE, before=before))).findings
    assert [one.severity for one in found if one.rule == UNJUDGED] == [Severity.DANGEROUS]
