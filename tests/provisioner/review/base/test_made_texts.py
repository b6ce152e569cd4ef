"""Values that charts made up are found in each form in which people would read them."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote

import pytest

from provisioner.review.base.made_texts import HiddenTexts, ShortText, without_texts_of_report
from provisioner.values import ObjectRef

VALUE = "p+9f2c/ä7d81"
KEY = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEG\nCCqGSM49AwEHBG0wawIBAQQg\n-----END PRIVATE KEY-----\n"
CERTIFICATE = KEY.replace("PRIVATE KEY", "CERTIFICATE").replace("MIGH", "MIIC").replace("CCqG", "AAqG")


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (VALUE, "(x)"),
        (f"db://u:{VALUE}@db", "db://u:(x)@db"),
        (f"db://u:{quote(VALUE, safe='')}@db", "db://u:(x)@db"),
        (json.dumps({"a": VALUE}), '{"a": "(x)"}'),
        (base64.b64encode(f"user:{VALUE}".encode()).decode(), "(x)"),
        (base64.urlsafe_b64encode(f"us:{VALUE}:more".encode()).decode(), "(x)"),
        (f"auth: {base64.b64encode(VALUE.encode()).decode()} # {VALUE}", "auth: (x) # (x)"),
        (f"user-data: {coded(coded(json.dumps({'auth': coded(f'user:{VALUE}')})))}", "user-data: (x)"),
        (coded(f"db://u:{quote(VALUE, safe='')}@db"), "(x)"),
        (f"was approved as db://u:{VALUE[:9]}… and is y", "was approved as db://u:(x)… and is y"),
        (f"db://u:{VALUE[:8]}", "db://u:(x)"),
        (f"{VALUE[:9]}-else", f"{VALUE[:9]}-else"),
        ("nothing of it", "nothing of it"),
    ],
    ids=["equal", "inside", "in an address", "in JSON", "in base64", "in base64 of addresses", "twice", "encoded three times",
         "an address in base64", "cut short",
         "cut at the end", "another", "none"],
)  # fmt: skip
def test_a_value_is_hidden_in_each_form(text: str, shown: str) -> None:
    hidden = HiddenTexts({VALUE: "(x)"})
    assert hidden.of(text) == shown
    assert hidden.of({"a": [{text: 1}]}) == {"a": [{shown: 1}]}


def test_a_private_key_is_hidden_however_it_is_indented_and_a_certificate_is_not() -> None:
    hidden = HiddenTexts({KEY: "(x)", CERTIFICATE: "(y)"})
    indented = "\n".join(f"    {line}" for line in KEY.splitlines())
    assert [line for line in KEY.splitlines() if line in hidden.of(f"tls:\n{indented}") and "-----" not in line] == []
    assert hidden.of(base64.b64encode(f"# key\n{KEY}".encode()).decode()) == "(x)"
    assert hidden.of({"caBundle": CERTIFICATE}) == {"caBundle": CERTIFICATE}


def test_a_short_value_is_hidden_at_its_own_place_and_what_equals_it_in_findings_of_that_object() -> None:
    ref = {"kind": "ConfigMap", "namespace": "a", "name": "b"}
    action = {"ref": ref, "before": None, "after": {"data": {"pin": "4711", "port": "4711"}}}
    finding = {"ref": ref, "rule": "X-1", "message": "4711", "evidence": {"value": "4711", "port": 4711}}
    record = {
        "headline": [],
        "findings": [finding],
        "private": [],
        "plan": {"actions": [action, {**action, "ref": {}}]},
    }
    hidden = HiddenTexts({"4711": "(x)"}, [ShortText("ConfigMap", "a", "b", ("data", "pin"), "4711", "(x)")])
    shown = without_texts_of_report(record, hidden)
    assert [one["after"] and one["after"]["data"]["pin"] for one in shown["plan"]["actions"]] == ["(x)", "4711"]
    assert shown["plan"]["actions"][0]["after"]["data"]["port"] == "4711"
    assert shown["findings"][0]["evidence"] == {"value": "(x)", "port": 4711}
    body = hidden.of_object(ObjectRef("", "v1", "ConfigMap", "a", "b"), action["after"])
    assert body == {"data": {"pin": "(x)", "port": "4711"}}


def test_hiding_takes_little_time_whatever_a_bundle_repeats() -> None:
    """Each text is looked through once, whatever its runs of base64 look like."""
    hidden = HiddenTexts({f"{VALUE}{number:04}": "(x)" for number in range(500)})
    head = base64.b64encode(VALUE.encode()).decode()[:8]
    hidden.of((head + "A" * 92) * 300)
