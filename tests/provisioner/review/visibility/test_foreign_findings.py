"""What stands in the way is told to everybody; what it holds and who holds it, to people who may get it (S09)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import AlreadyExists
from provisioner.review.base.facts import Facts, ReviewRule
from provisioner.review.checks.objects import objects
from provisioner.review.frame import report
from provisioner.review.visibility.fact_views import hide_foreign_object, is_foreign
from provisioner.review.visibility.finding_views import OWNERS, mark_findings
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Section, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, planned

PROBE = ReviewRule("TST-01", Section.OBJECTS, Severity.DANGEROUS)
WORDS = "exists already and does not belong to this deployment"
HELM = "the Helm release shop in prod"


def wished(name: str, namespace: str = "shop") -> dict[str, Any]:
    return an_object("v1", "ConfigMap", name, namespace, data={"wished": "a"})


def in_the_way(name: str, value: str, owner: str = HELM, namespace: str = "shop") -> PlannedAction:
    obj = wished(name, namespace)
    theirs = {**obj, "data": {"theirs": value}}
    met = planned({**obj, "data": {"wished": "a", "theirs": value}}, Action.ADOPT, before=theirs, uid=f"uid-{name}")
    words = {"problem": f"{met.ref} {WORDS}", "problem_code": AlreadyExists.code}
    return replace(met, **words, owner=owner, warnings=("old",), notes=(f"note {value}",), server_words=f"of {owner}")


def seen(*actions: PlannedAction) -> Facts:
    bundle = [planned(wished(one.ref.name, one.ref.namespace), Action.CREATE) for one in actions]
    content = content_with(*(one.after for one in bundle if one.after))
    return facts(*actions, content=content, bundle=Plan(tuple(bundle), "sha256:bundle"))


def look(facts: Facts) -> list[Finding]:
    """What a check of the result, one of several objects, and those of this room find."""
    found = [
        PROBE.at(ObjectRef.of(obj), f"{key} is {value}", path=("data", key), key=value)
        for obj in facts.state().objects
        for key, value in obj["data"].items()
    ]
    every = sorted(str(obj["data"].get("theirs", "")) for obj in facts.state().objects)
    together = PROBE.at(None, f"together {every}", key=every)
    return [*found, together, *objects.OBJECTS_CHECK.changes(facts), *objects.OWNERS_CHECK.changes(facts)]


def by_privacy(found: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    return [one for one in found if not one.is_private], [one for one in found if one.is_private]


def test_S09_the_public_findings_are_the_same_whatever_stands_in_the_way_and_whoever_holds_it() -> None:
    told = [
        by_privacy(mark_findings(seen(in_the_way("one", value, owner)), look))[0]
        for value, owner in (("hunter2", HELM), ("a", "the Argo CD application web"), ("", "nobody by their marks"))
    ]
    assert told[0] == told[1] == told[2]
    assert {one.rule for one in told[0]} == {"TST-01", "OWN-02"}
    assert not any("hunter2" in str(one) or "Helm" in str(one) for one in told[0])


def test_S09_who_holds_it_is_a_private_finding_of_each_of_the_objects() -> None:
    met = [in_the_way("one", "x"), in_the_way("two", "y")]
    _, private = by_privacy(mark_findings(seen(*met), look))
    (owned,) = [one for one in private if one.rule == OWNERS]
    assert (owned.ref, owned.sources) == (None, tuple(one.ref for one in met))
    assert owned.server_words.startswith(f"2 objects belong to {HELM}")
    assert HELM not in owned.message


def test_S09_what_is_made_of_several_is_for_who_may_get_them_all() -> None:
    near, far = in_the_way("one", "x"), in_the_way("two", "y", namespace="prod")
    _, private = by_privacy(mark_findings(seen(near, far), look))
    sources = {one.server_words: {*one.sources, *([one.ref] if one.ref else [])} for one in private}
    assert sources["theirs is x"] == {near.ref}
    assert sources["theirs is y"] == {far.ref}
    assert sources["together ['x', 'y']"] == {near.ref, far.ref}


def test_S09_what_is_made_of_several_says_so_in_its_evidence_too() -> None:
    def evident(facts: Facts) -> list[Finding]:
        values = [str(obj["data"].get("theirs", "")) for obj in facts.state().objects]
        at = ObjectRef.of(facts.state().objects[0])
        return [PROBE.at(at, "x is among them", evidence={"values": values}, key="one")] if "x" in values else []

    near, far = in_the_way("one", "x"), in_the_way("two", "y", namespace="prod")
    _, (told,) = by_privacy(mark_findings(seen(near, far), evident))
    assert {*told.sources} == {near.ref, far.ref}


def test_S09_what_is_said_of_a_secret_is_for_who_may_get_that_secret() -> None:
    secret = an_object("v1", "Secret", "token", "shop")
    near = in_the_way("one", "x")
    met = replace(planned(secret, Action.ADOPT, uid="u-2"), owner=HELM, notes=("it is taken over",))
    bundle = (planned(wished("one"), Action.CREATE), planned(secret, Action.CREATE))
    given = facts(near, met, content=content_with(wished("one"), secret), bundle=Plan(bundle, "sha256:bundle"))
    _, private = by_privacy(mark_findings(given, lambda it: list(objects.OBJECTS_CHECK.changes(it))))
    told = [one for one in private if "taken over" in one.server_words]
    assert [(one.ref, one.sources) for one in told] == [(met.ref, ())]


def test_S09_in_one_namespace_all_of_a_kind_have_to_be_readable() -> None:
    both = [in_the_way("one", "x"), in_the_way("two", "y")]
    _, private = by_privacy(mark_findings(seen(*both), look))
    assert {one.sources for one in private if one.rule == "TST-01"} == {tuple(one.ref for one in both)}


def test_S09_what_everybody_may_know_of_it_is_that_it_is_in_the_way() -> None:
    met = in_the_way("one", "hunter2")
    told = hide_foreign_object(met)
    assert (told.problem, told.problem_code, told.uid) == (f"{met.ref} {WORDS}", AlreadyExists.code, "uid-one")
    assert (told.owner, told.before, told.warnings, told.notes, told.server_words) == ("", None, (), (), "")
    assert is_foreign(met)
    assert not is_foreign(told)


@pytest.mark.parametrize("count", [1, 12])
def test_in_a_whole_report_each_owner_has_one_line_and_what_is_in_the_way_is_counted(count: int) -> None:
    made = report(seen(*(in_the_way(f"m{at:02}", "x") for at in range(count))))
    assert [finding.rule for finding in made.findings if finding.rule == OWNERS] == [OWNERS]
    foreign = [one for one in made.public if one.rule == "OWN-02"]
    assert len(foreign) == 1
    assert foreign[0].evidence.get("count", 1) == count


def test_an_object_of_ours_beside_them_is_as_it_would_be_alone() -> None:
    mine = planned(config_map(wished="a"), Action.UPDATE, before=config_map(wished="b"), uid="u")
    given = seen(mine, in_the_way("one", "x"))
    public, _ = by_privacy(mark_findings(given, look))
    assert [one.ref for one in public if one.rule == "OBJ-02"] == [mine.ref]
