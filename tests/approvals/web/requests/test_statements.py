"""Findings that say the same, told together on the pages of a request: every place is there, each can be accepted."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django.test import Client

from approvals.models import Request
from approvals.web.requests.decision_form import FIELD
from provisioner.review.base.messages import path_text, places_of
from provisioner.review.base.record import finding_from
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, text_of
from tests.support.approvals.reports import drawn, with_findings
from tests.support.approvals.waivers import finding
from tests.support.provisioner.ships import TEXT, crd

LIMITED = {**TEXT, "maxLength": 10}
FIELDS = {f"f{at:02}": at for at in range(24)}


def report_with_places(here: World) -> Request:
    """Twelve fields get one limit and eight another, three get an enum; one field is removed."""
    old = dict.fromkeys(FIELDS, TEXT)
    new = {
        name: LIMITED if at < 12 else {**TEXT, "maxLength": 20} if at < 20 else {**TEXT, "enum": ["a"]}
        for name, at in FIELDS.items()
        if at < 23
    }
    here.kubernetes.allow("ada", "override")
    here.kubernetes.allow("ada", "get")
    return drawn(here, [crd(old)], [crd(new)])


def records(request: Request) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = request.reports.get().body["findings"]
    return found


def all_of(client: Client, request: Request) -> str:
    """The findings to look at, and those that are safe or not new."""
    return "".join(text_of(client.get(f"/requests/{request.uid}/findings{query}")) for query in ("", "?quiet=yes"))


def words_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", page))


def test_every_place_of_every_finding_is_on_the_page_of_the_request(here: World, browse: Browse) -> None:
    request = report_with_places(here)
    words = words_of(all_of(browse(here.ada), request))
    places = {place for one in records(request) for place in places_of(finding_from(one))}
    assert len({place.path for place in places if place.path[:1] == ("spec",)}) >= len(FIELDS)
    assert [place for place in places if place.of not in words or path_text(place.path) not in words] == []


def test_every_place_of_a_finding_is_on_the_page_of_that_finding(here: World, browse: Browse) -> None:
    request, client = report_with_places(here), browse(here.ada)
    for one in records(request):
        words = words_of(text_of(client.get(f"/requests/{request.uid}/findings?only={one['fingerprint']}")))
        for place in places_of(finding_from(one)):
            assert place.of in words
            assert path_text(place.path) in words


def test_findings_that_say_the_same_stand_together_and_each_can_be_accepted(here: World, browse: Browse) -> None:
    request = report_with_places(here)
    page = all_of(browse(here.ada), request)
    assert (
        "maxLength none before, 20 now; breaks only if an object has more than 20 characters there: 8 fields of 1"
        in page
    )
    assert "12 fields" in page
    waivable = [one["fingerprint"] for one in records(request)]
    assert [one for one in waivable if page.count(f'name="{FIELD}{one}"') != 1] == []


def test_what_is_accepted_of_some_places_is_not_accepted_of_one_more(here: World) -> None:
    """A folded finding is accepted for the places that it lists, and for no other."""
    twelve, thirteen = (
        {one["fingerprint"]: one for one in records(drawn(here, [crd(old)], [crd(new)], f"armada-{count}"))}
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
    here: World, browse: Browse
) -> None:
    found = [
        finding(1, "safe", section="objects"),
        finding(2, "dangerous", section="objects", isNew=False),
        finding(3, "critical", section="permissions", isNew=False),
        finding(4, "notable", section="images"),
        finding(5, "breaking", section="crds"),
        finding(6, "critical", section="crds", isNew=False),
    ]
    request, client = with_findings(here, *found), browse(here.ada)
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


def test_S24_what_is_critical_has_a_line_of_its_own_in_a_statement_that_stands_open(
    here: World, browse: Browse
) -> None:
    refs = [{"group": "", "version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": name} for name in "ab"]
    says = {"rule": "IMG-01", "variant": "by-tag-only", "evidence": {"image": "shop:1"}}
    words = "names shop:1 by tag only: what runs may change without a request"
    found = [
        finding(at, "critical", ref=ref, message=f"ConfigMap shop/{ref['name']} {words}", **says)
        for at, ref in enumerate(refs)
    ]
    page = text_of(browse(here.ada).get(f"/requests/{with_findings(here, *found).uid}/findings"))
    assert '<details class="finding together" open>' in page
    assert f"Each of these {words}: 2 objects" in page
    for name in "ab":
        assert f"ConfigMap shop/{name} {words}" in page


def test_a_finding_of_several_rules_names_them_and_is_found_by_each(here: World, browse: Browse) -> None:
    request, client = with_findings(here, finding(1, rule="CRD-08", also=["DEL-01"]), finding(2)), browse(here.ada)
    assert '<code class="rule">DEL-01</code>' in text_of(client.get(f"/requests/{request.uid}/findings"))
    assert "1 of 2 findings" in text_of(client.get(f"/requests/{request.uid}/findings?search=del-01"))
