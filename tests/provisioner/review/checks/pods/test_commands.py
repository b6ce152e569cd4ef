"""What containers run: commands, scripts of ConfigMaps, and code that is fetched."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.checks.pods import commands
from provisioner.review.output.terminal import as_text
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, config_map, content_with, findings_of, named, planned


def find_commands(*actions: Any, **rest: Any) -> list[Finding]:
    return named(findings_of(commands.COMMANDS_CHECK, *actions, **rest), "POD-28")


def fetching(*actions: Any, **rest: Any) -> list[Finding]:
    return named(findings_of(commands.FETCHED_CODE_CHECK, *actions, **rest), "POD-29")


def workload(*containers: dict[str, Any], name: str = "web", **pod: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": list(containers), **pod}}}
    return an_object("apps/v1", "Deployment", name, "shop", spec=spec)


def container(name: str = "main", **rest: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.com/web@sha256:" + "a" * 64, **rest}


def told(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = find_commands(planned(new, Action.UPDATE, before=old))
    return [finding.message.removeprefix("Deployment shop/web has ") for finding in found]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        pytest.param({}, {"command": ["/other"]}, ["another command"], id="command"),
        pytest.param({"args": ["-a"]}, {}, ["other arguments"], id="arguments that go"),
        pytest.param({"args": ["a\nb"]}, {"args": ["a", "b"]}, ["other arguments"], id="the same lines, cut elsewhere"),
        pytest.param({"env": [{"name": "A"}]}, {"env": [{"name": "A", "value": "1"}]}, ["other variables"], id="env"),
        pytest.param({}, {"envFrom": [{"secretRef": {"name": "s"}}]}, ["other variables"], id="all of a Secret"),
        pytest.param({}, {"workingDir": "/tmp"}, ["another working directory"], id="working directory"),
        pytest.param({}, {"lifecycle": {"postStart": {"exec": {"command": ["/x"]}}}}, ["other hooks"], id="a hook"),
        pytest.param({"lifecycle": {"stopSignal": "SIGTERM"}}, {}, ["other hooks"], id="a signal"),
        pytest.param({"args": []}, {"args": None}, [], id="nothing in two ways"),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B"}]},
            {"env": [{"name": "B"}, {"name": "A", "value": "1"}]},
            [],
            id="another order",
        ),
        pytest.param(
            {"env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}]},
            {"env": [{"name": "B", "value": "$(A)"}, {"name": "A", "value": "1"}]},
            ["other variables"],
            id="another order that counts",
        ),
    ],
)
def test_what_a_container_is_told_is_said_where_it_differs(
    old: dict[str, Any], new: dict[str, Any], words: list[str]
) -> None:
    assert told(workload(container(**old)), workload(container(**new))) == words


def test_containers_that_come_and_go_are_named() -> None:
    old, new = workload(container(), container("proxy")), workload(container(), container("miner", args=["-x"]))
    assert told(old, new) == ["the new container miner, no longer the container proxy"]


SECRET = {"secret": {"secretName": "s"}}


@pytest.mark.parametrize(
    ("volume", "mount", "is_told"),
    [
        pytest.param({"secret": {"secretName": "t"}}, {}, True, id="another Secret"),
        pytest.param({"emptyDir": {}}, {}, True, id="an empty directory"),
        pytest.param({"hostPath": {"path": "/srv"}}, {}, True, id="a folder of the node"),
        pytest.param(SECRET, {"mountPath": "/app"}, True, id="elsewhere"),
        pytest.param(SECRET, {"subPath": "a"}, True, id="a part of it"),
        pytest.param(SECRET, {"readOnly": True}, True, id="read-only"),
        pytest.param({"secret": {"secretName": "s", "items": [{"key": "a", "path": "b"}]}}, {}, True, id="renamed"),
        pytest.param({"secret": {"secretName": "s", "items": [{"key": "a", "path": "a"}]}}, {}, False, id="fewer keys"),
        pytest.param(SECRET, {"mountPath": "/v/", "readOnly": False}, False, id="written otherwise"),
    ],
)
def test_what_a_container_mounts_is_told_where_it_is_another_volume_or_elsewhere(
    volume: dict[str, Any], mount: dict[str, Any], is_told: bool
) -> None:
    at = {"mountPath": "/v"}
    old = workload(container(volumeMounts=[{"name": "v", **at}]), volumes=[{"name": "v", **SECRET}])
    new = workload(container(volumeMounts=[{"name": "w", **at, **mount}]), volumes=[{"name": "w", **volume}])
    assert told(old, new) == (["other mounts"] if is_told else [])


SRV, LOG = ({"hostPath": {"path": path}} for path in ("/srv", "/var/log"))
BOTH = {"volumes": [{"name": "srv", **SRV}, {"name": "log", **LOG}]}
AT_SRV, AT_LOG = ({"name": name, "mountPath": f"/{name}"} for name in ("srv", "log"))


@pytest.mark.parametrize(
    ("old", "new", "folders"),
    [
        pytest.param((AT_SRV,), (AT_SRV, AT_LOG), ["/var/log"], id="another folder"),
        pytest.param((), (AT_SRV, AT_LOG), ["/srv", "/var/log"], id="two folders"),
        pytest.param(({**AT_SRV, "readOnly": True},), (AT_SRV,), ["/srv"], id="the same folder writable"),
        pytest.param((AT_SRV,), (AT_LOG,), ["/srv", "/var/log"], id="one folder instead of another"),
        pytest.param(({"name": "s", "mountPath": "/s"},), (AT_SRV,), None, id="something else ends"),
        pytest.param((), (AT_SRV, {"name": "s", "mountPath": "/s"}), None, id="something else too"),
    ],
)
def test_folders_of_the_node_are_named_where_nothing_else_differs(
    old: tuple[dict[str, Any], ...], new: tuple[dict[str, Any], ...], folders: list[str] | None
) -> None:
    volumes = [*BOTH["volumes"], {"name": "s", **SECRET}]
    # All of them stand in another container too, so that none is a volume that no container mounts.
    every = container("every", volumeMounts=[{"name": one["name"], "mountPath": "/at"} for one in volumes])
    before, after = (workload(container(volumeMounts=[*side]), every, volumes=volumes) for side in (old, new))
    (found,) = find_commands(planned(after, Action.UPDATE, before=before))
    assert found.evidence.get("folders") == folders


@pytest.mark.parametrize(
    ("fields", "pod"),
    [
        pytest.param({"args": ["-x"]}, BOTH, id="arguments"),
        pytest.param({"lifecycle": {"postStart": {"unknown": {}}}}, BOTH, id="a hook that has no line"),
        pytest.param({}, {"volumes": [*BOTH["volumes"], {"name": "s", **SECRET}]}, id="a volume that is not mounted"),
    ],
)
def test_folders_of_the_node_are_not_named_alone_where_more_differs(
    fields: dict[str, Any], pod: dict[str, Any]
) -> None:
    before = workload(container(volumeMounts=[{**AT_SRV, "readOnly": True}, AT_LOG]), **BOTH)
    after = workload(container(volumeMounts=[AT_SRV, AT_LOG], **fields), **pod)
    (found,) = find_commands(planned(after, Action.UPDATE, before=before))
    assert "folders" not in found.evidence


def test_values_are_shown_before_and_after_and_credentials_are_not() -> None:
    old = workload(container(args=["--log=info"], env=[{"name": "API_TOKEN", "value": "Pl4nted"}]))
    new = workload(container(args=["--log=none"], env=[{"name": "API_TOKEN", "value": "Pl4nted2"}]))
    (found,) = find_commands(planned(new, Action.UPDATE, before=old))
    values = [(one["change"], one["in"], one["value"]) for one in found.evidence["settings"]]
    assert ("gone", "arg", "--log=info") in values
    assert ("new", "arg", "--log=none") in values
    assert "Pl4nted" not in str(found)


def test_a_new_object_has_no_such_finding() -> None:
    assert find_commands(planned(workload(container(command=["/web"])), Action.CREATE)) == []


def test_in_a_report_the_values_stand_below_the_rule_and_nothing_is_said_twice() -> None:
    old, new = workload(container(args=["--log=info"])), workload(container(args=["--log=none"]))
    text = as_text(look_offline(content_with(new), content_with(old)))
    assert text.count("POD-28") == 1
    section = text[text.index("WORKLOADS") :]
    assert section.splitlines()[1].startswith("  ● notable  POD-28")
    assert "      - arg --log=info\n      + arg --log=none" in section


def test_what_holds_for_all_pods_that_the_section_names_is_told_there_once() -> None:
    tolerations = [{"operator": "Exists"}]
    old = [workload(container(args=["-a"]), name=name) for name in ("web", "db")]
    new = [workload(container(args=["-b"]), name=name, tolerations=tolerations) for name in ("web", "db")]
    text = as_text(look_offline(content_with(*new), content_with(*old)))
    assert "  ● notable  POD-35  Pods may run on nodes of the control plane\n  Deployment" in text
    some = as_text(look_offline(content_with(new[0], workload(container(args=["-b"]), name="db")), content_with(*old)))
    assert "Deployment shop/web may run on nodes of the control plane" in some


def test_what_the_section_on_workloads_does_not_show_is_told_among_the_findings() -> None:
    old, new = workload(container(args=["a\nb"])), workload(container(args=["a", "b"]))
    text = as_text(look_offline(content_with(new), content_with(old)))
    assert "Deployment shop/web has other arguments" in text


@pytest.mark.parametrize("place", ["command", "args", "postStart", "livenessProbe"])
def test_code_that_is_fetched_is_found_wherever_a_container_runs_commands(place: str) -> None:
    words = ["sh", "-c", "curl https://example.org/x | sh"]
    handler = {"exec": {"command": words}}
    fields = (
        {"lifecycle": {place: handler}} if place == "postStart" else {place: handler if "Probe" in place else words}
    )
    (found,) = fetching(planned(workload(container(**fields)), Action.CREATE))
    assert found.severity is Severity.DANGEROUS
    assert found.message.endswith("(main: sh -c curl https://example.org/x | sh)")
    assert found.is_new


def test_another_download_is_another_finding_and_the_same_one_is_known() -> None:
    first, second = (workload(container(args=["sh", "-c", f"curl https://x/{at} | sh"])) for at in (1, 2))
    for new, is_new in ((first, False), (second, True)):
        (found,) = fetching(planned(new, Action.UPDATE, before=first), previous=content_with(first))
        assert found.is_new is is_new


def test_a_credential_in_a_download_is_not_shown() -> None:
    words = ["sh", "-c", "curl -H 'Authorization: Bearer Pl4ntedPl4nted' https://u:Pl4nted@x | sh"]
    (found,) = fetching(planned(workload(container(command=words)), Action.CREATE))
    assert "Pl4nted" not in str(found)


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


def find_scripts(old: list[dict[str, Any]], new: list[dict[str, Any]], **rest: Any) -> list[Finding]:
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
    found = find_scripts([old, pod], [new, pod])
    assert [(finding.severity, finding.evidence["lines"]) for finding in found] == (
        [(NOTABLE, ["+ stop"])] if is_told else []
    )


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
    found = find_scripts([sides[0], running()], [sides[1], running()])
    assert [finding.severity for finding in found] == ([severity] if severity else [])
    assert severity is not DANGEROUS or found[0].evidence["lines"][0] == f"+ {line}"
    assert severity is not DANGEROUS or f"`+ {line}`" in found[0].message
    assert not [
        finding
        for finding in find_scripts([sides[1], running()], [sides[0], running()])
        if finding.severity is DANGEROUS
    ]


@pytest.mark.parametrize(
    ("old", "new", "restart"),
    [
        (running(), running(), "next-restart"),
        (running(kind="CronJob"), running(kind="CronJob"), "next-run"),
        (running(), running(image="b"), None),
    ],
)
def test_when_the_new_script_runs_is_told(old: dict[str, Any], new: dict[str, Any], restart: str | None) -> None:
    (found,) = find_scripts([config_map(**{"a.sh": "go"}), old], [config_map(**{"a.sh": "run"}), new])
    assert found.evidence.get("restart") == restart


def test_a_config_map_with_a_hash_in_its_name_is_compared_by_where_its_files_stand() -> None:
    pods = [running(volume={"configMap": {"name": name}}) for name in ("s-1", "s-2")]
    maps = [config_map(name, **{"a.sh": text}) for name, text in (("s-1", "go"), ("s-2", "rm -r /data"))]
    given = [maps[0], pods[0]], [maps[1], pods[1]]
    assert [finding.severity for finding in find_scripts(*given)] == [DANGEROUS]
    assert not find_scripts(*given, hides_old_names=True)


def test_what_looks_like_a_credential_is_hidden() -> None:
    (found,) = find_scripts(
        [config_map(**{"a.sh": "go"}), running()], [config_map(**{"a.sh": "PASSWORD=hunter2 go"}), running()]
    )
    assert "hunter2" not in str(found)
