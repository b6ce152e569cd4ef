"""What live objects decide of a report is told apart from what the bundle says, and nothing of somebody else's (S09)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import AlreadyExists
from provisioner.review.base.facts import Check, ClusterSurroundings, Facts, Listed, Listing, ReviewRule
from provisioner.review.checks.objects import objects
from provisioner.review.frame import report
from provisioner.review.visibility.fact_views import hide_foreign_object, is_private
from provisioner.review.visibility.finding_views import mark_findings
from provisioner.values import Action, Finding, ObjectRef, Plan, PlannedAction, Section, Severity
from tests.support.provisioner.contents import config_map, content_with, facts, planned

PROBE = ReviewRule("TST-01", Section.OBJECTS, Severity.DANGEROUS)
LIVE = {**config_map(sidecar="hunter2"), "metadata": {"name": "settings", "namespace": "shop", "uid": "u-1"}}
BUNDLE = config_map(wished="a")
MERGED = config_map(wished="a", sidecar="hunter2")


def look(facts: Facts) -> list[Finding]:
    """One finding for each value of each object as it will be: what a check of the merged result is like."""
    return list(_values(facts.state().objects))


def _values(objects: tuple[Any, ...]) -> Iterator[Finding]:
    for obj in objects:
        for key, value in obj["data"].items():
            yield PROBE.at(ObjectRef.of(obj), f"{key} is {value}", path=("data", key), key=value)


def seen(*actions: PlannedAction, bundle: tuple[PlannedAction, ...], **rest: Any) -> Facts:
    wished = content_with(*(one.after for one in bundle if one.after is not None))
    return facts(*actions, content=wished, bundle=Plan(bundle, "sha256:bundle"), **rest)


def updated(uid: str = "u-1", merged: dict[str, Any] = MERGED) -> Facts:
    return seen(
        planned(merged, Action.UPDATE, before=LIVE, uid=uid, resource_version="7"),
        bundle=(planned(BUNDLE, Action.UPDATE, before=config_map()),),
    )


def adopted(value: str = "hunter2", **rest: Any) -> Facts:
    theirs = planned(config_map(wished="a", sidecar=value), Action.ADOPT, before=config_map(sidecar=value), uid="u-1")
    return seen(replace(theirs, **rest), bundle=(planned(BUNDLE, Action.CREATE),))


def by_privacy(found: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    return [one for one in found if not one.is_private], [one for one in found if one.is_private]


def test_S09_a_finding_that_differs_without_live_values_keeps_rule_and_severity_and_loses_its_words() -> None:
    of_bundle, of_live = sorted(mark_findings(updated(), look), key=lambda it: it.server_words)
    assert (of_bundle.message, of_bundle.server_words) == ("wished is a", "")
    assert (of_live.rule, of_live.severity, of_live.is_private) == ("TST-01", Severity.DANGEROUS, False)
    assert "hunter2" not in of_live.message
    assert "sidecar" not in of_live.message
    assert of_live.server_words == "sidecar is hunter2"
    assert "ConfigMap shop/settings as it is in the cluster" in of_live.message


def test_what_a_check_kept_apart_itself_stays_behind_the_words_that_are_withheld() -> None:
    def quoting(facts: Facts) -> list[Finding]:
        return [replace(one, server_words="the server's") for one in look(facts)]

    words = [finding.server_words for finding in mark_findings(updated(), quoting)]
    assert words == ["the server's", "sidecar is hunter2; the server's"]


def test_S09_a_severity_that_live_values_decide_is_no_finding_of_the_bundle() -> None:
    def judging(facts: Facts) -> list[Finding]:
        size = max(len(obj["data"]) for obj in facts.state().objects)
        severity = Severity.CRITICAL if size > 1 else Severity.SAFE
        return [replace(PROBE.at(ObjectRef.of(BUNDLE), "it is judged"), severity=severity)]

    (one,) = mark_findings(updated(), judging)
    assert (one.severity, one.server_words) == (Severity.CRITICAL, "it is judged")


def test_nothing_is_withheld_where_no_live_object_is_known() -> None:
    created = seen(planned(BUNDLE, Action.CREATE), bundle=(planned(BUNDLE, Action.CREATE),))
    offline = replace(updated(), bundle=None)
    for each in (created, offline):
        assert mark_findings(each, look) == look(each)


def drifted(*names: str, near: str = "") -> Facts:
    """Objects of ours of which each holds what the bundle does not; `near` one more that holds nothing else."""
    merged = {name: config_map(name, wished="a", sidecar=f"of {name}") for name in names}
    plain = [planned(config_map(near, wished="a"), Action.CREATE)] if near else []
    actions = [
        planned(obj, Action.UPDATE, before=config_map(name, sidecar=f"of {name}"), uid=name)
        for name, obj in merged.items()
    ]
    wished = [planned(config_map(name, wished="a"), Action.UPDATE, before=config_map(name)) for name in names]
    return seen(*actions, *plain, bundle=(*wished, *plain))


def beside_each_other(facts: Facts) -> list[Finding]:
    """What a check is like that tells of each object what others hold as well."""
    held = [obj["data"]["sidecar"] for obj in facts.state().objects if "sidecar" in obj["data"]]
    return [PROBE.at(ObjectRef.of(obj), f"beside {sorted(held)}", key=held) for obj in facts.state().objects]


@pytest.mark.parametrize(
    "names", [("one", "two"), tuple(f"m{at}" for at in range(40))], ids=["two", "more than are tried"]
)
def test_S09_what_several_objects_of_ours_decide_is_for_who_may_get_them_all(names: tuple[str, ...]) -> None:
    for finding in mark_findings(drifted(*names, near="near"), beside_each_other):
        assert {ref.name for ref in (*finding.sources, *([finding.ref] if finding.ref else []))} >= {*names}


def test_S09_what_one_object_of_ours_decides_is_for_who_may_get_that_one() -> None:
    for finding in mark_findings(drifted("one", "two", "three"), look):
        assert finding.sources == ()
    told = [
        finding for finding in mark_findings(drifted("one", near="near"), beside_each_other) if finding.server_words
    ]
    assert {(one.ref and one.ref.name, *(ref.name for ref in one.sources)) for one in told} == {
        ("one",),
        ("near", "one"),
    }


@pytest.mark.parametrize("action", [Action.REPLACE, Action.NONE])
def test_every_action_on_a_live_object_of_ours_is_looked_at_twice(action: Action) -> None:
    facts = updated()
    facts = replace(facts, plan=Plan((replace(facts.plan.actions[0], action=action),), "sha256:plan"))
    assert [bool(finding.server_words) for finding in mark_findings(facts, look)] == [False, True]


def test_S09_a_fingerprint_made_of_a_live_value_cannot_be_guessed() -> None:
    """Who guesses the value computes the fingerprint of the finding; the uid of an object that they may not get they do not know."""
    guessed = PROBE.at(ObjectRef.of(LIVE), "", path=("data", "sidecar"), key="hunter2").fingerprint
    names = {uid: mark_findings(updated(uid), look)[1].fingerprint for uid in ("u-1", "u-2")}
    assert guessed not in names.values()
    assert names["u-1"] != names["u-2"]
    assert names["u-1"] == mark_findings(updated("u-1"), look)[1].fingerprint


def test_S09_a_finding_about_no_single_object_is_salted_as_well() -> None:
    def about_all(facts: Facts) -> list[Finding]:
        return [replace(one, ref=None) for one in look(facts)]

    plain = about_all(updated())[1].fingerprint
    names = {plain, *(mark_findings(updated(uid), about_all)[1].fingerprint for uid in ("u-1", "u-2"))}
    assert len(names) == 3


def test_S09_equal_words_are_named_by_what_the_bundle_alone_gives() -> None:
    """A check may say the same of both and mean a live value: only the bundle's name of it is told."""

    def mute(facts: Facts) -> list[Finding]:
        return [replace(one, message="it has values", path=()) for one in look(facts)]

    changed = config_map(wished="hunter2")
    (one,) = mark_findings(updated(merged=changed), mute)
    (of_bundle,) = mute(updated(merged=BUNDLE))
    assert one == of_bundle


def test_what_is_found_twice_and_once_in_the_bundle_is_withheld_once() -> None:
    def mute(facts: Facts) -> list[Finding]:
        return [replace(one, message="it has values", path=()) for one in look(facts)]

    found = mark_findings(updated(), mute)
    assert sorted(bool(one.server_words) for one in found) == [False, True]
    assert len({one.fingerprint for one in found}) == 2


def test_S09_what_only_somebody_elses_object_has_is_private() -> None:
    public, private = by_privacy(mark_findings(adopted(), look))
    assert [one.message for one in public] == ["wished is a"]
    assert [(one.rule, one.severity, one.ref) for one in private] == [
        ("TST-01", Severity.DANGEROUS, ObjectRef.of(BUNDLE))
    ]
    assert private[0].server_words == "sidecar is hunter2"
    assert "hunter2" not in private[0].message


def test_S09_the_public_findings_are_the_same_whatever_somebody_elses_object_holds() -> None:
    nothing = mark_findings(seen(planned(BUNDLE, Action.CREATE), bundle=(planned(BUNDLE, Action.CREATE),)), look)
    for value in ("hunter2", "a", ""):
        assert by_privacy(mark_findings(adopted(value), look))[0] == nothing


def test_S09_a_finding_about_another_object_that_somebody_elses_decides_is_private_under_that_one() -> None:
    """Its own reference would show it to people who may get the wrong object."""
    other = config_map("other", kept="b")
    both = (planned(BUNDLE, Action.CREATE), planned(other, Action.CREATE))

    def counting(facts: Facts) -> list[Finding]:
        size = sum(len(obj["data"]) for obj in facts.state().objects)
        return [PROBE.at(ObjectRef.of(other), f"{size} values", key=size)]

    theirs = adopted().plan.actions[0]
    public, private = by_privacy(mark_findings(seen(theirs, both[1], bundle=both), counting))
    assert [one.message for one in public] == ["2 values"]
    assert [(one.ref, one.server_words) for one in private] == [(theirs.ref, "3 values")]


def test_S09_their_live_object_and_role_are_out_of_sight_of_what_is_public() -> None:
    def counting(facts: Facts) -> list[Finding]:
        live = sum(obj is not None for obj in facts.live.values())
        return [PROBE.at(None, f"{live} live, {len(facts.live_rbac or ())} with rights")]

    facts = replace(adopted(), live={ObjectRef.of(LIVE).identity: LIVE}, live_rbac=(LIVE,))
    public, private = by_privacy(mark_findings(facts, counting))
    assert [one.message for one in public] == ["0 live, 0 with rights"]
    assert [one.server_words for one in private] == ["1 live, 1 with rights"]


def test_an_object_that_may_not_be_adopted_was_not_read_and_is_nothing_private() -> None:
    refused = adopted(problem="it exists", problem_code=AlreadyExists.code).plan.actions[0]
    assert not is_private(refused)
    assert hide_foreign_object(refused) == refused
    assert is_private(adopted().plan.actions[0])


def test_S09_a_planned_action_on_somebody_elses_object_is_told_without_anything_of_it() -> None:
    theirs = adopted(
        resource_version="7", warnings=("old",), problem="refused", problem_code="x", notes=("n",), server_words="w"
    ).plan.actions[0]
    told = hide_foreign_object(theirs)
    assert (told.action, told.uid, told.is_proved) == (Action.ADOPT, "u-1", False)
    assert (told.before, told.resource_version, told.warnings, told.notes) == (None, "", (), ())
    assert (told.problem, told.problem_code, told.server_words) == ("", "", "")


ROLE = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "cluster-admin", "uid": "role-uid"},
    "rules": [{"verbs": ["hunter2"], "apiGroups": [""], "resources": ["pods"]}],
}


def with_role(role: dict[str, Any] | None = ROLE, **rest: Any) -> Facts:
    return seen(
        planned(BUNDLE, Action.CREATE),
        bundle=(planned(BUNDLE, Action.CREATE),),
        live_rbac=(role,) if role else None,
        **rest,
    )


def by_roles(facts: Facts) -> list[Finding]:
    """What a check of rights is like: one finding of the bundle, and one of each role of the cluster."""
    about, roles = ObjectRef.of(BUNDLE), facts.live_rbac or ()
    held = [PROBE.at(about, f"it may {it['rules'][0]['verbs']}", path=("x",), key=it["rules"]) for it in roles]
    return [PROBE.at(about, "it is a ConfigMap"), *held]


def test_S09_what_roles_beside_the_plan_decide_is_shown_to_who_may_get_roles() -> None:
    of_bundle, of_roles = mark_findings(with_role(), by_roles)
    assert (of_bundle.message, of_bundle.sources) == ("it is a ConfigMap", ())
    assert "hunter2" not in of_roles.message
    assert "hunter2" in of_roles.server_words
    assert {source.kind for source in of_roles.sources} == {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}


def test_S09_a_fingerprint_made_of_roles_cannot_be_guessed() -> None:
    plain = by_roles(with_role())[1].fingerprint
    other = {**ROLE, "metadata": {"name": "cluster-admin", "uid": "another"}}
    names = {plain, *(mark_findings(with_role(role), by_roles)[1].fingerprint for role in (ROLE, ROLE, other))}
    assert len(names) == 3


def test_S09_what_can_be_said_without_roles_is_said_to_everybody() -> None:
    def severe(facts: Facts) -> list[Finding]:
        words = "it may do hunter2" if facts.live_rbac else "it may do what the bundle says"
        return [PROBE.at(ObjectRef.of(BUNDLE), words)]

    (one,) = mark_findings(with_role(), severe)
    assert (one.message, one.server_words) == ("it may do what the bundle says", "it may do hunter2")


def test_S09_what_is_unknown_without_roles_says_nothing_of_them() -> None:
    def unknown(facts: Facts) -> list[Finding]:
        known = PROBE.at(ObjectRef.of(BUNDLE), "it may do hunter2")
        return [known if facts.live_rbac else replace(known, severity=Severity.UNKNOWN, message="nobody could read it")]

    (one,) = mark_findings(with_role(), unknown)
    assert "nobody could read" not in one.message
    assert "hunter2" not in one.message


def test_S09_evidence_that_roles_decide_is_shown_to_who_may_get_them() -> None:
    def evident(facts: Facts) -> list[Finding]:
        return [PROBE.at(ObjectRef.of(BUNDLE), "it may", evidence={"by": [str(one) for one in facts.live_rbac or ()]})]

    (one,) = mark_findings(with_role(), evident)
    assert (one.message, one.server_words, len(one.sources)) == ("it may", "", 4)


LISTING = Listing("example.com", "v1", "Boat", "harbour")


def test_S09_what_lists_and_other_objects_decide_is_shown_to_who_may_get_them() -> None:
    other = config_map("other", value="hunter2")
    around = ClusterSurroundings(lists={LISTING: Listed(({"keel": "hunter2"},), 1)})

    def look_around(facts: Facts) -> list[Finding]:
        live = [obj.get("data") for obj in facts.live.values() if obj]
        lists = [one.objects for one in facts.around.lists.values()]
        names = [str(ObjectRef.of(obj)) for obj in facts.live.values() if obj]
        values = [PROBE.at(None, f"{found}", path=(place,)) for place, found in enumerate((live, lists))]
        return [*values, PROBE.at(None, f"{names} exists")]

    facts = with_role(None, live={ObjectRef.of(other).identity: other}, around=around)
    *values, existence = mark_findings(facts, look_around)
    assert (existence.message, existence.sources) == ("['ConfigMap shop/other'] exists", ())
    for value in values:
        assert "hunter2" not in value.message
        assert [str(source) for source in value.sources] == ["ConfigMap shop/other", "Boat.example.com harbour/"]


def test_S27_a_fingerprint_of_a_warning_cannot_be_guessed() -> None:
    """The server's words may quote a value of the object: who guesses it computes a fingerprint that is not there."""

    def names(**rest: Any) -> list[str]:
        action = planned(BUNDLE, Action.CREATE, warnings=("hunter2", "second"), **rest)
        found = objects.OBJECTS_CHECK.changes(seen(action, bundle=(), live_rbac=roles))
        return [one.fingerprint for one in found if one.rule == "OBJ-05"]

    roles: tuple[dict[str, Any], ...] = (ROLE,)
    guessed = (
        ReviewRule("OBJ-05", Section.OBJECTS, Severity.NOTABLE).at(ObjectRef.of(BUNDLE), "", key="hunter2").fingerprint
    )
    of_role, of_uid = names(), names(uid="u-1")
    roles = ()
    unsalted = names()
    everything = [guessed, *of_role, *of_uid, *unsalted]
    assert len(set(everything)) == len(everything) == 7
    roles = (ROLE,)
    assert names() == of_role


def test_S38_a_private_finding_takes_the_place_of_none_that_everybody_may_see() -> None:
    """Where only its severity depends on whether a Secret changes, both have one fingerprint."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", "namespace": "shop"}}
    changes = planned({**secret, "data": {"k": "after"}}, Action.UPDATE, before={**secret, "data": {"k": "before"}})

    def judge(facts: Facts) -> Iterator[Finding]:
        (settings, key) = facts.plan.actions
        rule = PROBE if key.before == key.after else replace(PROBE, severity=Severity.SAFE)
        sidecar = (settings.after or {})["data"].get("sidecar")
        yield rule.at(ObjectRef.of(BUNDLE), f"sidecar is {sidecar}", key="one")

    given = updated()
    both = Plan((*given.plan.actions, changes), ""), Plan((*(given.bundle or given.plan).actions, changes), "")
    found = report(replace(given, plan=both[0], bundle=both[1]), [Check("probe", changes=judge)]).findings
    told = {(one.severity, one.is_private): one.fingerprint for one in found if one.rule == "TST-01"}
    assert told.keys() == {(Severity.DANGEROUS, False), (Severity.SAFE, True)}
    assert len({*told.values()}) == 2  # who accepts the one has not accepted the other
