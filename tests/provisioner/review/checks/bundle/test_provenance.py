"""Catalogs, requirements and moves of sources."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Facts, Listed, Listing, ServedKind
from provisioner.review.checks.bundle import provenance
from provisioner.values import (
    DEPENDENCY,
    Action,
    ChosenBundle,
    Course,
    EarlierPin,
    EarlierVersion,
    Finding,
    Pin,
    Requirement,
    RequirementKind,
    Severity,
    SourceHistory,
    SourceMove,
    UpgradeStep,
)
from tests.support.provisioner.contents import an_object, config_map, facts, judged_by, planned

BUNDLE = ChosenBundle(
    "", "hub", "sha256:aa", "harbour", "stable", "harbour.v1.2.0", "1.2.0", "example.com/harbour@sha256:bb"
)
WHERE = "catalog hub, package harbour"
NAME = "harbour.v1.2.0 (1.2.0)"


def found_in_catalogs(bundle: ChosenBundle, *requirements: Requirement) -> list[Finding]:
    given = facts(planned(config_map("a"), Action.CREATE), history=SourceHistory(bundles=(bundle,)))
    content = replace(given.content, requirements=requirements)
    return judged_by(replace(given, content=content), [provenance.CATALOGS_CHECK])


@pytest.mark.parametrize("step", [UpgradeStep.FIRST, UpgradeStep.SAME, UpgradeStep.FOLLOWS])
def test_what_follows_an_edge_or_is_a_higher_chart_is_as_expected(step: UpgradeStep) -> None:
    assert not found_in_catalogs(replace(BUNDLE, step=step))
    assert not found_in_catalogs(replace(BUNDLE, step=step, is_chart=True))


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "words"),
    [
        (
            {"step": UpgradeStep.LEAVES, "before": "harbour.v1.0.0"},
            "CAT-01",
            Severity.DANGEROUS,
            f"no edge leads from harbour.v1.0.0, which runs, to {NAME}",
        ),
        (
            {"step": UpgradeStep.ELSEWHERE},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} takes the place of another package, from which no edge can lead",
        ),
        (
            {"step": UpgradeStep.UNKNOWN},
            "CAT-01",
            Severity.UNKNOWN,
            f"what runs is no bundle of this package, so nobody can tell whether {NAME} may follow it",
        ),
        (
            {"step": UpgradeStep.LEAVES, "before": "harbour-1.3.0", "is_chart": True},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} is not higher than harbour-1.3.0, which runs",
        ),
        (
            {"step": UpgradeStep.ELSEWHERE, "is_chart": True},
            "CAT-01",
            Severity.DANGEROUS,
            f"{NAME} takes the place of another package, with whose versions it has no order",
        ),
        (
            {"step": UpgradeStep.UNKNOWN, "is_chart": True},
            "CAT-01",
            Severity.UNKNOWN,
            f"what runs is no version of this chart, so nobody can tell whether {NAME} is higher",
        ),
        (
            {"deprecations": ("channel stable: use fast",)},
            "CAT-02",
            Severity.NOTABLE,
            "the publisher deprecates channel stable: use fast",
        ),
        (
            {"needs": ("olm.constraint",)},
            "CAT-03",
            Severity.DANGEROUS,
            f"{NAME} depends on other bundles (olm.constraint), and nobody checked whether they are there",
        ),
        (
            {"changed": "a until 2026-11-01, b since"},
            "CAT-04",
            Severity.DANGEROUS,
            f"the content of {NAME} changed: a until 2026-11-01, b since",
        ),
        (
            {"is_withdrawn": True},
            "CAT-05",
            Severity.DANGEROUS,
            f"{NAME} was offered when it was chosen, and is no longer",
        ),
        (
            {"before_catalog": "community", "before": "harbour.v1.0.0"},
            "CAT-06",
            Severity.DANGEROUS,
            f"{NAME} comes from this catalog, and harbour.v1.0.0, which runs, came from catalog community",
        ),
        (
            {"before_catalog": "community", "is_selected": True, "priority": 10},
            "CAT-06",
            Severity.DANGEROUS,
            f"{NAME} comes from this catalog, which is selected by its priority 10, and what runs came from catalog community",
        ),
    ],
    ids=[
        "no edge",
        "another package",
        "no catalog",
        "a chart that is not higher",
        "a chart for another package",
        "a chart for what is of no catalog",
        "deprecated",
        "constraint",
        "changed",
        "withdrawn",
        "another catalog",
        "another selected catalog",
    ],
)
def test_what_speaks_against_a_bundle_is_told(
    changes: dict[str, Any], rule: str, severity: Severity, words: str
) -> None:
    (one,) = found_in_catalogs(replace(BUNDLE, **changes))
    assert (one.rule, one.severity, one.message) == (rule, severity, f"{WHERE}: {words}")
    assert one.evidence["catalogDigest"] == "sha256:aa"


def test_a_constraint_that_the_bundle_states_itself_is_told_once() -> None:
    needs = replace(BUNDLE, needs=("olm.package.required",))
    assert not found_in_catalogs(needs, Requirement(RequirementKind.PACKAGE, "store"))
    assert len(found_in_catalogs(needs)) == 1


DATABASE = Requirement(RequirementKind.API, "Database", "db.example.com", "v1")
SERVED = ServedKind("db.example.com", "v1", "Database", "databases")
CRD = an_object(
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "databases.db.example.com",
    spec={
        "group": "db.example.com",
        "names": {"kind": "Database", "plural": "databases"},
        "versions": [{"name": "v1", "served": True, "storage": True}],
    },
)
OPENSHIFT = ServedKind("config.openshift.io", "v1", "ClusterVersion", "clusterversions")


def asked_of(asked: Requirement, *objects: dict[str, Any], is_offline: bool = False, **around: Any) -> Facts:
    actions = [planned(one, Action.CREATE) for one in objects or [config_map()]]
    made = facts(*actions, around=ClusterSurroundings(**around))
    return replace(made, content=replace(made.content, requirements=(asked,)), is_offline=is_offline)


def only(found: Facts) -> Finding:
    (finding,) = (
        finding for finding in judged_by(found, [provenance.REQUIREMENTS_CHECK]) if finding.rule.startswith("REQ")
    )
    return finding


def kubernetes(version: str) -> Requirement:
    return Requirement(RequirementKind.KUBERNETES, version=version)


@pytest.mark.parametrize(
    ("least", "cluster", "severity", "words"),
    [
        ("1.25.0", "v1.36.3", Severity.SAFE, "Kubernetes 1.25.0 or later; the cluster has v1.36.3"),
        ("1.36.3", "v1.36.3", Severity.SAFE, "the cluster has v1.36.3"),
        ("1.30.4", "v1.30.4-gke.100", Severity.SAFE, "the cluster has v1.30.4-gke.100"),
        ("1.37.0", "v1.36.3", Severity.BREAKING, "needs Kubernetes 1.37.0 or later; the cluster has v1.36.3"),
        ("1.9", "v1.36.3", Severity.SAFE, "Kubernetes 1.9 or later"),
        ("1.25.0", "", Severity.UNKNOWN, "The cluster's version is not known"),
        ("new", "v1.36.3", Severity.UNKNOWN, "which is not a version"),
    ],
)
def test_REQ_01_the_lowest_kubernetes_is_compared(least: str, cluster: str, severity: Severity, words: str) -> None:
    found = only(asked_of(kubernetes(least), version=cluster))
    assert (found.rule, found.severity) == ("REQ-01", severity)
    assert words in found.message


def test_REQ_01_offline_nobody_was_asked() -> None:
    assert only(asked_of(kubernetes("1.25.0"), is_offline=True)).severity == Severity.NOTABLE


def openshift(*versions: object, problem: str = "") -> dict[str, Any]:
    """A cluster of OpenShift, with the versions that its ClusterVersions name."""
    named = [
        an_object("config.openshift.io/v1", "ClusterVersion", "version", status={"desired": {"version": one}})
        for one in versions
    ]
    listed = Listed(tuple(named), None if problem else len(named), problem=problem)
    return {"kinds": (OPENSHIFT,), "lists": {Listing("config.openshift.io", "v1", "ClusterVersion"): listed}}


@pytest.mark.parametrize(
    ("most", "around", "severity"),
    [
        pytest.param("4.12", {"kinds": ()}, Severity.SAFE, id="no OpenShift"),
        pytest.param("4.12", openshift("4.12.30"), Severity.SAFE, id="the same minor version"),
        pytest.param("4.12", openshift("4.9.1"), Severity.SAFE, id="a lower one"),
        pytest.param("4.12.0", openshift("4.13.0-rc.1"), Severity.BREAKING, id="a pre-release of a higher one"),
        pytest.param("4.12", openshift("5.0.0"), Severity.BREAKING, id="a higher major version"),
        pytest.param("soon", openshift("4.12.30"), Severity.UNKNOWN, id="the most is no version"),
        pytest.param("4.12", openshift("new"), Severity.UNKNOWN, id="its version is none"),
        pytest.param("4.12", openshift(None), Severity.UNKNOWN, id="it has no version yet"),
        pytest.param("4.12", openshift("4.12.1", "4.13.0"), Severity.UNKNOWN, id="it has two"),
        pytest.param("4.12", openshift(problem="forbidden"), Severity.UNKNOWN, id="it may not be read"),
        pytest.param(
            "4.12",
            {"kinds": (), "unanswered": frozenset({"config.openshift.io"})},
            Severity.UNKNOWN,
            id="its API does not answer",
        ),
        pytest.param("4.12", {"kinds": None}, Severity.UNKNOWN, id="discovery is not known"),
        pytest.param("4.12", {"is_offline": True}, Severity.NOTABLE, id="nobody was asked"),
    ],
)
def test_REQ_01_the_highest_openshift_is_compared(most: str, around: dict[str, Any], severity: Severity) -> None:
    found = only(asked_of(Requirement(RequirementKind.OPENSHIFT, version=most), **around))
    assert (found.rule, found.severity) == ("REQ-01", severity)
    assert f"OpenShift {most} at most" in found.message


@pytest.mark.parametrize(
    ("objects", "around", "severity"),
    [
        ([], {"kinds": (SERVED,)}, Severity.SAFE),
        ([CRD], {"kinds": ()}, Severity.SAFE),
        ([], {"kinds": ()}, Severity.BREAKING),
        ([], {"kinds": (replace(SERVED, version="v2"),)}, Severity.BREAKING),
        ([], {"kinds": (), "unanswered": frozenset({"db.example.com"})}, Severity.UNKNOWN),
        ([], {"kinds": None}, Severity.UNKNOWN),
        ([], {"kinds": None, "is_offline": True}, Severity.NOTABLE),
        ([CRD], {"kinds": None, "is_offline": True}, Severity.SAFE),
    ],
    ids=["served", "brought", "missing", "another version", "no answer", "not known", "offline", "offline, brought"],
)
def test_REQ_02_a_required_api_is_looked_up(
    objects: list[dict[str, Any]], around: dict[str, Any], severity: Severity
) -> None:
    found = only(asked_of(DATABASE, *objects, **around))
    assert (found.rule, found.severity) == ("REQ-02", severity)
    assert "Database in db.example.com/v1" in found.message


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        pytest.param(
            Requirement(RequirementKind.API, "Ingress", "extensions", "v1beta1"),
            "The bundle needs Ingress in extensions/v1beta1. The cluster serves no Ingress in extensions/v1beta1, which "
            "Kubernetes no longer serves as of 1.22; networking.k8s.io/v1 takes its place",
            id="removed",
        ),
        pytest.param(
            Requirement(RequirementKind.API, "Database", "db.example.com", "v2"),
            "The bundle needs Database in db.example.com/v2. The cluster serves no Database in db.example.com/v2; it serves "
            "this kind in db.example.com/v1",
            id="in another version",
        ),
        pytest.param(
            Requirement(RequirementKind.API, "Backup", "db.example.com", "v1"),
            "The bundle needs Backup in db.example.com/v1. The cluster does not serve it",
            id="not defined",
        ),
    ],
)
def test_REQ_02_why_a_required_api_is_not_served_is_said(asked: Requirement, words: str) -> None:
    assert only(asked_of(asked, kinds=(SERVED,))).message == words


def test_REQ_03_a_package_cannot_be_looked_up() -> None:
    found = only(asked_of(Requirement(RequirementKind.PACKAGE, "store", version=">=1.0.0")))
    assert (found.rule, found.severity) == ("REQ-03", Severity.NOTABLE)
    assert "needs the package store in version >=1.0.0" in found.message


def test_REQ_04_a_constraint_is_not_evaluated() -> None:
    found = only(asked_of(Requirement(RequirementKind.CONSTRAINT, "cel", version="needs a\u202e big cluster")))
    assert (found.rule, found.severity) == ("REQ-04", Severity.UNKNOWN)
    assert "\u202e" not in found.message
    assert "\u202e" not in str(found.evidence)


def test_REQ_05_fields_that_were_left_out_are_listed() -> None:
    left_out = Requirement(RequirementKind.FIELD, "Deployment manager", version="spec.template.containers")
    found = only(asked_of(left_out))
    assert (found.rule, found.severity) == ("REQ-05", Severity.NOTABLE)
    assert (
        "Deployment manager has fields that Kubernetes does not have: spec.template.containers. They" in found.message
    )


@pytest.mark.parametrize("kind", RequirementKind)
def test_a_requirement_that_names_nothing_is_said(kind: RequirementKind) -> None:
    assert only(asked_of(Requirement(kind), kinds=())).evidence["name"] == ""


def test_a_requirement_is_new_unless_the_bundle_had_it_before() -> None:
    asked = asked_of(DATABASE, kinds=())
    before = replace(asked.content, requirements=(DATABASE,))
    assert only(replace(asked, previous=before)).is_new is False
    assert only(replace(asked, previous=replace(before, requirements=()))).is_new is True


MAIN = "branch main of https://example.com/app.git"
ENDS = "revision 3 has aa, this is bb"


def found_moves(version: str = "", **history: object) -> list[Finding]:
    given = facts(planned(config_map("a"), Action.CREATE), history=SourceHistory(**history))  # type: ignore[arg-type]  # its fields, by name
    return judged_by(replace(given, content=replace(given.content, version=version)), [provenance.SOURCES_CHECK])


@pytest.mark.parametrize(
    ("course", "severity", "words"),
    [
        (Course.BACKWARD, Severity.DANGEROUS, f"{MAIN} goes back to an older commit: {ENDS}"),
        (
            Course.ASIDE,
            Severity.DANGEROUS,
            f"{MAIN} was rewritten (force-pushed), and the new commit does not follow the earlier one: {ENDS}",
        ),
        (
            Course.UNKNOWN,
            Severity.UNKNOWN,
            f"{MAIN} moved, and it could not be found out whether the new commit follows the earlier one (why): {ENDS}",
        ),
    ],
    ids=str,
)
def test_a_branch_that_does_not_move_forward_is_told(course: Course, severity: Severity, words: str) -> None:
    why = "why" if course is Course.UNKNOWN else ""
    (one,) = found_moves(moves=(SourceMove(MAIN, "aa", "bb", "revision 3", course, why),))
    assert (one.rule, one.severity, one.message) == ("SRC-02", severity, words)


def test_forward_is_as_expected() -> None:
    assert not found_moves(moves=(SourceMove(MAIN, "aa", "bb", "revision 3", Course.FORWARD),))


@pytest.mark.parametrize(
    ("version", "earlier", "is_lower"),
    [
        ("1.2.0", "1.10.0", True),
        ("1.10.0", "1.2.0", False),
        ("1.0.0-rc.1", "1.0.0", True),
        ("one", "1.0.0", False),
        ("3.14.3", "3.14.3+0.1746550072.p", True),
        ("3.14.3+0.999.p", "3.14.3+0.1746550072.p", True),
        ("3.14.3+0.1746550072.p", "3.14.3", False),
        ("3.14.2+2", "3.14.3+1", True),
    ],
)
def test_a_lower_version_is_told(version: str, earlier: str, is_lower: bool) -> None:
    known = EarlierVersion(earlier, "revision 3", has_releases=True)
    said = [finding.message for finding in found_moves(version, versions=(known,))]
    words = f"The bundle claims version {version}, lower than {earlier} of revision 3"
    assert said == ([words] if is_lower else [])


@pytest.mark.parametrize(("version", "is_lower"), [("1.2.0+1", False), ("1.2.0", False), ("1.1.0+9", True)])
def test_builds_of_a_chart_have_no_order(version: str, is_lower: bool) -> None:
    assert bool(found_moves(version, versions=(EarlierVersion("1.2.0+5", "revision 3"),))) is is_lower


NEEDED = "https://charts.example.com/base:1.0.0"


def found_dependencies(*earlier: EarlierPin, running: tuple[Pin, ...] | None = None) -> list[Finding]:
    given = facts(planned(config_map("a"), Action.CREATE), history=SourceHistory(dependencies=earlier))
    pins = (
        Pin("git", "https://example.com/app.git", "aa"),
        Pin(DEPENDENCY, NEEDED, "sha256:b", "charts/base-1.0.0.tgz"),
    )
    previous = None if running is None else replace(given.content, pins=running)
    changed = replace(given, content=replace(given.content, pins=pins), previous=previous)
    return judged_by(changed, [provenance.DEPENDENCIES_CHECK])


def test_a_dependency_that_was_fetched_is_told_with_its_digest_and_is_new_while_none_runs() -> None:
    same = (Pin(DEPENDENCY, NEEDED, "sha256:b"),)
    for running, is_new in ((None, True), ((), True), (same, False)):
        (one,) = found_dependencies(EarlierPin(NEEDED, "sha256:b", "revision 3"), running=running)
        assert (one.rule, one.severity, one.is_new) == ("SRC-05", Severity.SAFE, is_new)
        assert one.message == f"{NEEDED} was fetched, as the chart depends on it; its digest is sha256:b"


def test_a_version_of_a_dependency_with_other_bytes_than_before_is_dangerous() -> None:
    other = EarlierPin("https://charts.example.com/base:0.9.0", "sha256:z", "revision 2")
    found = found_dependencies(EarlierPin(NEEDED, "sha256:a", "revision 3"), other)
    (one,) = [each for each in found if each.severity is not Severity.SAFE]
    assert (one.rule, one.severity) == ("SRC-05", Severity.DANGEROUS)
    words = "has other bytes than before under the same version: revision 3 had sha256:a, this is sha256:b"
    assert one.message == f"{NEEDED} {words}"
