"""CRDs that are odd in one way each, with what API server 1.36 said of them: recorded here, and asked again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from provisioner.schema import accepts_update, validate_crd
from tests.support.kubernetes.connection import CRD_PATH, Server
from tests.support.provisioner.shapes import JsonDict, crd

CASES: list[JsonDict] = json.loads(Path(__file__).with_name("refusals.json").read_text())


def whole(short: JsonDict) -> JsonDict:
    """The CRD of a case, which names only what is odd."""
    made = crd()
    return {**made, **short, "spec": {**made["spec"], **short["spec"]}}


def test_a_crd_is_refused_in_the_words_of_the_api_server() -> None:
    assert differing(CASES, said_here) == {}


@pytest.mark.controlplane
def test_the_api_server_still_says_so(server: Server) -> None:
    def said_there(case: JsonDict) -> list[list[str]]:
        _, answer = server.ask("POST", f"{CRD_PATH}?dryRun=All&fieldValidation=Ignore", whole(case["crd"]))
        causes = (answer.get("details") or {}).get("causes") or []
        return sorted([it["field"], it["message"]] for it in causes)

    assert differing([case for case in CASES if "old" not in case], said_there) == {}


def said_here(case: JsonDict) -> list[list[str]]:
    wished = whole(case["crd"])
    before = copy.deepcopy(wished)
    found = accepts_update(whole(case["old"]), wished) if "old" in case else validate_crd(wished)
    assert wished == before, case["name"]
    return sorted([error.path, error.message] for error in found)


def differing(cases: list[JsonDict], ask: Callable[[JsonDict], list[list[str]]]) -> dict[str, list[list[str]]]:
    """The cases of which something else is said than what was recorded, with what is said."""
    assert cases
    said = {case["name"]: ask(case) for case in cases}
    return {case["name"]: said[case["name"]] for case in cases if said[case["name"]] != case["errors"]}
