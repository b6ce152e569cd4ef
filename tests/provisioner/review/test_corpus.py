"""Real bundles, version after version: every pair gives a report, quickly, in which nothing crashed or stays open."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import provisioner.review
from provisioner.pipeline import look_offline, permissions, preflight
from provisioner.rbac import RbacSubject
from provisioner.render import Rendering, render_content
from provisioner.review.base.grouping import is_quiet
from provisioner.review.base.record import to_record
from provisioner.review.output import permission_text
from provisioner.review.output.entries import entries
from provisioner.review.output.terminal import as_text
from provisioner.review.preflight import findings
from provisioner.review.rights.permission_words import files_of
from provisioner.values import Content, Severity, Tree
from tests.support.folders import CORPUS
from tests.support.patience import scaled
from tests.support.provisioner.corpus import Bundle, content_of, is_namespaced, named, pairs
from tests.support.sampling import sampled

pytestmark = pytest.mark.corpus
PAIRS = pairs()
EACH = pytest.mark.parametrize(("old", "new"), sampled(PAIRS, named, lambda pair: pair))
FEWEST = {"plain": 45, "bundles": 65, "fbc": 40}
MOST_SECONDS = 20.0
# What a person reads before they unfold anything, and all that a terminal shows. Only strimzi, from 0.23 to 0.51, has
# more than twelve entries.
MOST_ENTRIES, MOST_LINES = 15, 150
# What nobody can decide by the bundles alone, with the reason. A finding that is unknown and does not stand here could
# have been decided, and one that stands here and is not unknown any more is to be taken out.
UNKNOWN = {
    ("bundles/opentelemetry-operator v0.88.0 v0.158.0-community", "SRV-06"): (
        "a webhook converts between the served versions: what its code keeps shows only in a cluster that runs it"
    )
}


# Lines of the short report of each pair before fields that no rule judges were told.
LINES = json.loads(Path(__file__).with_name("lines_before_unjudged.json").read_text())
# Both have a Service whose selector changes, which was told of by no line at all.
LONGER = {
    "bundles/namespace-configuration-operator 1.0.5 1.0.6": 1.3,
    "plain/operator-controller/standard.yaml v1.4.0 v1.6.0": 1.3,
}


def of(family: str, version: str) -> Content:
    return next(content_of(one) for pair in PAIRS for one in pair if (one.family, one.version) == (family, version))


def test_every_kind_of_bundle_of_the_corpus_is_among_the_pairs() -> None:
    for root, fewest in FEWEST.items():
        found = {old.family for old, _ in PAIRS if old.family.startswith(f"{root}/")}
        several = {it.name for it in (CORPUS / root).iterdir() if len(list(it.iterdir())) > 1}
        assert sum(old.family.startswith(f"{root}/") for old, _ in PAIRS) >= fewest
        assert several <= {part for family in found for part in family.split("/")}


def test_every_unknown_finding_that_is_excused_belongs_to_a_pair() -> None:
    assert {pair for pair, _ in UNKNOWN} <= {named(pair) for pair in PAIRS}


@EACH
def test_a_pair_of_real_bundles_gives_a_report_in_which_nothing_crashed_or_stays_open(old: Bundle, new: Bundle) -> None:
    before, after = content_of(old), content_of(new)
    began = time.process_time()
    report = look_offline(after, before)
    assert time.process_time() - began < scaled(MOST_SECONDS)
    assert not [finding.message for finding in report.findings if finding.rule == "CRASHED"]
    open_questions = sorted({finding.rule for finding in report.findings if finding.severity is Severity.UNKNOWN})
    assert open_questions == sorted(rule for pair, rule in UNKNOWN if pair == named((old, new)))
    assert (1 if report.worst is Severity.SAFE else 2) <= len(report.headline) <= 5
    assert json.loads(json.dumps(to_record(report)))["totals"]
    assert len(entries(finding for finding in report.findings if not is_quiet(finding))) <= MOST_ENTRIES
    assert len(as_text(report).splitlines()) <= MOST_LINES


def test_the_first_install_of_a_large_bundle_is_told_by_few_causes() -> None:
    bundle = next(one for pair in PAIRS for one in pair if one.family == "plain/argo-cd")
    rendering = Rendering("plain", "argocd", "installer", is_namespaced)
    content = render_content(Tree({file.name: file.read_bytes() for file in bundle.files}), rendering, pins=())
    new = [finding for finding in look_offline(content, None).findings if not is_quiet(finding)]
    assert len(new) > 4 * MOST_ENTRIES
    assert len(entries(new)) <= MOST_ENTRIES


@EACH
@pytest.mark.thorough
def test_what_no_rule_judges_makes_no_report_longer_by_more_than_a_fifth(old: Bundle, new: Bundle) -> None:
    shown = as_text(look_offline(content_of(new), content_of(old)))
    pair = named((old, new))
    assert len(shown.splitlines()) <= LONGER.get(pair, 1.2) * LINES[pair]


def test_strimzi_1_0_0_drops_served_versions_and_says_so_first() -> None:
    family = "plain/strimzi-kafka-operator"
    report = look_offline(of(family, "1.0.0"), of(family, "0.51.0"))
    assert report.worst.is_at_least(Severity.BREAKING)
    dropped = [
        finding.rule
        for finding in report.findings
        if finding.ref and "kafkas." in finding.ref.name and "v1beta2" in finding.message
    ]
    assert {"CRD-10", "CRD-11"} & set(dropped)
    assert "v1beta2" in report.headline[0]


def test_the_same_real_bundle_twice_changes_nothing() -> None:
    content = next(content_of(old) for old, _ in PAIRS if "ingress-nginx" in old.family)
    report = look_offline(content, content)
    assert not [finding for finding in report.findings if finding.is_new]


SCHEMAS = Path(provisioner.review.__file__).parent


def fits(record: dict[str, Any], schema: str) -> None:
    jsonschema.Draft202012Validator(json.loads((SCHEMAS / schema).read_text())).validate(json.loads(json.dumps(record)))


@EACH
@pytest.mark.thorough
def test_permissions_and_preflight_of_a_real_bundle_fit_their_published_schemas(old: Bundle, new: Bundle) -> None:
    before, after = content_of(old), content_of(new)
    rights = permissions(None, after, before)
    fits(permission_text.to_record(rights, files_of(after)), "permissions.schema.json")
    found = preflight(None, after, account=RbacSubject("ServiceAccount", "installer", "ops"))
    fits(findings.to_record(found), "preflight.schema.json")
    shown = permission_text.as_text(rights, files_of(after)) + findings.as_text(found)
    assert " 1 rights" not in shown
    assert "does not hold itself" not in shown  # nobody was asked what it holds
