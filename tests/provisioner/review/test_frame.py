from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest

from provisioner.review import checks, frame
from provisioner.review.base.claims import EVERY_KIND, Claim
from provisioner.review.base.facts import Check, Facts, Gap, ReviewRule, StateFacts
from provisioner.review.frame import CHECKS, report, wanted
from provisioner.values import Action, Content, Finding, ObjectRef, Plan, Section, Severity
from tests.support.provisioner.contents import config_map, content_with, facts, planned

NOTED = ReviewRule("NOTED-01", Section.OBJECTS, Severity.NOTABLE)
BAD = ReviewRule("BAD-01", Section.PODS, Severity.CRITICAL)
MAP = ObjectRef.of(config_map())
EVERYTHING = (Claim("NOTED-01", EVERY_KIND, ("*",)),)


def rules(*findings: Finding) -> list[str]:
    return [finding.rule for finding in findings]


def crash_after_one(_: Facts) -> Iterator[Finding]:
    yield NOTED.at(MAP, "found before the crash")
    raise ValueError("the password is Pl4nted")


def test_a_check_that_crashes_is_an_unknown_finding_that_names_it() -> None:
    found = report(facts(), [Check("fragile", changes=crash_after_one)])
    crash = next(finding for finding in found.findings if finding.rule == "CRASHED")
    assert crash.severity is Severity.UNKNOWN
    assert "fragile" in crash.message
    assert "ValueError" in crash.message


def test_a_crash_keeps_what_was_found_before_and_its_own_words_out() -> None:
    found = report(facts(), [Check("fragile", changes=crash_after_one)])
    assert "NOTED-01" in rules(*found.findings)
    assert "Pl4nted" not in str(found)


def test_a_crash_of_one_check_leaves_the_others_alone() -> None:
    other = Check("other", changes=lambda _: [BAD.at(MAP, "bad")])
    found = report(facts(), [Check("fragile", changes=crash_after_one), other])
    assert rules(*found.findings) == ["BAD-01", "CRASHED", "NOTED-01"]


def test_a_check_that_crashed_claims_nothing() -> None:
    given = facts(planned(config_map(a="1"), Action.UPDATE, before={}))
    found = report(given, [Check("fragile", changes=crash_after_one, claims=EVERYTHING)])
    assert "UNJUDGED" in rules(*found.findings)


def test_what_nobody_judges_is_unknown_where_it_could_not_be_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "unjudged", lambda *_: list(crash_after_one(facts())))
    found = report(
        facts(planned(config_map(), Action.CREATE)), [Check("other", changes=lambda _: [BAD.at(MAP, "bad")])]
    )
    assert [(finding.rule, finding.severity) for finding in found.findings] == [
        ("BAD-01", Severity.CRITICAL),
        ("CRASHED", Severity.UNKNOWN),
    ]
    assert "Pl4nted" not in str(found)


def test_what_could_not_be_read_is_an_unknown_finding() -> None:
    found = report(facts(gaps=(Gap("who may do what", "forbidden", Section.PERMISSIONS),)), [])
    assert [(finding.rule, finding.severity, finding.section) for finding in found.findings] == [
        ("GAP", Severity.UNKNOWN, Section.PERMISSIONS)
    ]


@pytest.mark.parametrize(
    ("action", "claims", "expected"),
    [
        pytest.param(Action.CREATE, (), ["UNJUDGED"], id="a create that nobody looks at"),
        pytest.param(Action.UPDATE, (), ["UNJUDGED"], id="an update that nobody looks at"),
        pytest.param(Action.REPLACE, (), ["UNJUDGED"], id="a replacement that nobody looks at"),
        pytest.param(Action.ADOPT, (), ["UNJUDGED"], id="an adoption that nobody looks at"),
        pytest.param(Action.NONE, (), [], id="nothing happens"),
        pytest.param(Action.UPDATE, EVERYTHING, [], id="one check looks"),
    ],
)
def test_a_change_that_no_check_looks_at_is_a_finding(
    action: Action, claims: tuple[Claim, ...], expected: list[str]
) -> None:
    checks = [Check("some"), Check("other", claims=claims)]
    found = report(facts(planned(config_map(a="1"), action, before={})), checks)
    assert rules(*found.findings) == expected


def named(state: StateFacts) -> list[Finding]:
    return [NOTED.at(ObjectRef.of(obj), "noted", key=str(obj["data"])) for obj in state.objects]


def test_what_the_previous_content_has_as_well_is_known() -> None:
    both, changed = config_map("both", a="1"), config_map("changed", a="2")
    given = facts(
        planned(both, Action.NONE),
        planned(changed, Action.UPDATE, before={}),
        previous=content_with(both, config_map("changed", a="1")),
    )
    found = report(given, [Check("named", standing=named, claims=EVERYTHING)])
    assert [(finding.ref.name, finding.is_new) for finding in found.findings if finding.ref] == [
        ("changed", True),
        ("both", False),
    ]


@pytest.mark.parametrize(("before", "now"), [("notable", "critical"), ("critical", "notable"), ("safe", "safe")])
def test_what_became_worse_is_new_though_its_name_is_the_same(before: str, now: str) -> None:
    def graded(state: StateFacts) -> list[Finding]:
        rules = (ReviewRule("GRADED-01", Section.OBJECTS, Severity(obj["data"]["is"])) for obj in state.objects)
        return [rule.at(MAP, "graded", key="same") for rule in rules]

    given = facts(planned(config_map(**{"is": now}), Action.NONE), previous=content_with(config_map(**{"is": before})))
    (found,) = report(given, [Check("graded", standing=graded, claims=EVERYTHING)]).findings
    assert found.is_new == (now == "critical")


def test_a_fingerprint_is_the_same_for_another_version_of_the_object_and_other_words() -> None:
    one = NOTED.at(ObjectRef("apps", "v1", "Deployment", "a", "b"), "one thing", path=("spec", 0), key="x")
    other = NOTED.at(ObjectRef("apps", "v1beta1", "Deployment", "a", "b"), "same", path=("spec", 0), key="x")
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(NOTED.at(MAP, "a", path=("data", "b"), key="x"), id="path"),
        pytest.param(NOTED.at(MAP, "a", path=("data", "a"), key="y"), id="evidence"),
        pytest.param(BAD.at(MAP, "a", path=("data", "a"), key="x"), id="rule"),
        pytest.param(NOTED.at(None, "a", path=("data", "a"), key="x"), id="object"),
    ],
)
def test_a_fingerprint_differs_where_the_finding_does(other: Finding) -> None:
    assert NOTED.at(MAP, "a", path=("data", "a"), key="x").fingerprint != other.fingerprint


def test_the_headline_says_the_worst_new_thing_first_and_totals_last() -> None:
    known = Check("known", standing=lambda _: [BAD.at(MAP, "Known and critical", key="k")])
    new = Check("new", changes=lambda _: [ReviewRule("B", Section.CRDS, Severity.BREAKING).at(MAP, "Breaks things")])
    given = facts(planned(config_map(), Action.CREATE), previous=content_with(config_map()))
    found = report(given, [known, new, Check("all", claims=EVERYTHING)])
    assert found.headline == ("Breaks things.", "1 object to create.", "Findings: 1 critical (0 new), 1 breaking.")


def test_the_headline_has_at_most_five_sentences_and_never_hides_a_total() -> None:
    many = [BAD.at(ObjectRef("", "v1", "Pod", "a", f"p{number}"), f"Bad {number}") for number in range(50)]
    found = report(facts(), [Check("many", changes=lambda _: many)])
    assert len(found.headline) == 5
    assert found.headline[-1] == "Findings: 50 critical."


def test_one_account_has_one_sentence_however_much_it_gains() -> None:
    powers = ["read every Secret in the cluster", "delete Nodes", "delete Deployments"]
    gained = [
        BAD.at(MAP, f"`a/b` can now {power}", evidence={"subject": "a/b", "power": power}, key=power)
        for power in powers
    ]
    found = report(facts(), [Check("permissions", changes=lambda _: gained)])
    assert sum("`a/b`" in sentence for sentence in found.headline) == 1
    assert all(power in " ".join(found.headline) for power in powers)


def test_checks_are_never_given_secrets_to_read() -> None:
    secret, other = ObjectRef("", "v1", "Secret", "a", "b"), ObjectRef("", "v1", "Service", "a", "b")

    def wants(_: Content, __: Plan) -> list[ObjectRef]:
        return [secret, other, other]

    assert wanted(content_with(), Plan((), ""), [Check("curious", wants=wants)]) == [other]


def test_every_check_of_ours_has_a_name_of_its_own() -> None:
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)


def test_every_module_below_checks_brings_a_check_and_all_are_found() -> None:
    """Nothing lists them. A module without one belongs in another room, or into the file of its check."""
    paths = [found.name for found in pkgutil.walk_packages(checks.__path__, f"{checks.__name__}.") if not found.ispkg]
    brought = {
        path: [value for value in vars(importlib.import_module(path)).values() if isinstance(value, Check)]
        for path in paths
    }
    assert [path for path, found in brought.items() if not found] == []
    assert sorted(check.name for found in brought.values() for check in found) == sorted(check.name for check in CHECKS)
