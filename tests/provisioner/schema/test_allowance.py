"""What one comparison may cost in all, however many hard questions a CRD asks."""

from __future__ import annotations

import pytest

from provisioner.schema import compare
from provisioner.schema.inclusion import languages
from provisioner.schema.inclusion.languages import inclusion
from provisioner.values import Severity
from tests.support.provisioner.shapes import JsonDict, crd_of, obj


def test_a_proof_for_which_nothing_is_left_is_given_up_and_not_remembered_so() -> None:
    with languages.limited(10):
        assert inclusion("^(a|b){3}c$", "^[a-c]{4}$").holds is None
    assert inclusion("^(a|b){3}c$", "^[a-c]{4}$").holds


def test_many_hard_patterns_in_one_crd_end_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    def hard(more: str) -> JsonDict:
        patterns = {f"f{number}": f"^(a|b)*a(a|b){{{number + 6}}}{more}$" for number in range(40)}
        return crd_of(obj(**{name: {"type": "string", "pattern": it} for name, it in patterns.items()}))

    monkeypatch.setattr("provisioner.schema.diff.crd.limited", lambda: languages.limited(50_000))
    found = compare(hard(""), hard("c?"))
    assert {finding.rule for finding in found} == {"SCH-30"}
    assert found[0].severity is Severity.UNKNOWN


def test_a_limit_holds_for_what_is_inside_only() -> None:
    with languages.limited(1):
        pass
    languages.spend(10**9)
