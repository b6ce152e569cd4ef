"""What a report says of the objects that a chart was told of."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.checks.bundle import content
from provisioner.values import Action, Finding, Lookup, ObjectRef, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned

SECRET = ObjectRef("", "v1", "Secret", "apps", "db")
DIGEST = "sha256:1"


def found(*now: Lookup, before: tuple[Lookup, ...] = ()) -> list[Finding]:
    made = facts(planned(config_map(), Action.CREATE))
    previous = replace(content_with(config_map()), lookups=before)
    told = replace(made.content, lookups=now, install_namespace="apps")
    return list(judged_by(replace(made, content=told, previous=previous), [content.LOOKUPS_CHECK]))


@pytest.mark.parametrize(
    ("lookup", "severity", "words"),
    [
        (Lookup(SECRET, ""), Severity.NOTABLE, "does not exist in the cluster"),
        (Lookup(replace(SECRET, kind="ConfigMap"), DIGEST), Severity.NOTABLE, "told what ConfigMap apps/db is in the"),
        (Lookup(SECRET, DIGEST), Severity.NOTABLE, "none of its values is in the content"),
        (Lookup(SECRET, DIGEST, ("copy",)), Severity.NOTABLE, "values of it go into Secret copy of the content"),
        (Lookup(SECRET, DIGEST, ("apps/a", "b")), Severity.NOTABLE, "go into Secrets apps/a, b of the content"),
        (Lookup(SECRET, DIGEST, ("b", "web/a")), Severity.DANGEROUS, "web/a of the content, in another namespace"),
        (Lookup(replace(SECRET, namespace="web"), DIGEST, ("a",)), Severity.DANGEROUS, "in another namespace"),
    ],
)
def test_each_object_is_told_and_where_values_of_a_secret_go(lookup: Lookup, severity: Severity, words: str) -> None:
    (told,) = found(lookup)
    assert (told.rule, told.severity, told.is_new) == ("LKP-01", severity, True)
    assert words in told.message


def test_a_value_that_was_looked_up_is_not_called_one_of_the_bundle() -> None:
    secret = an_object("v1", "Secret", "copy", "shop", data={"url": "eA==", "own": "eQ=="})
    made = facts(planned(secret, Action.CREATE))
    looked_up = Lookup(SECRET, DIGEST, ("copy",), ("copy/url",))
    told = replace(made, content=replace(made.content, lookups=(looked_up,)))
    for given, keys in ((made, ["own", "url"]), (told, ["own"])):
        (found,) = [one for one in judged_by(given, [content.CONTENT_CHECK]) if one.rule == "SEC-01"]
        assert found.evidence["keys"] == keys


def test_what_was_told_before_is_not_new_and_another_answer_is() -> None:
    one = Lookup(SECRET, DIGEST, ("copy",))
    assert [told.is_new for told in found(one, before=(one,))] == [False]
    assert [told.is_new for told in found(one, before=(replace(one, digest="sha256:2"),))] == [True]
