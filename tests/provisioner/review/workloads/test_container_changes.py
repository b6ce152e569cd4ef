"""Images, arguments and variables that change, and values that nobody is shown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provisioner.cli import main
from provisioner.masking import masked
from provisioner.pipeline import look_offline
from provisioner.review.output.html import as_html
from provisioner.review.output.terminal import as_text
from provisioner.review.workloads.workload_changes import (
    ContainerChange,
    container_changes,
    image_words,
    to_record,
)
from provisioner.values import Report
from tests.support.provisioner.cases import FOLDER, report_of
from tests.support.provisioner.contents import content_with

CASE = FOLDER / "containers-change-image-and-settings"
SECRETS = ("hunter2", "hunter3", "s3cr3t")


def pod(*containers: dict[str, Any], where: str = "containers") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {where: list(containers)},
    }


def container(name: str = "web", image: str = "example.com/web:v1", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": image, **more}


def report(old: dict[str, Any], new: dict[str, Any]) -> Report:
    return look_offline(content_with(new), content_with(old))


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[ContainerChange]:
    return container_changes(report(old, new).plan)


def lines(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    (found,) = changed(pod(container(**old)), pod(container(**new)))
    return [f"{one.mark.sign} {one.what} {one.text}" for one in found.lines]


@pytest.mark.parametrize(
    ("where", "role"), [("containers", ""), ("initContainers", "init"), ("ephemeralContainers", "ephemeral")]
)
def test_each_kind_of_container_shows_its_image_before_and_after(where: str, role: str) -> None:
    old, new = (pod(container(image=f"example.com/web:{tag}"), where=where) for tag in ("v1", "v2"))
    (found,) = changed(old, new)
    assert (found.role, found.before, found.after) == (role, "example.com/web:v1", "example.com/web:v2")


def test_containers_come_and_go_with_all_that_they_are_told() -> None:
    gone, come = changed(pod(container("old")), pod(container("new", args=["--x"])))[::-1]
    assert (gone.mark.name, gone.before, gone.after) == ("GONE", "example.com/web:v1", "")
    assert (come.mark.name, come.after, [one.text for one in come.lines]) == ("NEW", "example.com/web:v1", ["--x"])


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("a.io/x:v1", "a.io/x:v2", "a.io/x: v1 → v2"),
        ("a.io:5000/x:v1", "a.io:5000/x:v2", "a.io:5000/x: v1 → v2"),
        ("a.io/x:v1@sha256:ab", "a.io/x:v1@sha256:cd", "a.io/x: v1@sha256:ab → v1@sha256:cd"),
        ("a.io/x:v1", "b.io/x:v1", "a.io/x:v1 → b.io/x:v1"),
        ("a.io/x", "a.io/x:v1", "a.io/x → a.io/x:v1"),
        ("", "a.io/x:v1", "a.io/x:v1"),
    ],
)
def test_an_image_is_told_by_what_differs(before: str, after: str, words: str) -> None:
    assert image_words(before, after) == words


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        pytest.param({"args": ["a", "b"]}, {"args": ["a", "c"]}, ["– arg b", "+ arg c"], id="an argument"),
        pytest.param({"command": ["a"]}, {}, ["– command a"], id="a command"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}]},
            {"env": [{"name": "B"}, {"name": "A", "value": "2"}]},
            ["– env A=1", "+ env A=2", "+ env B="],
            id="variables",
        ),
        pytest.param(
            {"env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]},
            {"env": [{"name": "K", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]},
            ["– env K from Secret s, key k", "+ env K from ConfigMap c, key k"],
            id="where a value comes from",
        ),
        pytest.param(
            {}, {"envFrom": [{"secretRef": {"name": "s"}, "prefix": "X_"}]}, ["+ env X_* from Secret s"], id="envFrom"
        ),
        pytest.param({"args": ["x\ny"]}, {"args": ["x\nz"]}, ["– arg y", "+ arg z"], id="a script by its lines"),
        pytest.param(
            {"env": [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]},
            {},
            ["– env N from metadata.name"],
            id="a field",
        ),
    ],
)
def test_values_are_said_as_they_come_and_go(old: dict[str, Any], new: dict[str, Any], found: list[str]) -> None:
    assert lines(old, new) == found


@pytest.mark.parametrize(
    "text",
    [
        "--password=hunter2",
        "--db-password hunter2",
        "postgres://ada:hunter2@db/x",
        "curl -H 'Authorization: Bearer hunter2hunter2' https://x",
        '{"token": "hunter2"}',
        "export API_KEY='hunter2'; run",
        "PGPASSWORD=hunter2 psql",
        "-----BEGIN RSA PRIVATE KEY-----\nhunter2\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nhunter2",
    ],
)
def test_what_is_written_like_a_credential_is_hidden(text: str) -> None:
    shown = [one.text for one in changed(pod(container()), pod(container(args=[text])))[0].lines]
    assert "hunter2" not in str(shown)
    assert "hidden" in str(shown)


def test_the_value_after_a_flag_is_hidden() -> None:
    assert lines({}, {"args": ["--token", "hunter2", "--level", "info"]})[1:] == [
        "+ arg hidden",
        "+ arg --level",
        "+ arg info",
    ]


@pytest.mark.parametrize("name", ["DB_PASSWORD", "apiToken", "AWS_SECRET_ACCESS_KEY", "client-secret", "PGPASSWORD"])
def test_a_variable_named_like_a_credential_is_hidden(name: str) -> None:
    assert lines({}, {"env": [{"name": name, "value": "hunter2"}]}) == [f"+ env {name}=hidden"]


@pytest.mark.parametrize(
    "text", ["--token-file=/run/token", "--password=$(PASSWORD)", "--secret-name=web", "--tokens=5", "--level=info"]
)
def test_what_only_names_a_credential_is_shown(text: str) -> None:
    assert masked(text) == text


def test_a_long_text_is_masked_in_time() -> None:
    assert "hunter2" not in masked("_" * 200_000 + " password=hunter2 " + "://" * 100_000)


def test_the_report_has_them_as_text_html_and_json_and_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    found = report_of(CASE)
    assert main(["review", str(CASE / "new"), "--old", str(CASE / "old"), "-o", "json"]) in (0, 1)
    told = json.loads(capsys.readouterr().out)["containers"]
    assert told == to_record(container_changes(found.plan))
    assert [(one["container"], one["role"]) for one in told] == [("migrate", "init"), ("web", "container")]
    for text in (
        as_text(found, with_all=True),
        as_html(found, title="x").split("What happens to each object")[0],
        json.dumps(told),
    ):
        assert not [secret for secret in SECRETS if secret in text]
        assert "registry.example.com/shop/web" in text
        assert "--level=debug" in text
        assert "MODE=fast" in text


def test_what_runs_then_stands_above_all_findings() -> None:
    found = report_of(CASE)
    text, page = as_text(found), as_html(found, title="x")
    assert text.index("WORKLOADS") < text.index(found.headline[0].split()[0])
    assert page.index("Workloads: 1 changed") < page.index("All findings")


def test_of_many_images_and_settings_the_first_are_told_and_the_others_are_counted() -> None:
    def pods(tag: str) -> list[dict[str, Any]]:
        return [
            container(f"c{at:02}", f"example.com/i{at:02}:{tag}@sha256:{tag * 32}", args=[f"--{tag}"])
            for at in range(20)
        ]

    found = report(pod(*pods("v1")), pod(*pods("v2")))
    text, whole = as_text(found), as_text(found, with_all=True)
    assert "and 12 more images: --all shows them" in text
    assert "and 16 more containers with other settings: --all shows them" in text
    section = text.partition("\n\n")[0]
    assert ("i07" in section, "i08" in section) == (True, False)
    assert all(f"i{at:02}" in whole for at in range(20))
    assert whole.count("--v2") == 20


def test_a_digest_is_told_whole_where_all_is_told() -> None:
    old, new = ("a" * 64, "b" * 64)
    found = report(*(pod(container(image=f"example.com/web:v@sha256:{one}")) for one in (old, new)))
    assert (new in as_text(found), new in as_text(found, with_all=True)) == (False, True)
    assert f"@sha256:{new[:12]}…" in as_text(found)


def test_who_may_not_see_an_object_is_shown_nothing_of_its_containers() -> None:
    found = report_of(CASE)
    (ref,) = {one.ref for one in container_changes(found.plan)}
    page = as_html(found, title="x", hidden=[ref])
    assert "Workloads: 1 changed" in as_html(found, title="x")
    assert "Workloads:" not in page
