"""In which order objects come and go."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.cluster.order import (
    CUSTOM,
    DEPENDS_ON,
    Phase,
    defined_kinds,
    deletion_phases,
    needs_of,
    phases,
    served_versions,
)
from provisioner.errors import DependencyCycle, InvalidManifest
from provisioner.phases import PHASES
from provisioner.values import GroupKind, Manifest, ObjectRef


def manifest(api_version: str, kind: str, name: str = "x", *, file: str = "", **rest: object) -> Manifest:
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **rest}, file)


def test_phases_come_in_order_and_only_where_they_hold_something():
    bundle = [manifest("apps/v1", "Deployment"), manifest("v1", "Namespace"), manifest("v1", "Secret")]
    assert [phase.name for phase in phases(bundle)] == ["namespaces", "configuration", "deploy"]


def test_a_custom_resource_comes_after_its_definition_whatever_the_files_say():
    names = {"group": "example.com", "names": {"kind": "Widget"}}
    definition = manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", file="99_crd.yaml", spec=names)
    resource = manifest("example.com/v1", "Widget", file="00_widget.yaml")
    order = [one.ref.kind for phase in phases([resource, definition]) for one in phase.manifests]
    assert order == ["CustomResourceDefinition", "Widget"]
    assert defined_kinds([resource, definition]) == {GroupKind("example.com", "Widget")}


def test_file_names_order_a_phase_as_people_number_them():
    bundle = [
        manifest("v1", "ConfigMap", name, file=file) for name, file in (("c", "10_c"), ("a", "2_a"), ("b", "2_a"))
    ]
    assert [one.ref.name for one in phases(bundle)[0].manifests] == ["a", "b", "c"]


@pytest.mark.parametrize("file", ["1²2.yaml", "²1³.yaml", "٣_x.yaml", f"{'9' * 5000}_x.yaml"])
def test_what_is_no_number_for_people_or_none_for_a_machine_is_no_reason_to_fail(file):
    bundle = [manifest("v1", "ConfigMap", "last", file=file), manifest("v1", "ConfigMap", "first", file="1_a.yaml")]
    assert [one.ref.name for one in phases(bundle)[0].manifests] == ["first", "last"]


def test_the_order_does_not_depend_on_the_order_of_the_manifests():
    bundle = [manifest("v1", "ConfigMap", name) for name in "dacb"]
    assert phases(bundle) == phases(reversed(bundle))


def test_what_came_last_goes_first_and_custom_resources_before_what_cleans_up_after_them():
    kinds = [
        ("v1", "Namespace"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("apps/v1", "Deployment"),
        ("example.com/v1", "Widget"),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ]
    refs = [manifest(*one).ref for one in kinds]
    assert [phase.name for phase in deletion_phases(refs)] == ["admission", CUSTOM, "deploy", "crds", "namespaces"]
    assert sorted(ref for phase in deletion_phases(refs) for ref in phase.refs) == sorted(refs)


def test_every_phase_can_be_left_again():
    refs = [ObjectRef("", "v1", "Namespace", "", "x")]
    assert deletion_phases(refs)[0].name == PHASES[0]


def leaving(*stated: tuple[str, str], moved: dict[str, tuple[str, str]] | None = None) -> list[list[str]]:
    """The names of four ConfigMaps a to d (or of the kinds in `moved`) as they go, each (x, y) saying: x depends on y."""
    kinds = {name: (moved or {}).get(name, ("v1", "ConfigMap")) for name in "abcd"}
    made = {name: manifest(*kind, name) for name, kind in kinds.items()}
    bodies = {one.ref.identity: dict(one.body) for one in made.values()}
    for name, needed in stated:
        ref = made[needed].ref if needed in made else None
        words = f"{ref.group}/{ref.kind}/{ref.name}" if ref else needed
        bodies[made[name].ref.identity]["metadata"] = {"name": name, "annotations": {DEPENDS_ON: words}}
    return [[ref.name for ref in phase.refs] for phase in deletion_phases((one.ref for one in made.values()), bodies)]


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        pytest.param([], [["d", "c", "b", "a"]], id="nothing stated"),
        pytest.param([("a", "d")], [["c", "b", "a"], ["d"]], id="what depends goes first"),
        pytest.param([("a", "b"), ("b", "c")], [["d", "a"], ["b"], ["c"]], id="a chain"),
        pytest.param([("a", "b"), ("b", "a")], [["d", "c", "b", "a"]], id="a circle counts as nothing stated"),
        pytest.param([("a", "a")], [["d", "c", "b", "a"]], id="on itself"),
        pytest.param([("a", "no order at all")], [["d", "c", "b", "a"]], id="words that nobody can read"),
        pytest.param([("a", "/ConfigMap/stays")], [["d", "c", "b", "a"]], id="what does not go"),
    ],
)
def test_a_stated_order_is_reversed_where_objects_go(stated: list[tuple[str, str]], expected: list[list[str]]) -> None:
    assert leaving(*stated) == expected


def test_what_is_depended_on_goes_in_a_later_phase_than_its_own_if_need_be():
    moved = {"a": ("v1", "Namespace"), "b": ("apps/v1", "Deployment")}
    assert leaving(moved=moved) == [["b"], ["d", "c"], ["a"]]
    assert leaving(("a", "b"), moved=moved) == [["d", "c"], ["a"], ["b"]]


def test_what_admits_goes_first_though_others_state_that_they_need_it():
    moved = {"b": ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")}
    assert leaving(("a", "b"), ("c", "a"), moved=moved) == [["b"], ["d", "c"], ["a"]]


@pytest.mark.parametrize(
    "spec",
    ["text", ["list"], {"names": "text", "versions": 7}, {"names": {"kind": 1}, "versions": ["v1", None]}],
    ids=str,
)
def test_a_definition_of_an_impossible_shape_is_left_for_the_server_to_refuse(spec: object) -> None:
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "x"}}
    assert set(served_versions([Manifest({**body, "spec": spec})]).values()) == {frozenset()}


RBAC = "rbac.authorization.k8s.io/v1"
ADMISSION = "admissionregistration.k8s.io/v1"
DEFINITIONS = "apiextensions.k8s.io/v1"


def made(
    api_version: str, kind: str, name: str = "x", *, after: str = "", file: str = "", namespace: str = "", **rest: Any
) -> Manifest:
    meta: dict[str, Any] = {"name": name} | ({"namespace": namespace} if namespace else {})
    if after:
        meta["annotations"] = {DEPENDS_ON: after}
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": meta, **rest}, file)


def settings(name: str, *, after: str = "", file: str = "") -> Manifest:
    return made("v1", "ConfigMap", name, after=after, file=file)


def web(kind: str = "Deployment", api_version: str = "apps/v1", **labels: str) -> Manifest:
    template = {"metadata": {"labels": labels or {"app": "web"}}}
    return made(api_version, kind, "web", namespace="a", spec={"template": template})


def service(**selector: str) -> Manifest:
    return made("v1", "Service", "web", namespace="a", spec={"selector": selector or {"app": "web"}})


CALLED = {"clientConfig": {"service": {"namespace": "a", "name": "web"}}}


def definition(*versions: str, webhook: bool = False, kind: str = "Widget") -> Manifest:
    spec: dict[str, Any] = {
        "group": "example.com",
        "names": {"kind": kind},
        "versions": [{"name": name, "storage": name == (versions or ("v1",))[0]} for name in versions or ("v1",)],
    }
    if webhook:
        spec["conversion"] = {"strategy": "Webhook", "webhook": CALLED}
    return made(DEFINITIONS, "CustomResourceDefinition", "widgets.example.com", spec=spec)


def names(found: list[Phase]) -> list[tuple[str, list[list[str]]]]:
    return [(phase.name, [[one.ref.kind for one in step.manifests] for step in phase.steps]) for phase in found]


def needed(*bundle: Manifest) -> dict[str, set[str]]:
    """By kind: what it needs, "!" behind what has to work."""
    return {
        identity[1]: {f"{need.identity[1]}{'!' if need.is_ready else ''}" for need in needs}
        for identity, needs in needs_of(bundle).items()
        if needs
    }


@pytest.mark.parametrize(
    ("bundle", "expected"),
    [
        pytest.param([settings("one")], {}, id="an object by itself"),
        pytest.param(
            [made("v1", "Namespace", "a"), made("v1", "Secret", namespace="a"), made("v1", "Pod", namespace="b")],
            {"Secret": {"Namespace!"}},
            id="what lives in a namespace of the bundle",
        ),
        pytest.param(
            [definition(), made("example.com/v1", "Widget"), made("other.com/v1", "Widget", "y")],
            {"Widget": {"CustomResourceDefinition!"}},
            id="a custom resource",
        ),
        pytest.param(
            [
                made(RBAC, "Role", "r", namespace="a"),
                made(RBAC, "Role", "r", namespace="b"),
                made(RBAC, "RoleBinding", namespace="a", roleRef={"kind": "Role", "name": "r"}),
            ],
            {"RoleBinding": {"Role"}},
            id="a binding of a role in its namespace",
        ),
        pytest.param(
            [
                made(RBAC, "ClusterRole", "r"),
                made(RBAC, "RoleBinding", namespace="a", roleRef={"kind": "ClusterRole", "name": "r"}),
            ],
            {"RoleBinding": {"ClusterRole"}},
            id="a binding of a cluster role",
        ),
        pytest.param(
            [web(), web("StatefulSet", app="other"), service(), made(ADMISSION, "ValidatingWebhookConfiguration", webhooks=[CALLED])],
            {"ValidatingWebhookConfiguration": {"Service", "Deployment!"}},
            id="a webhook and who answers it",
        ),
        pytest.param(
            [web(), service(), made("apiregistration.k8s.io/v1", "APIService", spec={"service": {"namespace": "a", "name": "web"}})],
            {"APIService": {"Service", "Deployment!"}},
            id="an aggregated API and who serves it",
        ),
        pytest.param(
            [
                made("apiregistration.k8s.io/v1", "APIService", spec={"group": "example.com", "version": "v1", "service": {"name": "w"}}),
                made("example.com/v1", "Thing"),
                made("example.com/v2", "Thing", "y"),
            ],
            {"Thing": {"APIService!"}},
            id="an object of an aggregated API",
        ),
        pytest.param(
            [made("storage.k8s.io/v1", "StorageClass", "fast"), made("v1", "PersistentVolumeClaim", spec={"storageClassName": "fast"})],
            {"PersistentVolumeClaim": {"StorageClass"}},
            id="a claim of a class",
        ),
        pytest.param(
            [made("networking.k8s.io/v1", "IngressClass", "in"), made("networking.k8s.io/v1", "Ingress", spec={"ingressClassName": "in"})],
            {"Ingress": {"IngressClass"}},
            id="an ingress of a class",
        ),
        pytest.param(
            [
                made(ADMISSION, "ValidatingAdmissionPolicy", "p"),
                made(ADMISSION, "ValidatingAdmissionPolicyBinding", spec={"policyName": "p"}),
            ],
            {"ValidatingAdmissionPolicyBinding": {"ValidatingAdmissionPolicy"}},
            id="a binding of a policy",
        ),
        pytest.param(
            [
                made("cert-manager.io/v1", "Issuer", "i", namespace="a"),
                made("cert-manager.io/v1", "Certificate", namespace="a", spec={"issuerRef": {"name": "i"}}),
            ],
            {"Certificate": {"Issuer"}},
            id="a certificate of an issuer",
        ),
        pytest.param(
            [definition("v1", "v2", webhook=True), web(), service(), made("example.com/v1", "Widget")],
            {"Widget": {"CustomResourceDefinition!"}},
            id="in the stored version nothing is converted",
        ),
        pytest.param(
            [definition("v1", "v2", webhook=True), web(), service(), made("example.com/v2", "Widget")],
            {"Widget": {"CustomResourceDefinition!", "Service", "Deployment!"}},
            id="in another version the conversion webhook has to work",
        ),
        pytest.param(
            [settings("one"), made("v1", "Secret", after="/ConfigMap/one, apps/namespaces/b/Deployment/not-ours")],
            {"Secret": {"ConfigMap!"}},
            id="an order that the content states",
        ),
    ],
)  # fmt: skip
def test_what_an_object_needs(bundle, expected):
    assert needed(*bundle) == expected


@pytest.mark.parametrize(
    "spec",
    [None, [], "x", {"selector": None}, {"template": []}, {"versions": {}, "names": [], "group": 7}],
    ids=["none", "list", "text", "null selector", "list template", "wrong types"],
)
@pytest.mark.parametrize("kind", ["CustomResourceDefinition", "Service", "Deployment", "APIService", "Ingress"])
def test_an_object_of_no_sense_needs_nothing(kind, spec):
    groups = {"CustomResourceDefinition": DEFINITIONS, "Service": "v1", "Deployment": "apps/v1"}
    groups |= {"APIService": "apiregistration.k8s.io/v1", "Ingress": "networking.k8s.io/v1"}
    assert (
        needed(made(groups[kind], kind, spec=spec), made(ADMISSION, "ValidatingWebhookConfiguration", webhooks=[spec]))
        == {}
    )


def test_a_need_inside_a_phase_makes_two_steps_of_it():
    bundle = [
        made(ADMISSION, "ValidatingAdmissionPolicyBinding", "a", spec={"policyName": "z"}),
        made(ADMISSION, "ValidatingAdmissionPolicy", "z"),
        made(ADMISSION, "ValidatingWebhookConfiguration", "m"),
    ]
    steps = [["ValidatingAdmissionPolicy", "ValidatingWebhookConfiguration"], ["ValidatingAdmissionPolicyBinding"]]
    assert names(phases(bundle)) == [("admission", steps)]


def test_a_need_against_the_phases_moves_the_object_into_the_later_one():
    """The kind of the object exists only once an APIService of a later phase works."""
    spec = {"group": "example.com", "version": "v1", "service": {"namespace": "a", "name": "web"}}
    bundle = [
        made("example.com/v1", "Thing"),
        made("apiregistration.k8s.io/v1", "APIService", "v1.example.com", spec=spec),
        web(),
        service(),
    ]
    found = phases(bundle)
    assert names(found) == [
        ("infrastructure", [["Service"]]),
        ("deploy", [["Deployment"]]),
        ("publish", [["APIService"], ["Thing"]]),
    ]
    assert found[2].steps[0].needs == {web().ref.identity}
    assert found[2].steps[1].needs == {("apiregistration.k8s.io", "APIService", "", "v1.example.com")}


def test_a_chain_comes_link_by_link_whatever_the_files_say():
    bundle = [
        settings("c", after="/ConfigMap/b", file="01_c.yaml"),
        settings("b", after="/ConfigMap/a", file="02_b.yaml"),
        settings("a", file="03_a.yaml"),
    ]
    (phase,) = phases(bundle)
    assert [[one.ref.name for one in step.manifests] for step in phase.steps] == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize(
    ("files", "steps"),
    [
        (["b.yaml", "a.yaml"], [["a.yaml", "b.yaml"]]),
        (["0001.yaml", "0000.yaml"], [["0000.yaml", "0001.yaml"]]),
        (["10_a.yaml", "2-b.yaml", "02_c.yaml"], [["02_c.yaml", "2-b.yaml"], ["10_a.yaml"]]),
        (["rest.yaml", "99_last.yaml"], [["99_last.yaml"], ["rest.yaml"]]),
        (["2_x/1_a.yaml", "1_x/9_b.yaml", "2_x/0_c.yaml"], [["1_x/9_b.yaml"], ["2_x/0_c.yaml"], ["2_x/1_a.yaml"]]),
    ],
    ids=["no numbers", "numbers that number nothing", "numbers", "what has none comes last", "folders"],
)
def test_numbers_in_front_of_file_names_order_a_phase(files, steps):
    (phase,) = phases(settings(f"n{index}", file=file) for index, file in enumerate(files))
    assert [sorted(one.file for one in step.manifests) for step in phase.steps] == steps


def test_a_cycle_is_an_error_that_shows_it():
    bundle = [
        settings("a", after="/ConfigMap/b"),
        settings("b", after="/ConfigMap/c"),
        settings("c", after="/ConfigMap/b"),
        settings("d"),
    ]
    with pytest.raises(DependencyCycle, match="ConfigMap b → ConfigMap c → ConfigMap b$"):
        phases(bundle)


def test_an_object_that_serves_its_own_conversion_is_a_cycle():
    """A workload of a custom kind behind the webhook that has to convert it before it can exist."""
    bundle = [definition("v1", "v2", webhook=True), web("Widget", "example.com/v2"), service()]
    with pytest.raises(DependencyCycle, match="Widget.example.com a/web → Widget.example.com a/web"):
        phases(bundle)


def test_a_long_chain_is_no_recursion():
    bundle = [settings(f"n{number:05}", after=f"/ConfigMap/n{number + 1:05}") for number in range(5000)]
    (phase,) = phases([*bundle, settings("n05000")])
    assert len(phase.steps) == 5001
    assert phase.steps[0].manifests[0].ref.name == "n05000"


@pytest.mark.parametrize("words", ["ConfigMap/one", "a/b/c/d", "/namespaces/x/ConfigMap", "one", "/ConfigMap/a/"])
def test_an_order_that_nobody_can_read_is_refused(words):
    with pytest.raises(InvalidManifest, match="expected group/kind/name"):
        phases([settings("a", after=words)])


def test_whatever_the_order_of_the_manifests_the_steps_are_the_same():
    bundle = [settings("a", after="/ConfigMap/c"), settings("b", file="1_b"), settings("c"), web(), service()]
    assert phases(bundle) == phases(bundle[::-1])
