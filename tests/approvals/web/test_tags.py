"""The words and shapes in which pages show severities, versions and facts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from approvals.bundle_spec import parse_spec
from approvals.models import BundleDeployment, Request, Revision
from approvals.selectors.pages import version_words
from approvals.web import audit, tags
from approvals.web.rendering import engine
from provisioner.values import SHAPES, Severity


def test_every_severity_has_a_word_and_a_shape_of_its_own() -> None:
    assert set(SHAPES) == set(Severity)
    assert len(set(SHAPES.values())) == len(Severity)
    assert all(word in tags.severity(word) and SHAPES[word] in tags.severity(word) for word in SHAPES)


def test_a_severity_that_nobody_knows_is_shown_as_unknown() -> None:
    assert 'class="severity severity-unknown"' in tags.severity("<b>")
    assert "<b>" not in tags.severity("<b>")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"kind": "image", "image": {"ref": "reg.example:5000/a/b:1.2"}}, "1.2"),
        ({"kind": "image", "image": {"ref": "reg.example:5000/a/b"}}, "latest"),
        ({"kind": "image", "image": {"ref": f"a/b@sha256:{'a' * 64}"}}, "sha256:aaaaaaaaaaaa"),
        ({"kind": "git", "git": {"repository": "https://x", "ref": {"tag": "v2"}}}, "v2"),
        ({"kind": "git", "git": {"repository": "https://x", "ref": {"commit": "b" * 40}}}, "b" * 12),
        ({"kind": "http", "http": {"url": "https://x/app-1.0.tar.gz?token=s"}}, "app-1.0"),
        ({"kind": "configMap", "configMap": {"name": "local"}}, "local"),
        ({"kind": "catalog", "catalog": {"name": "charts", "package": "beacon"}}, "no version chosen"),
        ({"kind": "catalog", "catalog": {"name": "charts", "package": "beacon", "version": "<2"}}, "<2"),
        ({}, ""),
    ],
    ids=[
        "tag",
        "no tag",
        "digest",
        "git tag",
        "commit",
        "archive",
        "config map",
        "a package",
        "a version of it",
        "nothing",
    ],
)
def test_a_version_is_what_people_call_it(source: dict[str, Any], words: str) -> None:
    assert version_words(parse_spec({"sources": [source]})) == words
    assert version_words(parse_spec({"sources": [source, source]})) == f"{words} +1"


def test_a_package_of_a_catalog_has_the_version_of_the_bundle_that_was_chosen() -> None:
    sources = [{"kind": "catalog", "catalog": {"name": "charts", "package": "beacon"}, "destination": "a"}]
    bundles = [{"destination": "", "version": "9.0.0"}, {"destination": "a", "version": "1.2.0"}]
    request = Request(spec={"sources": sources}, bundles=bundles, bundle_version="")
    assert (tags.version(request, "app"), version_words(request.bundle_spec)) == ("1.2.0", "no version chosen")


@pytest.mark.parametrize(
    ("file", "words"),
    [("app-1.0.zip", "1.0"), ("app-v2.zip", "v2"), ("app-web-1.0.zip", "app-web-1.0"), ("other-1.0.zip", "other-1.0")],
)
def test_the_name_of_the_deployment_is_no_part_of_its_version(file: str, words: str) -> None:
    spec = {"sources": [{"kind": "http", "http": {"url": f"https://x/{file}"}}]}
    assert tags.version(Request(spec=spec, bundle_version=""), "app") == words


def of_bundle(digit: str, version: str, *, sources: int = 1) -> Request:
    """Of an image by digest, whose bundle says `version` of itself."""
    source = {"kind": "image", "image": {"ref": f"reg.example/app@sha256:{digit * 64}"}}
    return Request(spec={"sources": [source] * sources}, bundle_version=version)


def test_a_bundle_is_called_as_it_says_and_its_digest_is_kept() -> None:
    request = of_bundle("a", "4.12.0")
    assert (tags.version(request, "app"), tags.source_version(request, "app")) == ("4.12.0", "sha256:aaaaaaaaaaaa")
    assert tags.version(of_bundle("a", "4.12.0", sources=3), "app") == "4.12.0 +2"
    assert tags.version(of_bundle("a", "1.0\u202e"), "app") == "1.0\\u202e"
    assert tags.version(None, "app") == ""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (of_bundle("a", "4.12.0"), of_bundle("b", "4.15.1"), ("4.12.0", "4.15.1")),
        (None, of_bundle("b", "4.15.1"), ("", "4.15.1")),
        (of_bundle("a", "4.12.0"), of_bundle("b", ""), ("4.12.0", "sha256:bbbbbbbbbbbb")),
        (of_bundle("a", "4.12.0"), of_bundle("b", "4.12.0"), ("sha256:aaaaaaaaaaaa", "sha256:bbbbbbbbbbbb")),
        (of_bundle("a", "4.12.0"), of_bundle("a", "4.12.0"), ("4.12.0", "4.12.0")),
    ],
    ids=["another version", "first", "not known yet", "same version of another image", "same image"],
)
def test_a_request_goes_from_one_version_to_another(
    before: Request | None, after: Request, words: tuple[str, str]
) -> None:
    after.deployment = BundleDeployment(name="app")
    after.from_revision = Revision(request=before) if before else None
    assert tags.versions(after) == words


def test_the_sources_of_a_change_are_told_to_who_points_at_its_versions() -> None:
    after, before = of_bundle("b", "4.15.1"), Revision(request=of_bundle("a", "4.12.0"))
    after.deployment = BundleDeployment(name="app")
    assert tags.source_change(after) == "sha256:bbbbbbbbbbbb"
    after.from_revision = before
    assert tags.source_change(after) == "sha256:aaaaaaaaaaaa → sha256:bbbbbbbbbbbb"
    after.purpose = Request.Purpose.DELETE
    assert tags.source_change(after) == "sha256:aaaaaaaaaaaa"


def test_a_fact_of_the_audit_is_told_in_words() -> None:
    assert (audit.fact_words("contentDigest"), audit.fact_words("groups_at")) == ("content digest", "groups at")
    assert (audit.fact_value("in_review"), audit.fact_value(["a", "b"])) == ("in review", "a, b")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("text", "text"),
        (3, "3"),
        (True, "true"),
        (["a", "b"], "a, b"),
        ([["spec", "x"], ["y"]], "spec, x\ny"),
        ([{"b": 1, "a": "x", "none": []}], "a x, b 1"),
    ],
    ids=str,
)
def test_a_fact_is_shown_in_words(value: Any, words: str) -> None:
    assert tags.facts(value) == words


def test_every_label_is_shown_apart_the_empty_ones_too() -> None:
    assert tags.label_words({"team": "harbour", "items": "1", "edge": ""}) == ["edge=", "items=1", "team=harbour"]


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (timedelta(seconds=59), "just now"),
        (-timedelta(seconds=30), "within a minute"),
        (timedelta(seconds=61), "1 min ago"),
        (timedelta(hours=2, minutes=59), "2 h ago"),
        (timedelta(hours=47, minutes=59), "1 day ago"),
        (timedelta(days=40), "40 days ago"),
        (-timedelta(hours=3, minutes=1), "in 3 h"),
        (-timedelta(days=30, seconds=-5), "in 30 days"),
        (-timedelta(days=29, hours=22), "in 29 days"),
        (-timedelta(hours=12, seconds=-5), "in 12 h"),
        (-timedelta(hours=11, minutes=50), "in 11 h"),
        (-timedelta(hours=23, minutes=59), "in 1 day"),
        (-timedelta(minutes=59, seconds=59), "in 1 h"),
    ],
    ids=str,
)
def test_a_time_is_relative_with_the_exact_one_beside(gap: timedelta, words: str) -> None:
    at = timezone.now() - gap
    assert f">{words}</time>" in tags.ago(at)
    assert f'title="{at:%Y-%m-%dT%H:%M:%SZ}"' in tags.ago(at)


def test_a_time_of_kubernetes_is_shown_as_ours_and_what_is_none_stays_text() -> None:
    at = (timezone.now() - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert tags.ago_of(at) == f'<time datetime="{at}" title="{at}">2 h ago</time>'
    assert [tags.ago_of(text) for text in ("", "2026-13-41T00:00:00Z", "<b>")] == [
        "",
        "2026-13-41T00:00:00Z",
        "&lt;b&gt;",
    ]


def test_facts_and_heads_of_tables_are_escaped_and_say_what_they_are() -> None:
    def render(text: str, **facts: Any) -> str:
        return engine().from_string(text).render(facts)

    assert render('{% pair "Names" names|join:", " css="mono" %}', names=["<b>", "a&b"]) == (
        '<div><dt>Names</dt><dd class="mono">&lt;b&gt;, a&amp;b</dd></div>'
    )
    assert render('{% pair "Now" state %}', state="<i>") == "<div><dt>Now</dt><dd>&lt;i&gt;</dd></div>"
    found = render('{% heads "Tokens" "Used:number" "End:sr" "" %}')
    assert found.count("<th ") == 2
    assert '<th scope="col" class="number">Used</th>' in found
    assert '<th scope="col"><span class="sr">End</span></th>' in found
