"""What stands behind a rule, as a page says it."""

from __future__ import annotations

import pytest

from approvals.web.requests import report_view
from approvals.web.requests.report_view import explanation
from provisioner.review.rules import rule_text
from provisioner.review.rules.explanations import in_one_paragraph
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of


def test_a_page_explains_the_variant_where_a_finding_is_one() -> None:
    for rule, evidence in (("SCH-36a", {"variant": "SCH-36a"}), ("SCH-36", {})):
        words = rule_text(rule)
        assert words is not None
        assert explanation("SCH-36", evidence) == in_one_paragraph(words)


def test_a_page_shows_the_rule_of_a_finding_with_code_as_code(here: World, browse: Browse) -> None:
    request = scene.reported(scene.asked(here.cluster, "barge", here.rita), scene.report_of("image-by-tag-only"))
    page = text_of(browse(here.ada).get(f"/requests/{request.uid}/findings"))
    assert "<p>The image is named by a tag and not by its digest. A tag can be moved." in page
    assert (
        "<code>name:tag@sha256:...</code> keeps the tag for people. Source: Kubernetes, Images, image names.</p>"
        in page
    )


def test_a_right_is_shown_at_the_lines_of_the_role_that_gives_it(here: World, browse: Browse) -> None:
    body = scene.report_of("account-reads-every-secret")
    request = scene.reported(scene.asked(here.cluster, "barge", here.rita), body)
    position = next(at for at, one in enumerate(body["plan"]["actions"]) if one["ref"]["kind"] == "ClusterRole")
    of_rule = next(one["fingerprint"] for one in body["findings"] if one["rule"] == "RB-11")
    client, path = browse(here.ada), f"/requests/{request.uid}/findings"
    for page in (
        opened(client, f"{path}?only={of_rule}"),
        text_of(client.get(f"{path}/lines?only={of_rule}", headers={"HX-Request": "true"})),
    ):
        assert f"/requests/{request.uid}/changes/{position}" in page
        assert "- secrets" in page.partition("Affected lines of ClusterRole")[2]


def test_the_lines_of_a_folded_finding_are_compared_when_somebody_opens_it(
    here: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CRD of ten thousand lines is compared once for each finding: the page would take as long as all of them."""
    request = scene.reported(scene.asked(here.cluster, "barge", here.rita), scene.report_of("crd-version-dropped"))
    client, path = browse(here.ada), f"/requests/{request.uid}/findings"
    one = next(it for it in request.reports.get().body["findings"] if it["path"])
    fragment = f"{path}/lines?only={one['fingerprint']}"
    answer = client.get(fragment)
    assert (answer.status_code, answer["Location"]) == (302, f"{path}?only={one['fingerprint']}")
    assert "Affected lines" in text_of(client.get(fragment, headers={"HX-Request": "true"}))
    assert client.get(f"{path}/lines", headers={"HX-Request": "true"}).status_code == 404
    monkeypatch.setattr(report_view, "lines_at", None)
    for query in ("", "?section=crds"):
        page = opened(client, f"{path}{query}")
        assert f'hx-get="{fragment}"' in page
        assert f'<a href="{path}?only={one["fingerprint"]}">Show the affected lines</a>' in page
        assert "Affected lines of" not in page


def test_S09_the_lines_of_a_live_role_are_not_for_everybody(here: World, browse: Browse) -> None:
    body = scene.report_of("account-reads-every-secret")
    for action in body["plan"]["actions"]:
        if action["ref"]["kind"] == "ClusterRole":
            action["before"] = action["after"]
    request = scene.reported(scene.asked(here.cluster, "barge", here.rita), body)
    here.kubernetes.closed = {"clusterroles"}
    of_rule = next(one["fingerprint"] for one in body["findings"] if one["rule"] == "RB-11")
    client, path = browse(here.ada), f"/requests/{request.uid}/findings"
    page = opened(client, f"{path}?only={of_rule}")
    assert "can now read every Secret" in page
    assert "Affected lines of ClusterRole" not in page
    fragment = text_of(client.get(f"{path}/lines?only={of_rule}", headers={"HX-Request": "true"}))
    assert "ClusterRole" not in fragment
    assert "Show the affected lines" not in opened(client, f"{path}?search=RB-11")
