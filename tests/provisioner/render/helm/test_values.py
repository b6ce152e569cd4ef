"""The values of a chart, laid flat: those of the chart, of files and of the wish."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from provisioner.render.helm.values import MAX_VALUE_LENGTH, MAX_VALUES, flat, set_paths
from tests.support.provisioner.charts import chart, rendered


def test_those_of_the_wish_lie_over_those_of_files_and_of_the_chart() -> None:
    files = chart() | {"values.yaml": b"text: own\nimage: {tag: '1', name: a}\n", "more.yaml": b"image: {tag: '2'}\n"}
    found = rendered(files, {"valuesFiles": ["more.yaml"], "values": {"replicas": 3}})
    assert found.values == {"text": '"own"', "image.tag": '"2"', "image.name": '"a"', "replicas": "3"}


def test_lists_empty_mappings_and_names_with_dots() -> None:
    values = {"list": [1, {"a": 2}], "none": None, "empty": {}, "a.b": {"c": True}}
    assert flat(values) == {"a\\.b.c": "true", "empty": "{}", "list": '[1, {"a": 2}]', "none": "null"}


def test_they_are_bounded() -> None:
    found = flat({"long": "x" * 10_000, **{f"a{number}": 1 for number in range(2 * MAX_VALUES)}})
    assert len(found) == MAX_VALUES
    assert flat({"long": "x" * 10_000})["long"] == f'"{"x" * (MAX_VALUE_LENGTH - 1)}… (10,002 characters)'


def test_a_list_of_words_is_kept_whole_and_another_long_one_is_not() -> None:
    words = [f"word-{number}" for number in range(100)]
    assert json.loads(flat({"list": words})["list"]) == words
    assert flat({"list": [*words, "x" * 40]})["list"].endswith(" characters)")
    assert flat({"list": words * 10})["list"].endswith(" characters)")


PEM = base64.b64encode(b"-----BEGIN PRIVATE KEY-----\\ncanary").decode()


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({"auth": {"password": "canary"}}, {"auth.password": '"hidden"'}),
        ({"auth": {"password": {"value": "canary"}}}, {"auth.password.value": '"hidden"'}),
        ({"auth": {"adminPassword": 12345678}}, {"auth.adminPassword": '"hidden"'}),
        ({"db": {"passwords": {"alice": "canary"}}}, {"db.passwords.alice": '"hidden"'}),
        (
            {"createSecretJob": {"activeDeadlineSeconds": 0, "password": "canary"}},
            {"createSecretJob.activeDeadlineSeconds": "0", "createSecretJob.password": '"hidden"'},
        ),
        ({"secretMounts": [{"mountPath": "/etc/x"}]}, {"secretMounts": '[{"mountPath": "/etc/x"}]'}),
        ({"apiTokens": ["canary"]}, {"apiTokens": '"hidden"'}),
        ({"credentialsJson": "{canary}"}, {"credentialsJson": '"hidden"'}),
        ({"auth": {"password": ""}}, {"auth.password": '""'}),
        ({"auth": {"passwordLength": 12}}, {"auth.passwordLength": "12"}),
        ({"serviceAccount": {"token": True}}, {"serviceAccount.token": "true"}),
        ({"existingSecretName": "mine"}, {"existingSecretName": '"mine"'}),
        (
            {"env": [{"name": "DB_PASSWORD", "value": "canary"}]},
            {"env": '[{"name": "DB_PASSWORD", "value": "hidden"}]'},
        ),
        ({"env": [{"name": "SIZE", "value": "1"}]}, {"env": '[{"name": "SIZE", "value": "1"}]'}),
        ({"args": ["--password", "canary"]}, {"args": '["--password", "hidden"]'}),
        ({"url": "https://user:canary@example.com"}, {"url": '"https://user:hidden@example.com"'}),
        ({"url": f"https://user:{'canary' * 40}@example.com"}, {"url": '"https://user:hidden@example.com"'}),
        ({"files": {"tls.key": "canary"}}, {"files.tls\\.key": '"hidden"'}),
        ({"tls": {"data": PEM}}, {"tls.data": '"hidden"'}),
        ({"list": [PEM]}, {"list": '["hidden"]'}),
    ],
)
def test_credentials_are_hidden(values: dict[str, Any], shown: dict[str, str]) -> None:
    assert flat(values) == shown
    assert "canary" not in str(flat(values))


def test_values_that_are_no_mapping_are_none() -> None:
    assert rendered(chart() | {"values.yaml": b"text: own\n"}).values == {"text": '"own"'}
    assert flat({}) == {}


def test_an_empty_mapping_sets_nothing() -> None:
    assert set_paths({"a": {"b.c": None, "d": {}}, "e": [], "f": {}}) == {"a.b\\.c", "e"}
