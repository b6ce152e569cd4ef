"""The templates of a report's page: what they show is escaped and visible, whoever wrote it."""

from __future__ import annotations

import re
from html import unescape
from importlib.resources import files
from typing import Any

import jinja2
import pytest

from provisioner.escaping import visible
from provisioner.pipeline import look_offline
from provisioner.rbac import RbacSubject
from provisioner.review.base.facts import ReviewRule
from provisioner.review.base.record import Mark
from provisioner.review.output.html import as_html, rendered
from provisioner.review.output.workloads import run_words, workloads_as_text
from provisioner.review.rules.explanations import Explanation
from provisioner.review.workloads.workload_changes import ContainerChange, Line, PodRun, WorkloadChange
from provisioner.values import ObjectRef, Plan, Report, Section, Severity
from tests.provisioner.review.output.hostile import HOSTILE, Tags
from tests.support.provisioner.contents import content_with
from tests.support.provisioner.example_crd import TEXT, crd
from tests.support.provisioner.example_roles import APPS, PODS, SECRETS, binding, role

TEMPLATES = sorted(
    (one for one in files("provisioner.review.output").joinpath("templates").iterdir()), key=lambda one: one.name
)


def test_S24_a_text_of_others_is_made_harmless_whatever_the_template_does_with_it() -> None:
    rule = Explanation(HOSTILE, HOSTILE, ((HOSTILE, (HOSTILE, f"`{HOSTILE}`")),))
    page, tags = rendered("rules.html", rules=[rule]), Tags()
    tags.feed(page)
    assert set(tags.tags) == {"details", "summary", "dl", "dt", "dd", "p", "code"}
    assert tags.attributes == []
    assert [one for one in page if not one.isprintable() and one != "\n"] == []
    assert unescape(re.sub(r"<[^>]*>", "", page)).count(visible(HOSTILE)) == 5


def test_S24_what_workloads_run_is_made_harmless() -> None:
    ref = ObjectRef("", "v1", HOSTILE, HOSTILE, HOSTILE)
    change = ContainerChange(ref, HOSTILE, "", Mark.NEW, HOSTILE, HOSTILE, (Line(Mark.NEW, "arg", HOSTILE),))
    run = PodRun(HOSTILE, (HOSTILE,), HOSTILE)
    workload = WorkloadChange(ref, Mark.NEW, PodRun(), run, (change,))
    told = [(workload, ", ".join(run_words(workload)))]
    page, tags = rendered("workloads.html", workloads=told, workload_counts=HOSTILE), Tags()
    tags.feed(page)
    assert set(tags.tags) == {"h2", "p", "span", "code", "ul", "li"}
    assert [one for one in page if not one.isprintable() and one != "\n"] == []
    text = "\n".join(line for is_all in (True, False) for line in workloads_as_text([workload], with_all=is_all))
    assert [one for one in text if not one.isprintable() and one != "\n"] == []


def test_S24_quotes_do_not_end_an_attribute() -> None:
    page = rendered("report.html", **{**_NOTHING, "policy": '"><script>'})
    assert '"><script>' not in page
    assert "&#34;&gt;&lt;script&gt;" in page


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda one: one.name)
def test_S24_no_template_lets_text_through_as_it_is(template) -> None:
    assert not re.search(r"\|\s*safe\b|autoescape|Markup", template.read_text("utf-8"))


def test_what_a_template_is_not_given_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError, match="title"):
        rendered("report.html", **{name: value for name, value in _NOTHING.items() if name != "title"})


_NOTHING = {
    "policy": "",
    "title": "",
    "headline": (),
    "totals": "",
    "parts": (),
    "sources": (),
    "workloads": (),
    "workload_counts": "",
    "plan": "",
    "objects": (),
    "rules": (),
}


CRD = ObjectRef("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "", "ships.harbour.example.com")


def compared(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> Report:
    return look_offline(content_with(*new), content_with(*old))


def both() -> Report:
    old = [role("a", PODS), binding("a", "a"), crd({"a": TEXT, "b": TEXT})]
    return compared(old, [role("a", PODS, SECRETS), binding("a", "a"), crd({"a": {**TEXT, "maxLength": 3}})])


def test_the_page_draws_accounts_and_schemas_and_says_what_was_found_at_each_place() -> None:
    report = both()
    html = as_html(report, title="a")
    assert "Ways of <code>ServiceAccount shop/robot</code> to its rights: rules 1 new, 1 as before" in html
    assert "get, list, watch <code>secrets</code>" in html
    assert '<span class="mark">– gone</span> <code>b</code> string' in html
    assert "<code>maxLength</code> <ins>3</ins>" in html
    picture = html[html.index("Ways of") :]
    assert "<code>RB-11</code>" in picture
    assert "<code>SCH-01</code>" in picture


@pytest.mark.parametrize(
    "hidden", [{CRD}, {ObjectRef("rbac.authorization.k8s.io", "v1", "ClusterRole", "", "a")}], ids=str
)
def test_nothing_is_drawn_of_what_is_hidden(hidden: set[ObjectRef]) -> None:
    html = as_html(both(), title="a", hidden=hidden)
    is_schema = CRD in hidden
    assert ("Changed fields of" in html) is not is_schema
    assert ("get, list, watch <code>secrets</code>" in html) is is_schema


def test_only_what_changes_is_drawn() -> None:
    html = as_html(
        compared([role("a", PODS), binding("a", "a")], [role("a", PODS), binding("a", "a"), role("b", APPS)]), title="a"
    )
    assert "Ways of" not in html


@pytest.mark.parametrize("severity", [Severity.NOTABLE, Severity.CRITICAL], ids=str)
def test_the_page_tells_findings_of_one_cause_as_one_entry_open_where_it_must_be_read(severity: Severity) -> None:
    found = [
        ReviewRule(rule, Section.CRDS, severity).at(CRD, f"words of {rule}", key=rule, evidence={"version": "v1"})
        for rule in ("CRD-01", "SCH-01", "SCH-21")
    ]
    html = as_html(Report((), tuple(found), Plan((), "")), title="a")
    assert html.count("<p>words of CRD-01; and 2 more</p>") == 1
    inside = html[html.index("and 2 more") :]
    is_open = " open" if severity is Severity.CRITICAL else ""
    assert f"<details{is_open}><summary>Each of the 3 findings</summary>" in inside
    assert all(inside.count(f"<p>{finding.message}</p>") == 1 for finding in found)


@pytest.mark.parametrize("name", [HOSTILE, "n" * 253, "a\nb", "раypal"], ids=["markup", "long", "lines", "look-alike"])
def test_S24_names_of_others_are_shown_as_they_are_and_do_nothing(name: str) -> None:
    eve = RbacSubject("User", name)
    wild = {"verbs": ["*"], "apiGroups": ["*"], "resources": [name]}
    old = [role(name, PODS), binding(name, name, subject=eve), crd({name: TEXT})]
    new = [role(name, PODS, wild), binding(name, name, subject=eve), crd({name: {"type": "integer", "enum": [name]}})]
    html, tags = as_html(compared(old, new), title="a"), Tags()
    tags.feed(html)
    assert not {"script", "img"} & set(tags.tags)
    assert [one for one in html if not one.isprintable() and one != "\n"] == []
    assert "р" not in html
    assert "Ways of" in html
    assert "Changed fields of" in html
