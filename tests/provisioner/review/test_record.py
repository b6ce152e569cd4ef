from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

import provisioner.review
from provisioner.errors import BadRecord
from provisioner.pipeline import look_offline
from provisioner.review.record import from_record, to_record
from provisioner.values import Report
from tests.provisioner.review.bundles import content_of, facts, planned
from tests.provisioner.review.test_cases import CASES

SCHEMA = json.loads((Path(provisioner.review.__file__).parent / "report.schema.json").read_text())


def report_of(case: Path) -> Report:
    content = content_of(case / "new")
    assert content is not None
    return look_offline(content, content_of(case / "old"))


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_record_fits_the_published_schema(case: Path) -> None:
    text = json.dumps(to_record(report_of(case)))
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(text))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_comes_back_from_its_record(case: Path) -> None:
    record = json.loads(json.dumps(to_record(report_of(case))))
    assert to_record(from_record(record)) == record


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"version": 2, "headline": [], "findings": [], "plan": {}}, id="a later version"),
        pytest.param({"version": 1, "headline": [], "findings": [{}], "plan": {}}, id="a finding without parts"),
        pytest.param({"version": 1, "headline": [], "findings": [], "plan": None}, id="no plan"),
    ],
)
def test_what_was_not_written_as_a_record_is_refused(record: dict[str, object]) -> None:
    with pytest.raises(BadRecord):
        from_record(record)


def test_facts_of_a_plan_survive_the_record() -> None:
    from provisioner.review.frame import report
    from provisioner.values import Action
    from tests.provisioner.review.bundles import config_map

    action = planned(config_map(), Action.UPDATE, before={}, uid="u", resource_version="7", warnings=("old API",))
    found = report(facts(action))
    assert from_record(json.loads(json.dumps(to_record(found)))).plan == found.plan
