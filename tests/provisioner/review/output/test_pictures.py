"""The pictures in the page that is sent on: complete, harmless, and silent on what is hidden."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.rbac import RbacSubject
from provisioner.review.output.html import as_html
from provisioner.values import ObjectRef, Report
from tests.provisioner.review.output.hostile import HOSTILE, Tags
from tests.support.provisioner.contents import content_with
from tests.support.provisioner.robots import APPS, PODS, SECRETS, binding, role
from tests.support.provisioner.ships import TEXT, crd

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
