"""The preflight as a part of the report: each cause once, what is missing as YAML, what is in excess folded."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
import yaml

from provisioner.errors import ClusterError, Forbidden, InvalidObject, UnknownKind
from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import ClusterSurroundings, Facts, Gap, Installer, ServedKind
from provisioner.review.base.record import from_record, to_record
from provisioner.review.frame import mentioned, questions, report
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.values import AccessAnswer, Action, Finding, Plan, Report, Section, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, planned
from tests.support.provisioner.roles import API, account, bound, cluster_role, role, rule

INSTALLER = Installer(RbacSubject("ServiceAccount", "installer", "shop"))
KINDS = (
    ServedKind("", "v1", "ConfigMap", "configmaps"),
    ServedKind("", "v1", "Namespace", "namespaces", is_namespaced=False),
    ServedKind(API, "v1", "Role", "roles"),
    ServedKind(API, "v1", "RoleBinding", "rolebindings"),
)
SHOP = ("", "Namespace", "", "shop")
NO_RIGHT = 'configmaps "settings" is forbidden: User "system:serviceaccount:shop:installer" cannot patch resource'
SETTINGS = config_map()
WRITER = (
    cluster_role("writer", rule("get create patch", "*", group="*")),
    bound("writer", account("installer", "shop")),
)
BOSS = (
    cluster_role("boss", rule("*", "*", group="*"), rule("*", urls="*")),
    bound("boss", account("installer", "shop")),
)


def scene(
    *objects: dict[str, Any], held: tuple[dict[str, Any], ...] | None = (), problem: str = "", code: str = ""
) -> Facts:
    """Facts with an installer who holds `held` (None: nobody knows), and a plan that the API server refuses so."""
    # Who lacks which right stands in our own words; everything else that a server says is kept apart.
    refused = {"problem": problem} if problem == NO_RIGHT else {"problem": "it is refused", "server_words": problem}
    refused = {**refused, "problem_code": code} if problem else {}
    actions = [planned(obj, Action.CREATE, **refused) for obj in objects]
    around = ClusterSurroundings(KINDS, exists={SHOP: True})
    return facts(*actions, live_rbac=held, around=around, installer=INSTALLER)


def preflight_of(given: Facts) -> list[Finding]:
    return report(given).in_section(Section.PREFLIGHT)


def one_of(given: Facts, rule_id: str) -> Finding:
    (found,) = [one for one in preflight_of(given) if one.rule == rule_id]
    return found


def ids(given: Facts) -> list[str]:
    return [one.rule for one in preflight_of(given)]


def test_a_missing_right_that_the_dry_run_met_as_well_is_said_once_with_its_words() -> None:
    given = scene(SETTINGS, problem=NO_RIGHT, code=Forbidden.code)
    found = one_of(given, "PRE-01")
    assert found.severity is Severity.BREAKING
    assert found.message == "`shop/installer` may not get, create or patch ConfigMap shop/settings"
    assert NO_RIGHT in found.evidence["dry_run"]
    assert ids(given) == ["PRE-01", "PRE-RULES"]


GRANTING = role("shop", "robot", rule("list", "secrets"))


@pytest.mark.parametrize(
    ("obj", "problem", "rules"),
    [
        pytest.param(
            GRANTING,
            ("user is attempting to grant RBAC permissions not currently held: {}", Forbidden.code),
            ["PRE-02", "PRE-RULES"],
            id="a role that grants too much",
        ),
        pytest.param(
            bound("view", account("robot"), namespace="shop"),
            ("user is attempting to grant RBAC permissions not currently held: {}", Forbidden.code),
            ["PRE-03", "PRE-RULES"],
            id="a binding of more than is held",
        ),
        pytest.param(
            an_object("v1", "ConfigMap", "settings", "gone"),
            ('namespaces "gone" not found', ClusterError.code),
            ["PRE-05"],
            id="no namespace",
        ),
        pytest.param(
            an_object("shop.example.com/v1", "Order", "one", "shop"),
            ("the cluster serves no Order", UnknownKind.code),
            ["PRE-07"],
            id="no kind",
        ),
        pytest.param(SETTINGS, ("spec.a: unknown field", InvalidObject.code), ["PRE-09"], id="refused"),
        pytest.param(SETTINGS, ("exceeded quota: none", Forbidden.code), ["PRE-09"], id="forbidden, but by no role"),
    ],
)
def test_one_cause_is_one_finding(obj: dict[str, Any], problem: tuple[str, str], rules: list[str]) -> None:
    view = (*WRITER, cluster_role("view", rule("list", "pods")))
    given = scene(obj, held=view, problem=problem[0], code=problem[1])
    exists = {SHOP: True, ("", "Namespace", "", "gone"): False}
    given = replace(given, around=replace(given.around, exists=exists))
    found = [one for one in preflight_of(given) if one.rule != "PRE-10"]
    assert [one.rule for one in found] == rules
    assert found[0].severity is Severity.BREAKING


def test_the_words_of_the_dry_run_stand_with_the_cause_that_they_name() -> None:
    words = 'namespaces "gone" not found'
    given = scene(an_object("v1", "ConfigMap", "settings", "gone"), problem=words, code=ClusterError.code)
    given = replace(given, around=replace(given.around, exists={("", "Namespace", "", "gone"): False}))
    assert ids(given) == ["PRE-01", "PRE-05", "PRE-RULES"]
    assert words in one_of(given, "PRE-05").server_words
    assert "it is refused" in one_of(given, "PRE-05").evidence["dry_run"]
    assert "dry_run" not in one_of(given, "PRE-01").evidence


def test_what_only_the_dry_run_met_is_still_said() -> None:
    found = one_of(scene(SETTINGS, held=BOSS, problem=NO_RIGHT, code=Forbidden.code), "PRE-01")
    assert NO_RIGHT in found.message
    assert found.severity is Severity.BREAKING


def test_what_is_not_a_matter_of_rights_stays_where_it_was() -> None:
    given = scene(SETTINGS, held=WRITER, problem="conflict with kubectl", code="field-conflict")
    assert "PRE-09" not in ids(given)


def test_a_dry_run_settles_what_the_preflight_could_not_know() -> None:
    given = scene(SETTINGS, held=None, problem=NO_RIGHT, code=Forbidden.code)
    assert one_of(given, "PRE-01").severity is Severity.BREAKING
    assert one_of(scene(SETTINGS, held=None), "PRE-01").severity is Severity.UNKNOWN
    assert "PRE-12" in ids(given)


def test_the_missing_rules_are_yaml_in_one_finding_with_their_reasons() -> None:
    found = one_of(scene(SETTINGS, config_map("more")), "PRE-RULES")
    role_, binding = yaml.safe_load_all(found.evidence["yaml"])
    assert (role_["kind"], role_["metadata"]["namespace"], binding["kind"]) == ("Role", "shop", "RoleBinding")
    reasons = [words for one in found.evidence["rules"] for words in one["reasons"]]
    assert "needed to create ConfigMap shop/settings" in reasons
    assert found.severity is Severity.NOTABLE


def test_with_the_yaml_granted_nothing_is_left() -> None:
    given = scene(SETTINGS, GRANTING)
    granted = tuple(yaml.safe_load_all(one_of(given, "PRE-RULES").evidence["yaml"]))
    assert ids(replace(given, live_rbac=granted)) == []


def test_an_account_that_may_do_everything_is_asked_about_nothing() -> None:
    assert questions(scene(SETTINGS, GRANTING, held=BOSS)) == []
    assert questions(scene(SETTINGS)) != []


def test_a_right_that_the_api_server_gives_beside_its_roles_is_there() -> None:
    given = scene(SETTINGS)
    answers = {request: AccessAnswer(True, "by a webhook") for request in questions(given)}
    assert ids(replace(given, installer=replace(INSTALLER, answers=answers))) == []


def test_what_could_not_be_asked_is_unknown() -> None:
    gap = Gap("whether the API server agrees with its roles", "forbidden", Section.PREFLIGHT)
    given = replace(scene(SETTINGS, held=BOSS), installer=replace(INSTALLER, gaps=(gap,)))
    assert one_of(given, "PRE-12").severity is Severity.UNKNOWN
    unseen = replace(given, around=ClusterSurroundings(KINDS), installer=INSTALLER)
    assert "namespace shop" in one_of(unseen, "PRE-12").message
    down = scene(an_object("shop.example.com/v1", "Order", "one", "shop"), held=BOSS)
    down = replace(down, around=replace(down.around, unanswered=frozenset({"shop.example.com"})))
    assert "does not answer" in one_of(down, "PRE-12").message


def test_the_namespaces_are_asked_for_and_only_with_an_installer() -> None:
    given = scene(SETTINGS)
    shop = [one for one in mentioned(given) if one.kind == "Namespace"]
    assert [one.name for one in shop] == ["shop"]
    assert not [one for one in mentioned(replace(given, installer=None)) if one.kind == "Namespace"]


@pytest.mark.parametrize(
    ("held", "severity"),
    [pytest.param(BOSS, Severity.NOTABLE, id="a great deal"), pytest.param(WRITER, Severity.NOTABLE, id="writing all")],
)
def test_excess_is_one_finding_that_does_not_shout(held: tuple[dict[str, Any], ...], severity: Severity) -> None:
    given = scene(SETTINGS, held=held)
    found = one_of(given, "PRE-10")
    assert found.severity is severity
    assert found.is_new
    assert not one_of(replace(given, previous=given.content), "PRE-10").is_new


def test_a_removal_says_nothing_of_excess() -> None:
    given = scene(SETTINGS, held=BOSS)
    assert ids(replace(given, content=content_with(), plan=Plan((), ""))) == []


def with_yaml() -> Report:
    return report(scene(config_map("</pre><script>"), problem=NO_RIGHT, code=Forbidden.code))


def test_the_record_brings_everything_back() -> None:
    record = json.loads(json.dumps(to_record(with_yaml())))
    assert to_record(from_record(record)) == record


def test_text_shows_the_yaml_so_that_it_can_be_copied() -> None:
    found = with_yaml()
    text = as_text(found)
    shown = text[text.index("apiVersion:") :]
    (remedy,) = [finding for finding in found.findings if finding.rule == "PRE-RULES"]
    assert list(yaml.safe_load_all(shown.split("\n\n")[0])) == list(yaml.safe_load_all(remedy.evidence["yaml"]))


def test_a_page_shows_the_yaml_as_it_is_and_nothing_of_it_is_markup() -> None:
    html = as_html(with_yaml(), title="report")
    assert '<pre tabindex="0">apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n' in html
    assert "<script>" not in html
    assert '"yaml"' not in html
