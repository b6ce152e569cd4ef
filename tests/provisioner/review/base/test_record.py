from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

import provisioner.review
from provisioner.errors import BadRecord
from provisioner.pipeline import look_offline
from provisioner.review.base.record import OLD_WORDS, VERSION, from_record, to_record, upgraded
from provisioner.values import Severity
from tests.support.provisioner.cases import CASES, report_of
from tests.support.provisioner.contents import content_with, facts, planned
from tests.support.provisioner.large_crds import versions
from tests.support.provisioner.old_records import VALUE, old_record

MAX_BYTES = 300_000
SCHEMA = json.loads((Path(provisioner.review.__file__).parent / "report.schema.json").read_text())


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
        pytest.param({"version": 4, "headline": [], "findings": [], "private": [], "plan": {}}, id="a later version"),
        pytest.param({"version": 2, "headline": [], "findings": [], "plan": {}}, id="nothing private"),
        pytest.param({"version": 2, "headline": [], "findings": [], "private": [], "plan": {}}, id="an empty plan"),
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
    from tests.support.provisioner.contents import config_map

    action = planned(config_map(), Action.UPDATE, before={}, uid="u", resource_version="7", warnings=("old API",))
    found = report(facts(action))
    assert from_record(json.loads(json.dumps(to_record(found)))).plan == found.plan


def test_S27_of_a_record_of_version_1_no_word_of_the_cluster_is_for_everybody() -> None:
    record = upgraded(old_record())
    (finding,), (works, refused) = record["findings"], record["plan"]["actions"]
    assert (record["version"], record["headline"], record["private"]) == (VERSION, [OLD_WORDS], [])
    for one, words in ((finding, finding["message"]), (refused, refused["problem"])):
        assert VALUE in one["serverWords"]
        assert VALUE not in words
        assert OLD_WORDS in words
    assert (works["problem"], works["serverWords"], works["notes"]) == ("", "", [])
    assert works["warnings"] == old_record()["plan"]["actions"][0]["warnings"]  # values of the object in both versions
    told = {
        **record,
        "findings": [{**finding, "serverWords": ""}],
        "plan": {"actions": [{**refused, "serverWords": ""}]},
    }
    assert VALUE not in json.dumps(told)


def test_a_record_of_version_1_keeps_what_was_reviewed() -> None:
    before, after = old_record(), upgraded(old_record())
    told = ("rule", "section", "severity", "ref", "path", "evidence", "verdicts", "isNew", "fingerprint")
    done = ("ref", "action", "uid", "resourceVersion", "before", "after", "isProved", "warnings", "problemCode")
    assert (after["worst"], after["totals"]) == (before["worst"], before["totals"])
    assert after["plan"]["digest"] == before["plan"]["digest"]
    for names, old, new in (
        (told, before["findings"], after["findings"]),
        (done, before["plan"]["actions"], after["plan"]["actions"]),
    ):
        assert [[one[name] for name in names] for one in old] == [[one[name] for name in names] for one in new]


def test_a_record_of_version_1_is_read_and_written_as_one_of_this_version() -> None:
    old = old_record()
    jsonschema.Draft202012Validator(SCHEMA).validate(json.loads(json.dumps(upgraded(old))))
    assert to_record(from_record(old)) == upgraded(old)
    assert old == old_record()


def test_a_record_of_version_2_keeps_its_words_and_names_no_sources() -> None:
    record = to_record(report_of(CASES[0]))
    earlier = {**record, "version": 2}
    earlier["findings"] = [
        {name: value for name, value in finding.items() if name != "sources"} for finding in record["findings"]
    ]
    assert to_record(from_record(earlier)) == record


def test_a_record_of_this_version_is_left_as_it_is() -> None:
    record = to_record(from_record(old_record()))
    assert upgraded(record) is record


def test_S09_what_is_private_comes_back_from_a_record_as_private_and_is_not_counted() -> None:
    record = {**upgraded(old_record())}
    record["private"], record["findings"] = record["findings"], []
    found = from_record(record)
    assert [finding.is_private for finding in found.findings] == [True]
    assert (found.worst, to_record(found)["totals"]["breaking"]) == (Severity.SAFE, 0)
    assert to_record(found)["private"] == record["private"]


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
    said = " ".join(finding["message"] for finding in record["findings"] if finding["rule"] == "OBJ-02")
    assert "more fields" in said
    assert Severity.CRITICAL in {finding.severity for finding in found.findings}
