"""What a chart made up, and where it went; the values are never told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from provisioner.review.base.facts import Facts
from provisioner.review.checks.bundle import content, made_up
from provisioner.values import Action, Checksum, Finding, MadePlace, MadeSort, MadeUp, MadeValue, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, facts, judged_by, planned

PASSWORD = MadePlace("Secret", "shop", "db", "/data/password")
COPY = MadePlace("ConfigMap", "shop", "settings", "/data/url")
WEBHOOK = MadePlace("ValidatingWebhookConfiguration", "", "db", "/webhooks/0/clientConfig/caBundle")
STAMP = MadePlace("Deployment", "shop", "db", "/metadata/annotations/at")
NAMED = MadePlace("Job", "shop", "", "templates/job.yaml#0/metadata/name")


def given(made: MadeUp, before: MadeUp | None = None) -> Facts:
    secret = an_object("v1", "Secret", "db", "shop", data={"password": "eA==", "own": "eQ=="})
    base = facts(planned(secret, Action.CREATE))
    manifests = tuple(replace(manifest, file="templates/db.yaml") for manifest in base.content.manifests)
    previous = None if before is None else replace(content_with(config_map()), made_up=before)
    return replace(base, content=replace(base.content, manifests=manifests, made_up=made), previous=previous)


def found(made: MadeUp, before: MadeUp | None = None) -> list[Finding]:
    return list(judged_by(given(made, before), [made_up.MADE_UP_CHECK]))


def value(
    place: MadePlace = PASSWORD, *copies: MadePlace, sort: MadeSort = MadeSort.PASSWORD, is_new: bool = True
) -> MadeValue:
    return MadeValue(place, "Xk2abcdef", sort, copies, is_new)


def test_it_is_told_how_many_there_are_and_where_they_went() -> None:
    (told,) = found(MadeUp((value(), value(NAMED, sort=MadeSort.NAME, is_new=False))), MadeUp())
    assert (told.rule, told.severity, told.is_new) == ("MADE-01", Severity.SAFE, True)
    assert told.message == (
        "The chart makes up 2 values (1 new). They go into Secret shop/db, Job of templates/job.yaml. Pratique keeps them"
        " for later versions"
    )
    assert [told.is_new for told in found(MadeUp((value(is_new=False),)), MadeUp())] == [False]
    (one,) = found(MadeUp((value(is_new=False),)), MadeUp())
    assert one.message.startswith("The chart makes up 1 value. It goes into Secret shop/db. Pratique keeps it for")
    assert found(MadeUp()) == []


@pytest.mark.parametrize(
    ("made", "severity", "words"),
    [
        (
            value(PASSWORD, COPY),
            Severity.DANGEROUS,
            "makes up for Secret shop/db is also in ConfigMap shop/settings at data.url, where",
        ),
        (value(COPY, sort=MadeSort.TEXT), Severity.NOTABLE, "is in ConfigMap shop/settings at data.url, and stays"),
        (value(STAMP, sort=MadeSort.TIME), Severity.SAFE, "stays that of the first rendering"),
        (value(PASSWORD, WEBHOOK, sort=MadeSort.CERTIFICATE), None, ""),
        (value(NAMED, COPY, sort=MadeSort.NAME), None, ""),
    ],
    ids=["a copy", "alone", "a time", "the public half of a certificate", "a name"],
)
def test_who_can_read_what_is_in_no_secret(made: MadeValue, severity: Severity | None, words: str) -> None:
    told = [finding for finding in found(MadeUp((made,))) if finding.rule == "MADE-02"]
    assert [finding.severity for finding in told] == ([severity] if severity else [])
    assert all(words in finding.message and made.value not in repr(finding) for finding in told)
    again = [finding for finding in found(MadeUp((made,)), MadeUp((made,))) if finding.rule == "MADE-02"]
    assert [finding.is_new for finding in again] == [False] * len(told)


def test_a_checksum_that_is_not_known_is_told() -> None:
    one, other = (Checksum(MadePlace("Deployment", "shop", name, "/spec/0/checksum~1s"), name == "a") for name in "ab")
    (told,) = found(MadeUp(checksums=(one, other)))
    assert (told.rule, told.severity) == ("MADE-03", Severity.NOTABLE)
    assert "a checksum of its own into Deployment shop/b at spec[0].checksum/s, over all" in told.message
    assert [told.is_new for told in found(MadeUp(checksums=(other,)), MadeUp(checksums=(other,)))] == [False]


def test_what_is_new_beside_what_was_kept_may_not_fit() -> None:
    new = value(replace(PASSWORD, path="/data/hash"))
    (told,) = [it for it in found(MadeUp((value(is_new=False), new)), MadeUp()) if it.rule == "MADE-04"]
    assert told.severity is Severity.UNKNOWN
    assert (
        "Secret shop/db has a value at data.hash that the chart made up now, and templates/db.yaml has" in told.message
    )
    assert [it.rule for it in found(MadeUp((value(), new)), MadeUp())] == ["MADE-01"]


@pytest.mark.parametrize(
    ("path", "sort"),
    [("/data/at", MadeSort.TIME), ("/metadata/annotations/rollme", MadeSort.TEXT)],
    ids=["a time", "a remark"],
)
def test_a_time_or_a_remark_beside_kept_values_is_no_matter(path: str, sort: MadeSort) -> None:
    new = value(replace(PASSWORD, path=path), sort=sort)
    assert "MADE-04" not in [it.rule for it in found(MadeUp((value(is_new=False), new)), MadeUp())]


@pytest.mark.parametrize(
    ("places", "words"),
    [
        (["/spec/users/0/password"], ["at spec.users[0].password, in an entry of a list that has no name"]),
        (["/spec/users/[name=a]/password"], []),
        (["/spec/users/0/password", "/data/password"], []),
    ],
    ids=["a number", "a name", "elsewhere, too"],
)
def test_a_value_that_only_a_number_in_a_list_leads_to_is_told(places: list[str], words: list[str]) -> None:
    first, *copies = [replace(PASSWORD, path=path) for path in places]
    told = [it for it in found(MadeUp((value(first, *copies),)), MadeUp()) if it.rule == "MADE-05"]
    assert len(told) == len(words)
    assert all(said in it.message for it, said in zip(told, words, strict=True))


def test_a_value_that_was_made_up_is_not_called_one_of_the_bundle() -> None:
    for made, keys in ((MadeUp(), ["own", "password"]), (MadeUp((value(),)), ["own"])):
        told = judged_by(given(made), [content.CONTENT_CHECK])
        assert [finding.evidence["keys"] for finding in told if finding.rule == "SEC-01"] == [keys]


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (replace(value(is_new=False), is_rotated=True), "1 value that the chart makes up is made anew: "),
        (replace(value(is_new=False), generation=1), "1 value that the chart made up comes back from an earlier rev"),
        (replace(value(is_new=False), generation=2), ""),
        (value(is_new=False), ""),
    ],
    ids=["made anew", "of an earlier revision", "the running one", "the running one, of a new rendering"],
)
def test_what_takes_the_place_of_a_value_that_runs_is_told(made: MadeValue, words: str) -> None:
    running = MadeUp((replace(value(is_new=False), generation=2),))
    told = [finding for finding in found(MadeUp((made,)), running) if finding.rule == "MADE-06"]
    assert [finding.severity for finding in told] == ([Severity.DANGEROUS] if words else [])
    for finding in told:
        assert finding.message.startswith(words)
        assert finding.message.endswith("data.password of Secret shop/db")
        assert (finding.ref, finding.is_new, made.value in repr(finding)) == (None, True, False)


def test_what_is_made_anew_beside_what_was_kept_may_not_fit() -> None:
    beside = value(replace(PASSWORD, path="/data/hash"), is_new=False)
    told = found(MadeUp((replace(value(is_new=False), is_rotated=True), beside)), MadeUp())
    assert "MADE-04" in {finding.rule for finding in told}
