"""The page of what would change: who may ask, how it follows, and what it shows of a result."""

from __future__ import annotations

import html
import re
from dataclasses import asdict
from typing import Any

import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone

from approvals.catalogs import comparisons
from approvals.models import BundleComparison, Request
from approvals.web.catalogs.changes import MOST_FINDINGS, MOST_OBJECTS, arrange_result, list_objections
from provisioner.review.rules import rule_text
from provisioner.values import ChosenBundle, Section, Severity
from tests.support.approvals import scene, world
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.comparisons import begun, fail, finish, port, result
from tests.support.provisioner.catalogs import (
    bundle,
    channel,
    chart,
    chart_index,
    deprecated,
    package,
    read,
    read_charts,
)

PAGE = "/catalogs/prod/port/packages/harbour/changes"
ASKED = f"{PAGE}?from=harbour.v1.0.0&to=harbour.v1.1.0"


def test_the_form_names_the_versions_and_says_what_a_comparison_is_not(env: World, browse: Browse) -> None:
    port(env, "ada")
    text = opened(browse(env.ada), PAGE)
    assert "creates no request, approves nothing and does not look at the live objects" in text
    assert '<option value="harbour.v1.1.0">1.1.0</option>' in text


def test_who_lacks_a_right_is_shown_nothing_of_what_others_asked(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env))
    for page in (PAGE, ASKED, f"{PAGE}/again?from=1.0.0&to=1.1.0"):
        refused = browse(env.bert).get(page)
        assert refused.status_code == 403
        assert "can now" not in text_of(refused)
    env.kubernetes.allow("bert", "get", "port")
    cache.clear()
    refused = browse(env.bert).get(ASKED)
    assert refused.status_code == 403
    assert "kind: ClusterRole" in text_of(refused)
    assert "can now" not in text_of(refused)
    env.kubernetes.allow("bert", "create")
    cache.clear()
    assert "can now" in opened(browse(env.bert), ASKED)


def test_it_is_asked_for_by_the_form_and_followed_until_it_is_known(env: World, browse: Browse) -> None:
    port(env, "ada")
    client = browse(env.ada)
    assert "No recent comparison" in opened(client, ASKED)
    answer = client.post(PAGE, {"from": "1.0.0", "to": "1.1.0"})
    assert answer.status_code == 302
    row = BundleComparison.objects.get()
    text = opened(client, answer["Location"])
    assert 'hx-trigger="every 2s' in text
    assert "waiting for a worker" in text.lower()
    finish(row)
    part = opened(client, f"{PAGE}/again?from=1.0.0&to=1.1.0")
    assert 'hx-trigger="every' not in part, "it ends by itself"
    assert "Added: 2" in part
    assert "Removed: 1" in part
    assert "csrf" not in part


def test_a_result_tells_rights_images_and_findings_as_text(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env))
    text = opened(browse(env.ada), ASKED)
    assert "<img src=x" not in text
    for words in ("harbour/keeper", "Secrets", "without the live objects of the cluster", "Rights that it gains"):
        assert words in text, words
    assert "Account and least rights" not in text


def test_a_result_counts_rules_as_rules_and_marks_what_is_not_new(env: World, browse: Browse) -> None:
    port(env, "ada")
    row = begun(env)
    made = result()
    known = [one for one in made["report"]["findings"] if one["severity"] != "safe"]
    for at, one in enumerate(known):
        one["isNew"] = at > 1
    with transaction.atomic():
        comparisons.finish_comparison(row, made, {}, timezone.now())
    text = opened(browse(env.ada), ASKED)
    assert "Rights that it gains, in 1 rule<" in text
    assert text.count('<span class="label label-plain">not new</span>') == 2 < len(known)


def test_a_downgrade_is_said_above_what_it_would_change(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env, "1.0.0", "1.1.0"))
    text = opened(browse(env.ada), f"{PAGE}?from=1.1.0&to=1.0.0")
    assert 0 < text.index("A downgrade: ") < text.index('<ul class="headline">')
    assert "A downgrade" not in opened(browse(env.ada), ASKED)


def test_what_is_said_against_it_has_its_rule_in_a_label_and_explains_it(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env, "1.0.0", "1.1.0"))
    text = opened(browse(env.ada), f"{PAGE}?from=1.1.0&to=1.0.0")
    listed = text.partition('aria-labelledby="against"')[2].partition("</ul>")[0]
    assert re.findall(r'<code class="rule">([^<]+)</code>', listed) == ["SRC-03", "CAT-01"]
    words = re.findall(r'<span class="finding-words">(.*?)</span>', listed, re.DOTALL)
    assert len(words) == 2
    assert not any(re.search(r"[A-Z]{3}-[0-9]{2}", one) for one in words)
    assert "Publishers test upgrades along their edges only" in listed
    assert 'aria-labelledby="against"' not in opened(browse(env.ada), ASKED)


def test_of_a_deployment_the_bundle_that_runs_is_compared_with_the_edges(env: World, browse: Browse) -> None:
    port(env, "ada")
    source = {"kind": "catalog", "catalog": {"name": "port", "package": "harbour"}}
    wish = world.spec(format="registry-v1", sources=[source])
    request = world.submit_spec(env.cluster, world.seen("quay", wish), env.rita).requests.get()
    scene.running(request)
    chosen = ChosenBundle("", "port", "", "harbour", "stable", "harbour.v1.2.0", "1.2.0", "")
    Request.objects.filter(pk=request.pk).update(bundles=[asdict(chosen)])
    finish(begun(env, "1.1.0", "", deployment="quay"))
    text = opened(browse(env.ada), f"{PAGE}?to=1.1.0&deployment=quay")
    assert "A downgrade: " in text


def test_the_lines_of_an_object_are_shown_when_somebody_opens_it(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env))
    client = browse(env.ada)
    text = opened(client, ASKED)
    assert "example.com/hhh" not in text.partition("Images")[0], "lines come when they are asked for"
    (address,) = re.findall(r'hx-get="([^"]*/objects/\d+[^"]*)"', text[text.index("Changed: 1") :])[:1]
    part = text_of(client.get(html.unescape(address), headers={"HX-Request": "true"}))
    assert "<html" not in part
    assert re.findall(r'class="sign">(.)</span>[ -]*image:', part) == ["-", "+"]
    page = opened(client, html.unescape(address))
    assert "All that would change" in page
    assert "<img src=x" not in page
    assert client.get(f"{PAGE}/objects/99?from=1.0.0&to=1.1.0").status_code == 404
    gone = client.get(f"{PAGE}/objects/0?from=1.0.0&to=1.2.0")
    assert gone.status_code == 302, "nobody has asked for it: the page of the comparison says so"
    within = client.get(f"{PAGE}/objects/0?from=1.0.0&to=1.2.0", headers={"HX-Request": "true"})
    assert (within.status_code, within["HX-Redirect"]) == (204, gone["Location"]), "the whole page, not the fold"


def test_S09_lines_of_what_runs_are_shown_to_who_may_get_the_object(env: World, browse: Browse) -> None:
    port(env, "ada")
    env.kubernetes.allow("ada", "get")
    scene.running(world.submit_spec(env.cluster, world.seen("quay", world.spec()), env.rita).requests.get())
    finish(begun(env, "1.1.0", "", deployment="quay"))
    asked = f"{PAGE}?to=1.1.0&deployment=quay"
    client = browse(env.ada)
    changed = re.compile(r'hx-get="([^"]*/objects/\d+[^"]*)"[^>]*>\s*<span class="mono">Deployment')
    (address,) = changed.findall(opened(client, asked))
    assert "image:" in opened(client, html.unescape(address))
    env.kubernetes.closed.add("deployments")
    cache.clear()
    assert changed.findall(opened(client, asked)) == []
    refused = opened(client, html.unescape(address))
    assert "you are not allowed to see its values" in refused
    assert "image:" not in refused


def test_from_nothing_the_account_and_its_rights_are_shown(env: World, browse: Browse) -> None:
    port(env, "ada")
    finish(begun(env, before=""), is_first=True)
    text = opened(browse(env.ada), f"{PAGE}?to=1.1.0")
    assert "Account and least rights to install it" in text
    assert "harbour-installer" in text


def test_what_failed_says_why_and_what_to_do(env: World, browse: Browse) -> None:
    port(env, "ada")
    fail(begun(env))
    text = opened(browse(env.ada), ASKED)
    assert "It could not be compared" in text
    assert "<img" not in text
    assert "<code>invalid-manifest</code>" in text
    assert "hx-trigger" not in opened(browse(env.ada), f"{PAGE}/again?from=1.0.0&to=1.1.0")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"from": "1.0.0", "to": ""}, "Choose the version that would run"),
        ({"from": "1.0.0", "to": "9.9.9"}, "has no bundle or version"),
        ({"from": "", "to": "1.1.0", "deployment": "nothing"}, "There is no deployment nothing"),
    ],
    ids=["nothing chosen", "no such version", "no such deployment"],
)
def test_what_cannot_be_asked_is_said_beside_what_was_typed(
    env: World, browse: Browse, given: dict[str, Any], words: str
) -> None:
    port(env, "ada")
    answer = browse(env.ada).post(PAGE, given)
    assert answer.status_code == 422
    assert words in text_of(answer)
    assert BundleComparison.objects.count() == 0


def test_a_quota_is_a_page_that_says_so(env: World, browse: Browse, settings: Any) -> None:
    settings.PRATIQUE = {**settings.PRATIQUE, "COMPARISONS": 1}
    port(env, "ada")
    begun(env)
    answer = browse(env.ada).post(PAGE, {"to": "1.2.0"})
    assert answer.status_code == 429
    assert "PRATIQUE_COMPARISONS" in text_of(answer)


class Lone(dict[str, Any]):
    """A finding that nobody compares with others: that takes the square of their number."""

    __hash__ = None  # type: ignore[assignment]  # a test that puts findings in a set fails too

    def __eq__(self, other: object) -> bool:
        raise AssertionError("findings are compared with each other")


def of(severity: Severity, count: int, *, is_new: bool = True) -> list[dict[str, Any]]:
    of_all = {"section": Section.PODS, "severity": severity, "rule": "POD-01", "isNew": is_new}
    return [Lone(**of_all, message=f"{at}") for at in range(count)]


def shown(findings: list[dict[str, Any]]) -> Any:
    report = {"plan": {"actions": []}, "findings": findings}
    (section,) = arrange_result({"report": report, "changed": {}, "images": []}).sections
    return section


def test_S24_what_is_critical_or_unknown_is_never_left_out() -> None:
    several = MOST_FINDINGS + 50
    findings = of(Severity.DANGEROUS, 7) + of(Severity.CRITICAL, several) + of(Severity.UNKNOWN, 1)
    section = shown(findings + of(Severity.SAFE, 3))
    assert [one["severity"] for one in section.findings] == [Severity.CRITICAL] * several + [Severity.UNKNOWN]
    assert (section.left, section.safe) == (7, 3)


def test_what_is_less_grave_fills_the_rest_in_its_order() -> None:
    section = shown(of(Severity.UNKNOWN, 1) + of(Severity.NOTABLE, MOST_FINDINGS + 4))
    assert [one["message"] for one in section.findings[1:]] == [f"{at}" for at in range(MOST_FINDINGS - 1)]
    assert section.left == 5


def test_of_the_same_severity_the_new_come_first_and_nothing_critical_is_left_out() -> None:
    known = of(Severity.CRITICAL, 3, is_new=False) + of(Severity.NOTABLE, MOST_FINDINGS, is_new=False)
    section = shown(known + of(Severity.NOTABLE, 2) + of(Severity.CRITICAL, 1))
    order = [(str(one["severity"]), one["isNew"]) for one in section.findings]
    first = [("critical", True), *[("critical", False)] * 3, *[("notable", True)] * 2]
    assert order == first + [("notable", False)] * (MOST_FINDINGS - len(first))
    assert section.left == 6


PORT = read(
    package(),
    *map(bundle, ("1.0.0", "1.1.0", "1.2.0")),
    channel("stable", {"name": "harbour.v1.0.0"}, {"name": "harbour.v1.1.0", "replaces": "harbour.v1.0.0"}),
    channel("fast", {"name": "harbour.v1.2.0"}),
    deprecated("olm.bundle", "harbour.v1.0.0"),
).packages["harbour"]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("1.0.0", "1.1.0", []),
        ("1.1.0", "1.2.0", ["No edge of the catalog leads from `harbour.v1.1.0` (1.1.0) to `harbour.v1.2.0` (1.2.0)"]),
        ("1.2.0", "1.1.0", ["A downgrade: `harbour.v1.1.0` (1.1.0) is lower than `harbour.v1.2.0` (1.2.0)", "No edge"]),
        ("1.1.0", "1.0.0", ["A downgrade", "No edge", "Its publisher deprecates bundle harbour.v1.0.0"]),
        ("", "1.1.0", []),
        ("", "1.0.0", ["Its publisher deprecates bundle harbour.v1.0.0"]),
    ],
    ids=["by an edge", "no edge", "downgrade", "downgrade to a deprecated one", "first", "first, deprecated"],
)
def test_a_downgrade_and_what_leaves_the_edges_are_said_first(before: str, after: str, said: list[str]) -> None:
    bundles = PORT.bundles
    runs = bundles[f"harbour.v{before}"] if before else None
    found = list_objections(PORT, runs, bundles[f"harbour.v{after}"])
    assert [one.words[: len(start)] for one, start in zip(found, said, strict=True)] == said


@pytest.mark.parametrize(
    ("before", "after", "rules"),
    [("1.1.0", "1.0.0", ["SRC-03", "CAT-01"]), ("1.1.0", "1.1.0+2", ["CAT-01"]), ("1.0.0", "1.1.0", [])],
    ids=["downgrade", "another build", "higher"],
)
def test_of_charts_it_is_said_that_a_version_is_not_higher_and_no_edge_is_named(
    before: str, after: str, rules: list[str]
) -> None:
    of = read_charts(chart_index(chart("1.0.0"), chart("1.1.0"), chart("1.1.0+2"))).packages["harbour"]
    found = list_objections(of, of.bundles[f"harbour-{before}"], of.bundles[f"harbour-{after}"])
    assert [one.rule for one in found] == rules
    said = f"`harbour-{after}` ({after}) is not higher than `harbour-{before}` ({before}): a deployment takes it only"
    assert [one.words[: len(said)] for one in found if one.rule == "CAT-01"] == [said] * ("CAT-01" in rules)
    assert not any("edge" in one.words for one in found)


def test_what_is_said_against_a_bundle_names_its_rule_beside_the_sentence_as_findings_do() -> None:
    found = list_objections(PORT, PORT.bundles["harbour.v1.1.0"], PORT.bundles["harbour.v1.0.0"])
    assert [one.rule for one in found] == ["SRC-03", "CAT-01", "CAT-02"]
    for one in found:
        assert not re.search(r"\b[A-Z]{2,5}-[0-9]{2}\b", one.words), one.words
        rule = rule_text(one.rule)
        assert rule is not None
        assert one.severity in rule.severities
        assert rule.do.partition("\n")[0][:40] in one.means


def action(name: str) -> dict[str, Any]:
    return {"action": "update", "ref": ref(name)}


def ref(name: str) -> dict[str, str]:
    return {"group": "apps", "version": "v1", "kind": "Deployment", "namespace": "a", "name": name}


def about(name: str, severity: Severity) -> dict[str, Any]:
    return Lone(section=Section.PODS, severity=severity, rule="POD-01", message="", ref=ref(name), isNew=True)


def test_the_objects_with_the_worst_findings_come_first_and_are_not_cut() -> None:
    actions = [action(f"{at}") for at in range(MOST_OBJECTS + 9)]
    last, late = f"{MOST_OBJECTS + 8}", f"{MOST_OBJECTS + 4}"
    findings = [
        about(late, Severity.NOTABLE),
        about(last, Severity.SAFE),
        about(last, Severity.CRITICAL),
        about("1", Severity.SAFE),
        *of(Severity.DANGEROUS, 1),
    ]
    changed = {last: [3, 1], "0": [0, 2]}
    result = {"report": {"plan": {"actions": actions}, "findings": findings}, "changed": changed, "images": []}
    (group,) = arrange_result(result).objects
    shown = [(one.ref["name"], one.severity) for one in group.objects]
    assert shown[:4] == [(last, "critical"), (late, "notable"), ("0", ""), ("1", "")]
    assert (group.count, len(shown), group.left) == (MOST_OBJECTS + 9, MOST_OBJECTS, 9)
    lines = [(one.position, one.added, one.removed) for one in group.objects[:3]]
    assert lines == [(int(last), 3, 1), (int(late), 0, 0), (0, 0, 2)]
