"""The templates of policies: each compiles, and says of two real reports what its words promise."""

from __future__ import annotations

from typing import Any

import pytest

from approvals.deciding.approval_policies import parse_document
from approvals.gate.policies import facts_of
from approvals.models import Report
from approvals.policy import POLICY
from approvals.policy.document import PolicyEffect
from approvals.policy.templates import TEMPLATES, find_template
from provisioner.expressions.evaluator import ask
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World

# By template: a report of which it is true, and one of which it is not.
SAID = {
    "hold-breaking-crds": ("image-known-before", "crd-version-dropped"),
    "hold-data-loss": ("image-known-before", "data-is-deleted"),
    "hold-secrets-and-escalation": ("image-known-before", "account-reads-every-secret"),
    "hold-unknown": ("image-known-before", "claim-grows"),
    "hold-pratique": ("image-known-before", "account-reads-every-secret"),
    "hold-admission": ("image-known-before", "webhook-becomes-weaker"),
    "hold-unjudged": ("image-known-before", "addresses-written-by-hand"),
    "hold-other-registries": ("image-known-before", "image-of-another-registry"),
    "approve-harmless": ("image-known-before", "crd-version-dropped"),
    "approve-operator-upgrades": ("image-known-before", "account-reads-every-secret"),
}


def facts(env: World, case: str) -> dict[str, Any]:
    request = scene.reported(scene.asked(env.cluster, "boat", env.rita), {"unjudged": 0, **scene.report_of(case)})
    found = dict(facts_of(request, Report.objects.get(request=request)))
    return {**found, "is_first": False}


def test_there_are_ten_and_all_have_a_case() -> None:
    assert [template.document.name for template in TEMPLATES] == list(SAID)
    assert len(TEMPLATES) == 10
    assert find_template("no-such") is None


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.document.name)
@pytest.mark.parametrize("expected", [True, False])
def test_a_template_says_what_its_words_promise(env: World, template: Any, *, expected: bool) -> None:
    document = template.document
    assert parse_document(document.to_object()) == document
    known = facts(env, SAID[document.name][not expected])
    known["sources"] = [f"image:{'registry' if expected else 'other'}.example.com/boat@sha256:0"]
    (found,) = ask(POLICY, [document.expression], known)
    assert found.is_bool, found.words
    assert found.is_true is expected, {
        name: known[name] for name in ("new_rules", "new_severities", "kinds", "actions")
    }
    assert document.effect is (PolicyEffect.GUARD if document.name.startswith("hold-") else PolicyEffect.GRANT)
