"""The report on the pages of a request: findings that say the same, what stands behind a rule, and who may do what."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from approvals.models import Request
from approvals.web.requests import report_view
from approvals.web.requests.decision_form import FIELD
from approvals.web.requests.overview import MAX_GRIDS, Cell, grids
from approvals.web.requests.report_view import explanation
from provisioner.review.base.messages import path_text, places_of
from provisioner.review.base.record import finding_from
from provisioner.review.rules import rule_text
from provisioner.review.rules.explanations import in_one_paragraph
from tests.support.approvals import scene
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.approvals.reports import drawn, with_findings
from tests.support.approvals.scene import report_of
from tests.support.approvals.waivers import finding
from tests.support.provisioner.example_crd import TEXT, crd

LIMITED = {**TEXT, "maxLength": 10}
FIELDS = {f"f{at:02}": at for at in range(24)}


def report_with_places(env: World) -> Request:
    """Twelve fields get one limit and eight another, three get an enum; one field is removed."""
    old = dict.fromkeys(FIELDS, TEXT)
    new = {
        name: LIMITED if at < 12 else {**TEXT, "maxLength": 20} if at < 20 else {**TEXT, "enum": ["a"]}
        for name, at in FIELDS.items()
        if at < 23
    }
    env.kubernetes.allow("ada", "override")
    env.kubernetes.allow("ada", "get")
    return drawn(env, [crd(old)], [crd(new)])


def records(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = request.reports.get().body["findings"]
    return found


def all_of(client: Client, request: Request) -> str:
    """The findings to look at, and those that are safe or not new."""
    return "".join(text_of(client.get(f"/requests/{request.uid}/findings{query}")) for query in ("", "?quiet=yes"))


def words_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", page))


def test_every_place_of_every_finding_is_on_the_page_of_the_request(env: World, browse: Browse) -> None:
    request = report_with_places(env)
    words = words_of(all_of(browse(env.ada), request))
    places = {place for one in records(request) for place in places_of(finding_from(one))}
    assert len({place.path for place in places if place.path[:1] == ("spec",)}) >= len(FIELDS)
    assert [place for place in places if place.of not in words or path_text(place.path) not in words] == []


def test_every_place_of_a_finding_is_on_the_page_of_that_finding(env: World, browse: Browse) -> None:
    request, client = report_with_places(env), browse(env.ada)
    for one in records(request):
        words = words_of(text_of(client.get(f"/requests/{request.uid}/findings?only={one['fingerprint']}")))
        for place in places_of(finding_from(one)):
            assert place.of in words
            assert path_text(place.path) in words


def test_findings_that_say_the_same_stand_together_and_each_can_be_accepted(env: World, browse: Browse) -> None:
    request = report_with_places(env)
    page = all_of(browse(env.ada), request)
    assert (
        "maxLength changes from none to 20; breaks only if an object has more than 20 characters there: 8 fields of 1"
        in page
    )
    assert "12 fields" in page
    waivable = [one["fingerprint"] for one in records(request)]
    assert [one for one in waivable if page.count(f'name="{FIELD}{one}"') != 1] == []


def test_what_is_accepted_of_some_places_is_not_accepted_of_one_more(env: World) -> None:
    """A folded finding is accepted for the places that it lists, and for no other."""
    twelve, thirteen = (
        {one["fingerprint"]: one for one in records(drawn(env, [crd(old)], [crd(new)], f"armada-{count}"))}
        for count in (12, 13)
        for names in [[f"f{at:02}" for at in range(count)]]
        for old, new in [(dict.fromkeys(names, TEXT), dict.fromkeys(names, LIMITED))]
    )
    (first,), (second,) = (
        [one for one in found.values() if one["evidence"].get("all_places")] for found in (twelve, thirteen)
    )
    assert (len(first["evidence"]["all_places"]), len(second["evidence"]["all_places"])) == (12, 13)
    assert first["fingerprint"] not in thirteen
    assert second["fingerprint"] not in twelve


def test_what_is_new_and_not_safe_comes_first_and_the_rest_is_a_number_with_a_switch(
    env: World, browse: Browse
) -> None:
    found = [
        finding(1, "safe", section="objects"),
        finding(2, "dangerous", section="objects", isNew=False),
        finding(3, "critical", section="permissions", isNew=False),
        finding(4, "notable", section="images"),
        finding(5, "breaking", section="crds"),
        finding(6, "critical", section="crds", isNew=False),
    ]
    request, client = with_findings(env, *found), browse(env.ada)
    page = text_of(client.get(f"/requests/{request.uid}/findings"))
    assert re.findall('id="section-([a-z]+)"', page) == ["crds", "images"]
    known = page[page.index("Safe or not new") :]
    counted = words_of(known[: known.index("</p>")]).replace("\n", " ")
    assert [word for word in counted.split() if word in ("critical", "dangerous", "safe", "1")] == [
        *("critical", "dangerous", "1"),
        *("safe", "1", "safe"),
    ]
    assert page.count("Safe or not new") == 1
    crds = page[page.index('id="section-crds"') : page.index('id="section-images"')]
    assert "critical" not in crds, "a section counts what it lists"
    assert not any(f"finding {number}" in page for number in (1, 2, 3, 6))
    folded = text_of(client.get(f"/requests/{request.uid}/findings?quiet=yes"))
    assert "4 of 6 findings" in " ".join(folded.split())
    assert all(f"finding {number}" in folded for number in (1, 2, 3, 6))


def test_S24_what_is_critical_has_a_line_of_its_own_in_a_statement_that_stands_open(env: World, browse: Browse) -> None:
    refs = [{"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name} for name in "ab"]
    says = {"rule": "IMG-01", "variant": "by-tag-only", "evidence": {"image": "shop:1"}}
    words = "names shop:1 by tag only: what runs may change without a request"
    found = [
        finding(at, "critical", ref=ref, message=f"ConfigMap shop/{ref['name']} {words}", **says)
        for at, ref in enumerate(refs)
    ]
    page = text_of(browse(env.ada).get(f"/requests/{with_findings(env, *found).uid}/findings"))
    assert '<details class="finding together" open>' in page
    assert f"Each of these {words}: 2 objects" in page
    for name in "ab":
        assert f"ConfigMap shop/{name} {words}" in page


def test_a_finding_of_several_rules_names_them_and_is_found_by_each(env: World, browse: Browse) -> None:
    request, client = with_findings(env, finding(1, rule="CRD-08", also=["DEL-01"]), finding(2)), browse(env.ada)
    assert '<code class="rule">DEL-01</code>' in text_of(client.get(f"/requests/{request.uid}/findings"))
    assert "1 of 2 findings" in text_of(client.get(f"/requests/{request.uid}/findings?search=del-01"))


def test_a_page_explains_the_variant_where_a_finding_is_one() -> None:
    for rule, evidence in (("SCH-36a", {"variant": "SCH-36a"}), ("SCH-36", {})):
        words = rule_text(rule)
        assert words is not None
        assert explanation("SCH-36", evidence) == in_one_paragraph(words)


def test_a_page_shows_the_rule_of_a_finding_with_code_as_code(env: World, browse: Browse) -> None:
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), scene.report_of("image-by-tag-only"))
    page = text_of(browse(env.ada).get(f"/requests/{request.uid}/findings"))
    assert "<p>The image is named by a tag and not by its digest. A tag can be moved." in page
    assert (
        "<code>name:tag@sha256:...</code> keeps the tag for people. Source: Kubernetes, Images, image names.</p>"
        in page
    )


def test_a_right_is_shown_at_the_lines_of_the_role_that_gives_it(env: World, browse: Browse) -> None:
    body = scene.report_of("account-reads-every-secret")
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    position = next(at for at, one in enumerate(body["plan"]["actions"]) if one["ref"]["kind"] == "ClusterRole")
    of_rule = next(one["fingerprint"] for one in body["findings"] if one["rule"] == "RB-11")
    client, path = browse(env.ada), f"/requests/{request.uid}/findings"
    for page in (
        opened(client, f"{path}?only={of_rule}"),
        text_of(client.get(f"{path}/lines?only={of_rule}", headers={"HX-Request": "true"})),
    ):
        assert f"/requests/{request.uid}/changes/{position}" in page
        assert "- secrets" in page.partition("Affected lines of ClusterRole")[2]


def test_the_lines_of_a_folded_finding_are_compared_when_somebody_opens_it(
    env: World, browse: Browse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A CRD of ten thousand lines is compared once for each finding: the page would take as long as all of them."""
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), scene.report_of("crd-version-dropped"))
    client, path = browse(env.ada), f"/requests/{request.uid}/findings"
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


def test_S09_the_lines_of_a_live_role_are_not_for_everybody(env: World, browse: Browse) -> None:
    body = scene.report_of("account-reads-every-secret")
    for action in body["plan"]["actions"]:
        if action["ref"]["kind"] == "ClusterRole":
            action["before"] = action["after"]
    request = scene.reported(scene.asked(env.cluster, "barge", env.rita), body)
    env.kubernetes.closed = {"clusterroles"}
    of_rule = next(one["fingerprint"] for one in body["findings"] if one["rule"] == "RB-11")
    client, path = browse(env.ada), f"/requests/{request.uid}/findings"
    page = opened(client, f"{path}?only={of_rule}")
    assert "can now read every Secret" in page
    assert "Affected lines of ClusterRole" not in page
    fragment = text_of(client.get(f"{path}/lines?only={of_rule}", headers={"HX-Request": "true"}))
    assert "ClusterRole" not in fragment
    assert "Show the affected lines" not in opened(client, f"{path}?search=RB-11")


def grid_finding(subject: str, table: dict[str, Any]) -> dict[str, Any]:
    return {"evidence": {"subject": subject, "table": table}}


def test_an_account_that_reads_every_secret_gains_read_in_the_whole_cluster() -> None:
    (grid,) = grids(report_of("account-reads-every-secret")["findings"])
    assert (grid.account, grid.places) == ("ServiceAccount shop/robot", ("whole cluster",))
    assert [(row.capability, [cell.words for cell in row.cells]) for row in grid.rows] == [("Read", ["gains 3"])]


def test_the_whole_cluster_stands_first_and_an_empty_place_says_so() -> None:
    table = {"Delete": {"whole cluster": {"added": 0, "removed": 1}}, "Read": {"a": {"added": 2, "removed": 1}}}
    (grid,) = grids([grid_finding("ServiceAccount a/b", table)])
    assert grid.places == ("whole cluster", "a")
    assert [(row.capability, [(cell.sign, cell.words) for cell in row.cells]) for row in grid.rows] == [
        ("Read", [("", "no change"), ("±", "gains 2, loses 1")]),
        ("Delete", [("–", "loses 1"), ("", "no change")]),
    ]


def test_what_is_gained_and_lost_is_one_grid_per_account_and_their_number_is_bounded() -> None:
    table = {"Read": {"a": {"added": 1, "removed": 0}}}
    assert len(grids([grid_finding("ServiceAccount a/b", table)] * 2)) == 1
    assert len(grids(grid_finding(f"ServiceAccount a/{number}", table) for number in range(90))) == MAX_GRIDS


def test_findings_without_a_table_make_no_grid() -> None:
    assert grids([{"evidence": {}}, grid_finding("", {}), {"evidence": {"subject": "x", "table": "y"}}]) == []


@pytest.mark.parametrize(
    ("cell", "sign"), [(Cell(1, 0), "+"), (Cell(0, 2), "–"), (Cell(1, 1), "±"), (Cell(0, 0), "")], ids=str
)
def test_a_cell_is_a_sign_and_words(cell: Cell, sign: str) -> None:
    assert cell.sign == sign
    assert cell.words


@pytest.mark.parametrize("rule", ["RB-11", "RB-49", "SCH-21", "IMG-08", "GAP"])
def test_a_rule_is_explained(rule: str) -> None:
    assert explanation(rule, {}).endswith(".")


def test_a_rule_of_somebody_elses_check_is_not_explained() -> None:
    assert explanation("<b>-1", {}) == explanation("", {}) == ""
