"""CRDs that hold values of the wrong type anywhere: refused or not read, and never a crash or a harmless change."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.cli import main
from provisioner.schema import accepts_update, compare, validate_crd
from provisioner.values import Severity
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.provisioner.shapes import WHOLE_CRD, JsonDict

ODD: list[Any] = [None, True, -1, "x", [], {}, [{}], [None], {"a": 1}, "\ud800", math.inf, 10**400]
Place = tuple[str | int, ...]


def places(value: Any, at: Place = ()) -> Iterator[Place]:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, entry in entries:
        yield (*at, name)
        yield from places(entry, (*at, name))


def with_odd(place: Place, odd: Any) -> JsonDict:
    made = copy.deepcopy(WHOLE_CRD)
    inner: Any = made
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = copy.deepcopy(odd)
    return made


@pytest.mark.parametrize("place", list(places(WHOLE_CRD)), ids=lambda it: ".".join(map(str, it)))
def test_nothing_that_is_wrong_anywhere_crashes_or_is_changed(place: Place) -> None:
    for odd in ODD:
        made = with_odd(place, odd)
        given = copy.deepcopy(made)
        compare(WHOLE_CRD, made)
        compare(made, WHOLE_CRD)
        validate_crd(made)
        accepts_update(WHOLE_CRD, made)
        assert made == given


FIELD = ("spec", "versions", 1, "schema", "openAPIV3Schema", "properties", "spec", "properties", "a")
WRONG = [
    ((*FIELD, "enum"), True),
    ((*FIELD, "pattern"), ["^a"]),
    ((*FIELD, "maxLength"), "5"),
    ((*FIELD, "maxLength"), 2**63),
    ((*FIELD, "minimum"), 10**400),
    ((*FIELD, "maximum"), math.inf),
    ((*FIELD, "multipleOf"), math.nan),
    ((*FIELD, "default"), {"a": [-math.inf]}),
    ((*FIELD, "enum"), [10**400]),
    ((*FIELD, "type"), ["string"]),
    ((*FIELD, "x-kubernetes-validations"), {"rule": "true"}),
    ((*FIELD, "x-kubernetes-validations", 0, "rule"), 7),
    ((*FIELD[:-2], "required"), "a"),
    (FIELD[:-1], [{"type": "string"}]),
    (("spec", "versions", 0, "served"), "yes"),
    (("spec", "names", "shortNames"), "t"),
    (("spec", "versions"), {"v1": {}}),
    (("spec", "conversion"), {"webhook": {"conversionReviewVersions": [{}]}}),
    (("spec", "conversion"), {"webhook": {"clientConfig": []}}),
    (("spec", "conversion"), {"webhook": {"clientConfig": {"service": {"port": "x"}}}}),
    (("metadata", "labels"), {"a": 1}),
]
NAMED = pytest.mark.parametrize(("place", "odd"), WRONG, ids=[".".join(map(str, place)) for place, _ in WRONG])


@NAMED
def test_a_value_of_the_wrong_type_is_refused_and_named(place: Place, odd: Any) -> None:
    made = with_odd(place, odd)
    found = compare(WHOLE_CRD, made)
    assert {(one.rule, one.severity, one.verdicts["api"]) for one in found} == {
        ("CRD-19", Severity.BREAKING, Severity.BREAKING)
    }
    assert str(place[-1]) in found[0].evidence["words"]
    assert validate_crd(made)
    assert {one.severity for one in compare(made, WHOLE_CRD)} == {Severity.UNKNOWN}


@pytest.mark.controlplane
@NAMED
def test_the_api_server_refuses_it_too(server: Server, place: Place, odd: Any) -> None:
    status, answer = server.ask("POST", f"{CRD_PATH}?dryRun=All&fieldValidation=Ignore", with_odd(place, odd))
    assert status in (400, 422), answer


@pytest.mark.parametrize("file", ["old", "new"])
def test_the_command_does_not_crash_on_it(tmp_path: Path, file: str) -> None:
    for name in ("old", "new"):
        made = with_odd((*FIELD, "enum"), True) if name == file else WHOLE_CRD
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    assert main(["crd-diff", str(tmp_path / "old.json"), str(tmp_path / "new.json")]) == (1 if file == "new" else 2)


@pytest.mark.parametrize(("file", "status"), [("old", 2), ("new", 1)])
def test_objects_do_not_crash_on_it_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, status: int
) -> None:
    for name in ("old", "new"):
        made = with_odd((*FIELD, "enum"), True) if name == file else WHOLE_CRD
        (tmp_path / f"{name}.json").write_text(json.dumps(made))
    stored = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"a": "a"}}
    (tmp_path / "objects.json").write_text(json.dumps(stored))
    words = [str(tmp_path / f"{name}.json") for name in ("old", "new")]
    assert main(["crd-diff", *words, "--objects", str(tmp_path / "objects.json"), "-o", "json"]) == status
    (found,) = json.loads(capsys.readouterr().out)
    assert found["verdict"] == {"old": "unknown", "new": "breaking"}[file]
    (quality,) = [one["message"] for one in found["findings"] if one["rule"] == "LIV-07"]
    assert "cannot be read" in quality
