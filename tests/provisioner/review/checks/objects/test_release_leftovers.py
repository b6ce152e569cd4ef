"""Objects that a Helm release has and the deployment that takes it over has not."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.base.facts import ClusterSurroundings, Listed, Listing
from provisioner.review.checks.objects import release_leftovers
from provisioner.review.checks.objects.objects import OBJECTS_CHECK
from provisioner.values import Action, Finding, HelmRelease, Severity
from tests.support.provisioner.contents import an_object, config_map, facts, judged_by, planned

RECORD = an_object("v1", "Secret", "sh.helm.release.v1.my.shop.v12", "shop")
MAPS = Listing("", "", "ConfigMap", "shop", metadata_only=True)


def marked(name: str, release: str = "my.shop", namespace: str = "shop") -> dict[str, Any]:
    found = an_object("v1", "ConfigMap", name, "shop")
    marks = {"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
    return {**found, "metadata": {**found["metadata"], "annotations": marks}}


def found_of(*live: dict[str, Any], record: dict[str, Any] = RECORD, **more: Any) -> list[Finding]:
    actions = [planned(config_map(), Action.ADOPT), planned(record, Action.DELETE)]
    made = facts(*actions)
    lists = dict.fromkeys(release_leftovers.list_marked_kinds(made), Listed())
    lists |= {MAPS: Listed(live, len(live))} | more.get("lists", {})
    return judged_by(facts(*actions, around=ClusterSurroundings(lists=lists)), [release_leftovers.CHECK])


def test_HELM_01_what_only_the_release_has_stays_behind() -> None:
    others = [marked("of-another", "shop"), marked("of-elsewhere", namespace="home"), config_map("mine")]
    (left,) = found_of(marked("settings"), marked("old"), *others)
    assert (left.rule, left.severity) == ("HELM-01", Severity.NOTABLE)
    words = (
        "1 object of the Helm release my.shop is not in this content, stays as it is and belongs to nobody afterwards"
    )
    assert left.message == f"{words}: ConfigMap shop/old"


def test_HELM_01_a_release_with_nothing_else_is_not_told() -> None:
    assert found_of(marked("settings")) == []


@pytest.mark.parametrize("name", ["sh.helm.release.v1.shop", "sh.helm.release.v2.shop.v1", "shop.v1"])
def test_HELM_01_another_secret_that_goes_is_no_release(name: str) -> None:
    secret = an_object("v1", "Secret", name, "shop")
    assert not [one for one in found_of(marked("old", "shop"), record=secret) if one.rule == "HELM-01"]


@pytest.mark.parametrize("listed", [Listed(problem="forbidden"), Listed(total=1), Listed(total=None)])
def test_HELM_01_what_could_not_be_listed_is_unknown(listed: Listed) -> None:
    (unread,) = found_of(lists={MAPS: listed})
    assert (unread.rule, unread.severity) == ("HELM-01", Severity.UNKNOWN)
    assert unread.message.endswith("could not be found out for ConfigMap")


SECRETS = Listing("", "", "Secret", "shop", metadata_only=True)


@pytest.mark.parametrize(
    ("listed", "severity", "words"),
    [
        (Listed((RECORD,), 1), Severity.DANGEROUS, "the namespace shop does not have; it has my.shop. Nothing is"),
        (Listed((config_map("a"),), 1), Severity.DANGEROUS, "the namespace shop does not have. Nothing is"),
        (Listed(problem="forbidden"), Severity.UNKNOWN, "whether the namespace shop has it could not be found out"),
        (
            Listed((an_object("v1", "Secret", "sh.helm.release.v1.shop.v1", "shop"),), 1),
            Severity.DANGEROUS,
            "which holds no object of this content",
        ),
    ],
    ids=["another", "none", "not listed", "nothing of this content"],
)
def test_HELM_03_a_release_that_is_not_there_is_named_with_those_that_are(
    listed: Listed, severity: Severity, words: str
) -> None:
    made = facts(planned(config_map(), Action.CREATE), helm_release=HelmRelease("shop", "shop"))
    assert [*release_leftovers.list_records(made)] == [SECRETS]
    around = ClusterSurroundings(lists={SECRETS: listed})
    told = facts(*made.plan.actions, helm_release=made.helm_release, around=around)
    (found,) = judged_by(told, [release_leftovers.WANTED_CHECK])
    assert (found.rule, found.severity) == ("HELM-03", severity)
    assert words in found.message


def test_HELM_03_where_something_is_taken_over_nothing_is_told() -> None:
    made = facts(planned(config_map(), Action.ADOPT), helm_release=HelmRelease("shop", "shop"))
    assert judged_by(made, [release_leftovers.WANTED_CHECK]) == []


def test_HELM_02_a_record_that_goes_is_called_what_it_is() -> None:
    (found,) = judged_by(facts(planned(RECORD, Action.DELETE)), [OBJECTS_CHECK])
    assert (found.rule, found.severity) == ("HELM-02", Severity.NOTABLE)
    assert "a record of the Helm release my.shop, which is taken over: Helm forgets the release" in found.message
