"""What stands behind a rule, as a page says it."""

from __future__ import annotations

from approvals.web.requests.rules import explanation
from provisioner.review.rules import rule_text
from provisioner.review.rules.shown import in_one_paragraph
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of


def test_a_page_explains_the_variant_where_a_finding_is_one() -> None:
    for rule, evidence in (("SCH-36a", {"variant": "SCH-36a"}), ("SCH-36", {})):
        words = rule_text(rule)
        assert words is not None
        assert explanation("SCH-36", evidence) == in_one_paragraph(words)


def test_a_page_shows_the_rule_of_a_finding_with_code_as_code(here: World, browse: Browse) -> None:
    request = scene.reported(scene.asked(here.cluster, "barge", here.rita), scene.report_of("image-by-tag-only"))
    page = text_of(browse(here.ada).get(f"/requests/{request.uid}"))
    assert "<p>The image is named by a tag and not by its digest. A tag can be moved." in page
    assert (
        "<code>name:tag@sha256:...</code> keeps the tag for people. Source: Kubernetes, Images, image names.</p>"
        in page
    )
