"""In which order objects come and go."""

from __future__ import annotations

import pytest

from provisioner.cluster.graph import DEPENDS_ON
from provisioner.cluster.order import CUSTOM, defined_kinds, deletion_phases, phases, served_versions
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
