from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import provisioner.review
from provisioner.errors import BadRecord
from provisioner.pipeline import look_offline
from provisioner.review.record import from_record, to_record
from provisioner.values import Report, Severity
from tests.bench.crds import versions
from tests.provisioner.review.bundles import content_of, content_with, facts, planned
from tests.provisioner.review.test_cases import CASES

MAX_BYTES = 300_000
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


@pytest.mark.thorough
@pytest.mark.parametrize("each", [4, 1], ids=["every fourth CRD changes", "every CRD changes"])
def test_the_report_of_a_bundle_of_ten_megabytes_is_small_and_says_all_that_matters(each: int) -> None:
    old, new = versions(each=each)
    assert len(yaml.dump_all(new, Dumper=yaml.CSafeDumper)) > 10_000_000
    found = look_offline(content_with(*new), content_with(*old))
    record = to_record(found)
    record.pop("plan")
    assert len(json.dumps(record, separators=(",", ":"))) <= MAX_BYTES
    assert sum(record["totals"].values()) == len(record["findings"])
    said = " ".join(one["message"] for one in record["findings"] if one["rule"] == "OBJ-02")
    assert "more fields" in said
    assert Severity.CRITICAL in {one.severity for one in found.findings}
