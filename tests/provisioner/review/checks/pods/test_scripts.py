"""Scripts of ConfigMaps that containers run."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.review.checks.pods import commands
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, findings_of, named, planned

DANGEROUS, NOTABLE = Severity.DANGEROUS, Severity.NOTABLE


def running(*, kind: str = "Deployment", volume: dict[str, Any] | None = None, **container: Any) -> dict[str, Any]:
    mounts = container.pop("mounts", [{"name": "s", "mountPath": "/scripts"}])
    spec = {
        "containers": [{"name": "main", "volumeMounts": mounts, **container}],
        "volumes": [{"name": "s", **(volume or {"configMap": {"name": "settings"}})}],
    }
    template = {"template": {"spec": spec}}
    held = {"jobTemplate": {"spec": template}} if kind == "CronJob" else template
    return an_object("batch/v1" if kind == "CronJob" else "apps/v1", kind, "web", "shop", spec=held)


def found_by(old: list[dict[str, Any]], new: list[dict[str, Any]], **rest: Any) -> list[Finding]:
    before = {(one["kind"], one["metadata"]["name"]): one for one in old}
    actions = [planned(one, Action.UPDATE, before=before.get((one["kind"], one["metadata"]["name"]))) for one in new]
    return named(findings_of(commands.SCRIPTS_CHECK, *actions, previous=content_with(*old), **rest), "POD-28")


ITEMS = {"items": [{"key": "run", "path": "in/run"}]}


@pytest.mark.parametrize(
    ("pod", "key", "is_told"),
    [
        pytest.param(running(), "run.sh", True, id="by its name"),
        pytest.param(running(), "run", False, id="a file that nobody runs"),
        pytest.param(running(command=["sh", "-c", "/scripts/run"]), "run", False, id="as a word of a line"),
        pytest.param(running(command=["sh", "-c"], args=["exec bash /scripts/run"]), "run", True, id="in a line"),
        pytest.param(running(command=["/bin/bash", "/scripts/run"]), "run", True, id="by an interpreter"),
        pytest.param(running(command=["/scripts/run"]), "run", True, id="as the command"),
        pytest.param(running(command=["app", "--config", "/scripts/run"]), "run", False, id="as configuration"),
        pytest.param(
            running(mounts=[{"name": "s", "mountPath": "/docker-entrypoint-initdb.d/"}]), "a.sql", True, id="a folder"
        ),
        pytest.param(running(mounts=[{"name": "s", "mountPath": "/x", "subPath": "a.sh"}]), "a.sh", False, id="as x"),
        pytest.param(
            running(mounts=[{"name": "s", "mountPath": "/x.sh", "subPath": "run"}]), "run", True, id="as x.sh"
        ),
        pytest.param(
            running(volume={"configMap": {"name": "settings", **ITEMS}}, command=["/scripts/in/run"]),
            "run",
            True,
            id="by another name",
        ),
        pytest.param(
            running(volume={"projected": {"sources": [{"configMap": {"name": "settings"}}]}}),
            "a.sh",
            True,
            id="projected",
        ),
        pytest.param(running(volume={"emptyDir": {}}), "a.sh", False, id="that is not mounted"),
    ],
)
def test_a_script_that_a_container_runs_is_told_when_it_changes(
    pod: dict[str, Any], key: str, *, is_told: bool
) -> None:
    old, new = (config_map(**{key: text}) for text in ("go\n", "go\nstop\n"))
    found = found_by([old, pod], [new, pod])
    assert [(one.severity, one.evidence["lines"]) for one in found] == ([(NOTABLE, ["+ stop"])] if is_told else [])


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("rm -rf /data/*", DANGEROUS),
        ("psql -c 'DROP TABLE a'", DANGEROUS),
        ("find /data -mtime +3 -delete", DANGEROUS),
        ("kubectl -n shop delete pvc --all", DANGEROUS),
        ("dd if=/dev/zero of=/data/x", DANGEROUS),
        ("rsync -a --delete /a /b", DANGEROUS),
        ("echo alarm", NOTABLE),
        ("chmod 700 /data", NOTABLE),
        ("# rm -rf /data", None),
        ("", None),
    ],
)
def test_a_line_that_deletes_is_dangerous_and_stands_first(line: str, severity: Severity | None) -> None:
    shebang, more = "#!/bin/sh\n", "".join(f"echo {at}\n" for at in range(20))
    sides = [config_map(run=f"{shebang}{text}") for text in ("go\n", f"go\n{more if severity else ''}{line}\n")]
    found = found_by([sides[0], running()], [sides[1], running()])
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert severity is not DANGEROUS or found[0].evidence["lines"][0] == f"+ {line}"
    assert severity is not DANGEROUS or f"`+ {line}`" in found[0].message
    assert not [one for one in found_by([sides[1], running()], [sides[0], running()]) if one.severity is DANGEROUS]


@pytest.mark.parametrize(
    ("old", "new", "restart"),
    [
        (running(), running(), "next-restart"),
        (running(kind="CronJob"), running(kind="CronJob"), "next-run"),
        (running(), running(image="b"), None),
    ],
)
def test_when_the_new_script_runs_is_told(old: dict[str, Any], new: dict[str, Any], restart: str | None) -> None:
    (found,) = found_by([config_map(**{"a.sh": "go"}), old], [config_map(**{"a.sh": "run"}), new])
    assert found.evidence.get("restart") == restart


def test_a_config_map_with_a_hash_in_its_name_is_compared_by_where_its_files_stand() -> None:
    pods = [running(volume={"configMap": {"name": name}}) for name in ("s-1", "s-2")]
    maps = [config_map(name, **{"a.sh": text}) for name, text in (("s-1", "go"), ("s-2", "rm -r /data"))]
    given = [maps[0], pods[0]], [maps[1], pods[1]]
    assert [one.severity for one in found_by(*given)] == [DANGEROUS]
    assert not found_by(*given, hides_old_names=True)


def test_what_looks_like_a_credential_is_hidden() -> None:
    (found,) = found_by(
        [config_map(**{"a.sh": "go"}), running()], [config_map(**{"a.sh": "PASSWORD=hunter2 go"}), running()]
    )
    assert "hunter2" not in str(found)
