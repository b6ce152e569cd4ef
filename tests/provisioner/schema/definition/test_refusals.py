"""CRDs that are odd in one way each, with what API server 1.36 said of them: recorded here, and asked again."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from provisioner.schema import accepts_update, validate_crd
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.provisioner.shapes import JsonDict, crd

CASES: list[JsonDict] = json.loads(Path(__file__).with_name("refusals.json").read_text())
ASKED = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def whole(short: JsonDict) -> JsonDict:
    """The CRD of a case, which names only what is odd."""
    made = crd()
    return {**made, **short, "spec": {**made["spec"], **short["spec"]}}


@ASKED
def test_a_crd_is_refused_in_the_words_of_the_api_server(case: JsonDict) -> None:
    wished = whole(case["crd"])
    before = copy.deepcopy(wished)
    found = accepts_update(whole(case["old"]), wished) if "old" in case else validate_crd(wished)
    assert sorted([error.path, error.message] for error in found) == case["errors"]
    assert wished == before


@pytest.mark.controlplane
@pytest.mark.parametrize("case", [it for it in CASES if "old" not in it], ids=lambda case: case["name"])
def test_the_api_server_still_says_so(server: Server, case: JsonDict) -> None:
    _, answer = server.ask("POST", f"{CRD_PATH}?dryRun=All&fieldValidation=Ignore", whole(case["crd"]))
    causes = (answer.get("details") or {}).get("causes") or []
    assert sorted([it["field"], it["message"]] for it in causes) == case["errors"]
