"""What stands behind a rule, as a page says it."""

from __future__ import annotations

from approvals.web.requests.rules import explanation
from provisioner.review.explanations import EXPLANATIONS


def test_a_page_explains_the_variant_where_a_finding_is_one() -> None:
    assert explanation("SCH-36", {"variant": "SCH-36a"}) == str(EXPLANATIONS["SCH-36a"])
    assert explanation("SCH-36", {}) == str(EXPLANATIONS["SCH-36"])
