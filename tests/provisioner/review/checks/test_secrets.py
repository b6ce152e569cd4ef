"""Promise 8: a value that was planted into a Secret stands in nothing that leaves the room."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.base.record import to_record
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.values import Content, Report
from tests.support.provisioner.contents import an_object, content_of, content_with

VALUES = ("old-Pl4nted-Value", "new-Pl4nted-Value", "Pl4nted")
ENCODED = tuple(b64encode(value.encode()).decode().rstrip("=") for value in VALUES)


def everything_said(report: Report) -> str:
    outputs = [
        json.dumps(to_record(report)),
        as_html(report, title="a"),
        as_text(report, with_diff=True),
        as_text(report, colours=True, with_diff=True),
        repr(report),
    ]
    return "\n".join(outputs)


def secret(**parts: Any) -> Content:
    return content_with(an_object("v1", "Secret", "login", "shop", **parts))


STATES = {
    "absent": content_with(),
    "data": secret(data={"password": ENCODED[0] + "=="}),
    "stringData": secret(stringData={"password": VALUES[1], "user": VALUES[2]}),
    "no mapping": secret(data=[VALUES[0]], stringData=VALUES[1]),
    "values that are no text": secret(data={"password": {"nested": VALUES[2]}}),
    "immutable": secret(data={"password": ENCODED[2]}, immutable=True),
}


@pytest.mark.parametrize("old", STATES)
@pytest.mark.parametrize("new", STATES)
def test_no_output_holds_a_secrets_value(old: str, new: str) -> None:
    said = everything_said(look_offline(STATES[new], STATES[old]))
    assert not [value for value in (*VALUES, *ENCODED) if value in said]


def test_the_planted_bundle_says_key_names_only() -> None:
    case = Path(__file__).parents[1] / "cases" / "secret-in-the-bundle"
    content = content_of(case / "new")
    assert content is not None
    said = everything_said(look_offline(content, content_of(case / "old")))
    assert "password" in said
    assert "Pl4nted" not in said
