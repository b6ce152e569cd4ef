"""The page of changes: what it shows, to whom, and never more than a page."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from approvals.models import ViewedObject
from tests.support.approvals.changes import action, finding, planned
from tests.support.approvals.fixtures import World
from tests.support.approvals.pages import Browse, opened, text_of
from tests.support.approvals.reports import many
from tests.support.approvals.world import api_token
from tests.support.provisioner.contents import an_object, config_map
from tests.support.provisioner.example_crd import crd

HTMX = {"HX-Request": "true"}
LIVE = "live-value-of-others"


def lines_in(text: str) -> list[str]:
    """The lines of an object on a page, with their signs and without their markup."""
    found = re.findall(
        r'<span class="sign">(.)</span><span class="line-text">(.*?)</span>(?=\s*(?:</td>|<a class="cut"))', text
    )
    return [sign + re.sub(r"<[^>]*>", "", line) for sign, line in found]


def test_what_changes_is_shown_with_numbers_anchors_marks_and_colours(env: World, browse: Browse) -> None:
    request = planned(env, action(config_map(a="port 80", b="x"), config_map(a="port 81", b="x")))
    text = opened(browse(env.ada), f"/requests/{request.uid}/changes/0")
    assert lines_in(text)[-3:] == ["-  a: &quot;port 81&quot;", "+  a: &quot;port 80&quot;", "   b: x"]
    assert f'href="/requests/{request.uid}/changes/0?at=R7#o0-R7"' in text
    assert 'id="o0-L7"' in text
    assert '<mark><span class="s">81</span></mark>' in text
    assert '<span class="nt">a</span>' in text


def test_a_hook_is_labelled_with_when_it_runs(env: World, browse: Browse) -> None:
    names = ("first", "second", "third")
    jobs = [action(an_object("batch/v1", "Job", name, "shop", spec={})) for name in names]
    alone = {"rule": "HOOK-01", "evidence": {"moments": ["before", "after"]}}
    alike = {"rule": "HOOK-01", "evidence": {"moments": ["before-deletion"], "objects": ["Job shop/second"]}}
    found = [finding(jobs[0]["ref"], [], **alone), finding(jobs[1]["ref"], [], fingerprint="f2", **alike)]
    request = planned(env, *jobs, findings=found)
    for page in ("", "/changes"):
        text = text_of(browse(env.ada).get(f"/requests/{request.uid}{page}"))
        assert text.count("hook before and after") == 1
        assert text.count("hook before deletion") == 1


def test_S09_of_a_secret_that_is_hidden_nobody_is_told_when_it_runs(env: World, browse: Browse) -> None:
    secret = an_object("v1", "Secret", "token", "shop", data={})
    hook = action(secret, {**secret, "data": {"a": "old"}})
    found = [finding(hook["ref"], [], rule="HOOK-01", evidence={"moments": ["before-deletion"]})]
    request = planned(env, hook, findings=found)
    addresses = [f"/requests/{request.uid}{page}" for page in ("", "/changes")]
    assert [text_of(browse(env.ada).get(one)).count("hook before deletion") for one in addresses] == [1, 1]
    cache.clear()
    env.kubernetes.closed = {"secrets"}
    assert [text_of(browse(env.ada).get(one)).count("hook before deletion") for one in addresses] == [0, 0]


def test_side_by_side_both_states_stand_in_one_row(env: World, browse: Browse) -> None:
    request = planned(env, action(config_map(a="1"), config_map(a="2")))
    text = opened(browse(env.ada), f"/requests/{request.uid}/changes/0?view=split")
    row = next(row for row in text.split("<tr") if "data-change tabindex" in row)
    assert row.index('data-side="old"') < row.index("<mark>") < row.index('data-side="new"')
    assert (row.count("minus"), row.count("plus")) == (2, 2)
    assert f"/requests/{request.uid}/changes/0?view=split" in text


def test_a_finding_stands_at_its_line_and_others_above(env: World, browse: Browse) -> None:
    one = action(config_map(a="1", b="2"), config_map(a="0", b="2"))
    at = finding(one["ref"], ["data", "a"], message="stands at a", fingerprint="f1")
    above = finding(one["ref"], [], message="stands above", fingerprint="f2")
    request = planned(env, one, findings=[at, above])
    text = opened(browse(env.ada), f"/requests/{request.uid}/changes/0")
    order = [text.index(words) for words in ("stands above", "<tbody>", 'id="o0-R7"', "stands at a", 'id="o0-R8"')]
    assert order == sorted(order)
    assert "findings?only=f1" in text


def test_a_refusal_is_said_once_in_the_words_that_its_viewer_may_read(env: World, browse: Browse) -> None:
    said, problem = "ConfigMap one is invalid: data.a", "apply ConfigMap shop/one: the API server refuses it"
    refused = {"problem": problem, "problemCode": "invalid-object", "isProved": False, "serverWords": said}
    one = action(config_map(a="1"), config_map(a="0"), **refused)
    remark = "ConfigMap one as it is in the cluster"
    told = finding(one["ref"], [], message="Cannot update it", serverWords=said, evidence={"code": "invalid-object"})
    live = finding(one["ref"], [], message=remark, serverWords="written by kubectl", severity="dangerous")
    quiet = finding(one["ref"], [], message="a trifle", severity="safe", fingerprint="f3")
    request = planned(env, one, findings=[{**told, "severity": "breaking"}, live, quiet])
    text = opened(browse(env.ada), f"/requests/{request.uid}/changes/0").partition('id="object-0"')[2]
    assert (text.count(said), text.count(problem), text.count("written by kubectl")) == (1, 0, 1)

    assert "created by the same bundle" not in text
    assert text.index("1 finding no worse than notable") < text.index("a trifle") < text.index("<tbody>")


@pytest.mark.parametrize("path", ["", "/0", "/0?view=split&lines=all&at=R7&full=L7", "/0/lines?gap=0-50&open=0-50"])
def test_S09_nothing_is_shown_of_an_object_that_the_viewer_may_not_get(path: str, env: World, browse: Browse) -> None:
    one = action(config_map(a="ours"), config_map(a=LIVE))
    secret = finding(one["ref"], ["data", "a"], message=f"was {LIVE}", evidence={"was": LIVE}, serverWords=LIVE)
    request = planned(env, one, findings=[secret])
    client = browse(env.ada)
    headers = HTMX if "/lines" in path else {}
    assert LIVE in text_of(client.get(f"/requests/{request.uid}/changes{path}", headers=headers))
    cache.clear()
    env.kubernetes.closed = {"configmaps"}
    answer = client.get(f"/requests/{request.uid}/changes{path}", headers=headers)
    assert answer.status_code == 200
    assert LIVE not in text_of(answer)
    assert "ours" not in text_of(answer)


def test_S09_a_value_of_a_secret_in_a_new_object_is_shown_to_who_may_get_the_secret(env: World, browse: Browse) -> None:
    secret = an_object("v1", "Secret", "key", "shop", data={"k": "hidden"})
    one = action(config_map(a=LIVE))
    one["secretTexts"] = {"paths": [["data", "a"]], "secrets": [action(secret)["ref"]]}
    told = finding(one["ref"], ["data", "a"])
    request, client = planned(env, one, findings=[told]), browse(env.ada)
    own, (_, token) = f"/requests/{request.uid}", api_token(env.ada)
    pages = [f"{own}/changes", f"{own}/changes/0", f"{own}/changes/0/lines?gap=0-50&open=0-50", f"{own}/report.html"]
    pages += [
        f"{own}/findings/lines?only={told['fingerprint']}",
        f"/api/v1{own}/report",
        f"/api/v1{own}/report/objects/0",
    ]

    def said() -> dict[str, str]:
        headers = {**HTMX, "authorization": f"Bearer {token}"}
        asked = {
            one: Client().get(one, headers=headers)
            if "/api/" in one
            else client.get(one, headers=HTMX if "?" in one else {})
            for one in pages
        }
        assert {answer.status_code for answer in asked.values()} == {200}
        return {one: answer.content.decode() for one, answer in asked.items()}

    assert [one for one, text in said().items() if LIVE not in text] == []
    cache.clear()
    env.kubernetes.closed = {"secrets"}
    hidden = said()
    assert [one for one, text in hidden.items() if LIVE in text or "secretTexts" in text] == []
    assert "hidden: it holds a value of Secret shop/key" in hidden[f"/api/v1{own}/report"]


def test_S09_whether_a_stored_secret_differs_is_not_told(env: World, browse: Browse) -> None:
    env.kubernetes.closed = {"secrets"}
    client, told = browse(env.ada), []
    secret = an_object("v1", "Secret", "key", "shop", data={"k": "changed"})
    request = planned(env, action(secret, secret))
    for name in ("update", "none"):
        report = request.reports.get()
        report.body["plan"]["actions"][0]["action"] = name
        report.save()
        pages = [opened(client, f"/requests/{request.uid}/changes{path}") for path in ("", "/0", "?action=update")]
        told.append([re.sub(r'csrfmiddlewaretoken" value="\w+"|nonce="[^"]*"', "", one) for one in pages])
    assert "hidden" in told[0][0]
    assert told[0] == told[1]


def test_the_values_of_a_secret_are_masked(env: World, browse: Browse) -> None:
    secret = an_object("v1", "Secret", "key", "shop", data={"k": "UGw0bnRlZA=="})
    request = planned(env, action(secret))
    for path in ("", "/0", "/0?view=split&lines=all"):
        text = opened(browse(env.ada), f"/requests/{request.uid}/changes{path}")
        assert "UGw0bnRlZA" not in text
        assert "hidden" in text


def test_objects_are_listed_by_phase_with_signs_and_filtered(env: World, browse: Browse) -> None:
    deployment = an_object("apps/v1", "Deployment", "web", "shop", spec={"replicas": 1})
    request = planned(env, action(deployment), action(config_map("one", a="1")), action(None, config_map("two", a="1")))
    client, path = browse(env.ada), f"/requests/{request.uid}/changes"
    tree = opened(client, path).partition("<aside")[2].partition("</aside>")[0]
    order = [tree.index(words) for words in ("configuration", ">shop/one<", ">shop/two<", "deploy", ">shop/web<")]
    assert order == sorted(order)
    for query, names in {
        "search=two": ["two"],
        "kind=Deployment": ["web"],
        "action=delete": ["two"],
        "action=nonsense": [],
        "search=shop&kind=ConfigMap": ["one", "two"],
    }.items():
        tree = opened(client, f"{path}?{query}").partition("<aside")[2].partition("</aside>")[0]
        assert re.findall(r">shop/(\w+)<", tree) == names, query


def test_a_tick_is_kept_shown_and_filtered_by(env: World, browse: Browse) -> None:
    request = planned(env, action(config_map("one", a="1")), action(config_map("two", a="1")))
    client, path = browse(env.ada), f"/requests/{request.uid}/changes"
    form = {"subject_digest": request.subject_digest, "viewed": "yes"}
    answer = client.post(f"{path}/0/viewed?view=split", form)
    assert (answer.status_code, answer["Location"]) == (302, f"{path}/0?view=split#object-0")
    assert client.post(f"{path}/0/viewed", {**form, "from": "all"})["Location"] == f"{path}#object-0"
    assert "2, 1 viewed" in opened(client, path)
    left = opened(client, f"{path}?unviewed=yes")
    assert ("shop/one" in left, "shop/two" in left) == (False, True)
    assert client.post(f"{path}/0/viewed", {**form, "subject_digest": "sha256:old"}).status_code == 409
    assert client.post(f"{path}/7/viewed", form).status_code == 404
    client.post(f"{path}/0/viewed", {**form, "viewed": "no"})
    assert not ViewedObject.objects.exists()


def test_a_gap_is_opened_by_a_fragment_and_without_scripts(env: World, browse: Browse) -> None:
    old = {f"k{number:03}": "x" for number in range(100)}
    request = planned(env, action(config_map(**{**old, "k050": "y"}), config_map(**old)))
    client, path = browse(env.ada), f"/requests/{request.uid}/changes/0"
    text = opened(client, path)
    assert "k010" not in text
    link = re.search(r'hx-get="([^"]*)"[^>]*>\s*First 20', text)
    assert link
    fragment = text_of(client.get(link[1].replace("&amp;", "&"), headers=HTMX))
    assert ("<html" in fragment, "k010" in fragment, 'class="gap"' in fragment) == (False, True, True)
    plain = client.get(link[1].replace("&amp;", "&"))
    assert plain.status_code == 302
    assert "k010" in opened(client, plain["Location"])
    assert "k010" in opened(client, f"{path}?at=R20")
    assert "k010" in opened(client, f"{path}?lines=all")
    assert client.get(f"{path}/lines?open=1-2").status_code == 404


def test_the_earlier_addresses_lead_here(env: World, browse: Browse) -> None:
    request = planned(env, action(config_map(a="1")))
    client = browse(env.ada)
    moved = [client.get(f"/requests/{request.uid}/objects{path}") for path in ("", "/0")]
    assert [(one.status_code, one["Location"]) for one in moved] == [
        (301, f"/requests/{request.uid}/changes"),
        (301, f"/requests/{request.uid}/changes/0"),
    ]


def deep(levels: int) -> dict[str, Any]:
    made: dict[str, Any] = {"end": "x"}
    for _ in range(levels):
        made = {"a": made}
    return made


LINE, LINES = "x" * 1_000_000, "\n".join(f"line {number}" for number in range(100_000))
HOSTILE = {
    "a megabyte in one line": (config_map(a=LINE + "1"), config_map(a=LINE + "2"), "more characters"),
    "a hundred thousand lines": (config_map(a=LINES), None, "lines"),
    "a hundred thousand changed lines": (config_map(a=LINES), config_map(a=LINES.replace("line", "row")), "change"),
    "markup in keys": (config_map(**{"<script>alert(1)</script>": "</td><b>"}), None, "&lt;script"),
    "bidi and control characters": (config_map(a="\u202ex\x1b[2J\u200b", **{"\u202ek": "v"}), None, "\\u202e"),
    "deep nesting": (an_object("example.com/v1", "Ship", "s", "shop", spec=deep(800)), None, "spec"),
    "deep nesting that changes": (
        an_object("example.com/v1", "Ship", "s", "shop", spec=deep(800)),
        an_object("example.com/v1", "Ship", "s", "shop", spec={**deep(800), "b": 1}),
        "spec",
    ),
    "very many keys": (config_map(**{f"k{number}": "x" for number in range(50_000)}), None, "lines"),
}


LARGE = ("a hundred thousand lines", "a hundred thousand changed lines", "very many keys")


@pytest.mark.parametrize(
    ("name", "query"),
    [
        pytest.param(name, query, marks=pytest.mark.thorough if query and name in LARGE else ())
        for name in HOSTILE
        for query in ("", "?view=split&lines=all")
    ],
)
def test_hostile_objects_are_shown_bounded_and_escaped(name: str, query: str, env: World, browse: Browse) -> None:
    after, before, words = HOSTILE[name]
    request = planned(env, action(after, before))
    client = browse(env.ada)
    began = time.process_time()
    text = opened(client, f"/requests/{request.uid}/changes/0{query}")
    assert time.process_time() - began < 8.0
    assert len(text) < 1_500_000
    assert words in text
    assert [mark for mark in ("\u202e", "\x1b", "\u200b", "<script>alert", "<b>") if mark in text] == []


def test_the_difference_of_a_very_long_line_is_shown_and_the_whole_line_can_be_had(env: World, browse: Browse) -> None:
    old = "a" * 50_000 + " old " + "b" * 50_000
    request = planned(env, action(config_map(a=old.replace("old", "new")), config_map(a=old)))
    client, path = browse(env.ada), f"/requests/{request.uid}/changes/0"
    text = opened(client, path)
    assert "old" in "".join(one for one in lines_in(text) if one.startswith("-"))
    assert "b" * 2_000 not in text
    whole = opened(client, f"{path}?full=R7")
    assert "b" * 50_000 in whole
    assert "b" * 2_000 not in opened(client, f"{path}?full=L0&at=R0")


def test_a_definition_of_ten_thousand_lines_opens_in_half_a_second(env: World, browse: Browse) -> None:
    leaf = {"type": "object", "properties": {name: {"type": "string", "description": "x" * 60} for name in "abcdef"}}
    old = crd({f"field{number:03}": leaf for number in range(250)}, "v1beta2", "v1")
    new = crd({f"field{number:03}": leaf for number in range(250)} | {"new": leaf}, "v1")
    request = planned(env, action(new, old))
    client, path, took = browse(env.ada), f"/requests/{request.uid}/changes/0", []
    for _ in range(4):
        began = time.process_time()
        text = opened(client, path)
        took.append(time.process_time() - began)
    assert int(re.findall(r'action-delete">-(\d+)<', text)[0]) > 5_000
    assert min(took) < 0.5
    assert len(text) < 600_000
    assert len(lines_in(text)) < 60


@pytest.mark.thorough
def test_five_thousand_objects_fit_into_a_page(env: World, browse: Browse) -> None:
    request = many(env, 200, 5_000)
    client = browse(env.ada)
    began = time.process_time()
    text = opened(client, f"/requests/{request.uid}/changes")
    assert time.process_time() - began < 8.0
    assert len(text.encode()) < 1_500_000
    assert "1 to 200 of" in text
    last = re.findall(r"/changes/(\d+)", opened(client, f"/requests/{request.uid}/changes?page=25"))[-1]
    assert 'aria-current="page"' in opened(client, f"/requests/{request.uid}/changes/{last}")


def test_an_object_that_stays_as_it_is_is_called_unchanged(env: World, browse: Browse) -> None:
    one = config_map("one", a="1")
    request = planned(env, action(one, one, action="none", problem="it would be refused"))
    for path in ("", "/0", "?action=none"):
        text = opened(browse(env.ada), f"/requests/{request.uid}/changes{path}")
        assert "= unchanged (1)" in text
        assert "</span> unchanged" in text
        assert "none" not in re.sub(
            r'value="none"|action-none|action=none', "", text.partition("<main")[2].partition("</main")[0]
        )
