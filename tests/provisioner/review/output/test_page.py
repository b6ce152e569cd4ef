"""The templates of a report's page: what they show is escaped and visible, whoever wrote it."""

from __future__ import annotations

import re
from html import unescape
from importlib.resources import files

import jinja2
import pytest

from provisioner.escaping import visible
from provisioner.review.base.record import Mark
from provisioner.review.output.html import rendered
from provisioner.review.output.workloads import run_words, workloads_as_text
from provisioner.review.rules.explanations import Explanation
from provisioner.review.workloads.workload_changes import ContainerChange, Line, PodRun, WorkloadChange
from provisioner.values import ObjectRef
from tests.provisioner.review.output.hostile import HOSTILE, Tags

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
