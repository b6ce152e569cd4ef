"""`list`, `show`, `history`, `preview` and decisions beside a cluster; and what is said where it says no."""

from __future__ import annotations

import io
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from provisioner.cli.kubectl import complete, main, requests
from provisioner.cli.kubectl.decisions import _create_review
from provisioner.cluster.client.api import ClusterClient
from provisioner.values import ObjectRef
from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import DIGEST, GROUP, TOKEN, UID, Recorder, wish
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import RUKPAKS_OWN, kubeconfig
from tests.support.kubernetes.live import until_served
from tests.support.provisioner.contents import WEB

OTHER_DIGEST = "sha256:" + "b" * 64


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_programs_get_objects_and_no_colours(run: Run, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    read = {"json": json.loads, "yaml": yaml.safe_load}[output]
    for command in (("list",), ("history", "web"), ("show", "web")):
        assert run(*command, "-o", output, "--color", "always") == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        found = read(text)
        (request,) = found["items"] if found["kind"] == "List" else [found]
        assert (request["kind"], request["status"]["subjectDigest"]) == ("BundleDeploymentRequest", DIGEST)


def test_options_about_the_cluster_may_stand_before_the_command(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(kubeconfig(own_sandbox, tmp_path))
    assert main(["--kubeconfig", path, "--color=never", "list", "-o", "name"]) == 0
    assert capsys.readouterr().out == "bundledeploymentrequest.core.rukpak.io/web-2\n"
    assert run("show", "bdr/web-2") == 0
    assert "Request:     web-2\n" in capsys.readouterr().out


def test_who_is_impersonated_is_asked_about(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--as", "mallory") == 2
    assert 'User "mallory" cannot list' in capsys.readouterr().err
    assert run("list", "--as", "zoe", "--as-group", "system:masters") == 0
    assert run("list", "--as-group", "system:masters") == 2
    assert "--as-group goes with --as" in capsys.readouterr().err


def test_lists_and_requests_say_why_as_the_deployment_does(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    ready = {"type": "Ready", "status": "False", "reason": "WaitingForApproval", "message": "waits for platform"}
    status = {"activeRequest": "web-2", "conditions": [{**ready, "lastTransitionTime": "2026-11-24T00:00:00Z"}]}
    about = {"apiVersion": GROUP, "kind": "BundleDeployment", "metadata": {"name": "web"}, "status": status}
    api.apply(about, field_manager="test", subresource="status", force=True)
    bundles = [{"catalog": "port", "whyCatalog": "priority 10, before community (priority 0)"}]
    made = {"apiVersion": GROUP, "kind": "BundleDeploymentRequest", "metadata": {"name": "web-2"}}
    api.apply(made | {"status": {"bundles": bundles}}, field_manager="test", subresource="status", force=True)
    assert run("list", "-o", "wide") == 0
    assert "waits for platform" in capsys.readouterr().out
    assert run("show", "web") == 0
    shown = capsys.readouterr().out
    assert "Why:         waits for platform\n" in shown
    assert "Taken from:  port, priority 10, before community (priority 0)\n" in shown


def test_a_revision_that_never_was_is_not_asked_for(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    assert run("rollback", "web", "1") == 2
    assert "web has no revision 1 to go back to: nothing was ever applied" in capsys.readouterr().err
    applied = {"type": "Applied", "status": "True", "reason": "Applied", "message": "revision 3"}
    set_status(api, state="applied", conditions=[{**applied, "lastTransitionTime": "2026-11-24T00:00:00Z"}])
    assert run("rollback", "web", "4") == 2
    assert "its revisions are 3" in capsys.readouterr().err
    assert run("rollback", "web", "3") == 0
    live = api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", "web"))
    assert live is not None
    assert live["metadata"]["annotations"]["core.rukpak.io/rollback-to"].startswith("3/")


@pytest.mark.parametrize("target", [["db/password"], ["db"], ["*"], []])
def test_a_rotation_is_asked_for_after_it_was_said_what_it_costs(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, target: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rotate", "web", *target) == 2
    assert "until they are restarted" in (said := capsys.readouterr().err)
    assert "pass --yes" in said
    assert run("rotate", "web", *target, "--yes") == 0
    assert "needs approval" in capsys.readouterr().out
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    live = api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeployment", "", "web"))
    assert live is not None
    asked = live["metadata"]["annotations"]["core.rukpak.io/rotate"]
    assert asked.partition("@")[0] == (target or ["*"])[0]
    assert run("rotate", "web", "db@1") == run("rotate", "web", "a/b/c") == 2
    assert "expected SECRET, SECRET/KEY or *" in capsys.readouterr().err


def test_the_definition_of_rukpak_is_no_installation_of_pratique(
    own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kubeconfig(own_sandbox, tmp_path)
    api = ClusterClient.connect(path.read_text(), trusted=True)
    api.apply(RUKPAKS_OWN, field_manager="test")
    until_served(api, "core.rukpak.io", "v1alpha1", "BundleDeployment")
    for command in (("list",), ("show", "web"), ("pause", "web")):
        assert main([*command, "--kubeconfig", str(path)]) == 2
        assert "which is RukPak's own definition" in capsys.readouterr().err


def test_tables_have_colours_where_they_are_wanted(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("list", "--color", "always") == 0
    assert "\x1b[33mdangerous" in capsys.readouterr().out
    assert run("list") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_watch_shows_what_changed_and_nothing_twice(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    looks = iter(["nothing", "approve", "nothing", "stop"])

    def sleep(_: float) -> None:
        match next(looks):
            case "approve":
                set_status(api, state="approved")
            case "stop":
                raise KeyboardInterrupt

    # Of this module alone: other threads of the tests sleep, too.
    monkeypatch.setattr(requests, "time", SimpleNamespace(sleep=sleep))
    assert run("list", "--watch") == 130
    assert [" ".join(line.split()[:3]) for line in capsys.readouterr().out.splitlines()] == [
        "REQUEST DEPLOYMENT STATE",
        "web-2 web in",
        "",
        "REQUEST DEPLOYMENT STATE",
        "web-2 web approved",
    ]


def set_status(api: ClusterClient, **status: Any) -> None:
    about = {"apiVersion": GROUP, "kind": "BundleDeploymentRequest", "metadata": {"name": "web-2"}}
    told = {"state": "in_review", "round": 1, "subjectDigest": DIGEST, **status}
    api.apply({**about, "status": told}, field_manager="test", subresource="status", force=True)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("show", "wbe-2"), "no request and no BundleDeployment wbe-2: did you mean web-2"),
        (("history", "webb"), "no BundleDeployment webb: did you mean web?"),
        (("approve", "nothing-like-it", "--yes"), "`kubectl get bundledeployments` lists what there is"),
    ],
)
def test_a_name_that_does_not_exist_gets_near_ones(
    run: Run, command: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*command) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"subjectDigest": OTHER_DIGEST, "round": 2}, f"now is round 2 with {OTHER_DIGEST}"),
        ({"state": "denied"}, "request web-2 is denied"),
    ],
)
def test_S23_a_request_that_changes_while_somebody_reads_is_not_decided(
    run: Run,
    own_sandbox: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    words: str,
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)

    def agree(*_: Any) -> bool:
        set_status(api, **changes)
        return True

    monkeypatch.setattr("provisioner.cli.kubectl.decisions.is_agreed", agree)
    assert run("approve", "web", "--yes", "--timeout", "0") == 1
    assert words in capsys.readouterr().err
    reviews = api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeploymentReview")
    assert reviews is not None
    assert [*api.list(reviews)] == []


def test_an_approval_that_cannot_count_is_not_created(
    run: Run, service: Recorder, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    why = "its worst new finding is breaking, and the limit here is notable"
    set_status(api, reportSummary={"worst": "breaking", "headline": [], "onlyInBrowser": why})
    assert run("approve", "web", "--yes", "--timeout", "0") == 2
    words = capsys.readouterr().err
    assert f"nothing was created: request web-2 cannot be approved without seeing its report, because {why}" in words
    assert f"notable: approve it at {service.url}/requests/some-uid" in words
    as_requester = ("--as", "rita", "--as-group", "system:masters")
    assert run("approve", "web", "--yes", "--timeout", "0", *as_requester) == 2
    assert "notable: you requested it, so someone else must approve it at" in capsys.readouterr().err
    reviews = api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeploymentReview")
    assert reviews is not None
    assert [*api.list(reviews)] == []
    assert run("deny", "web", "--yes", "--reason", "no", "--timeout", "0") == 2
    assert len([*api.list(reviews)]) == 1


def test_an_approval_says_when_the_request_is_applied(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    reviews = api.resource_of("core.rukpak.io", "v1alpha2", "BundleDeploymentReview")
    assert reviews is not None
    assert run("approve", "web", "--yes", "--timeout", "0", "--apply-at", "at three") == 2
    assert "--apply-at is 'at three'; expected a time such as" in capsys.readouterr().err
    assert [*api.list(reviews)] == []
    assert run("approve", "web", "--yes", "--timeout", "0", "--apply-at", "2026-12-05T03:00+01:00") == 2
    (review,) = api.list(reviews)
    assert review["spec"]["applyAt"] == "2026-12-05T02:00:00Z"


LEFT = ["delete ConfigMap shop/old", "adopt Service shop/web"]


@pytest.mark.parametrize(
    ("typed", "status", "acknowledged", "words"),
    [
        (("y", "y"), 0, [[], LEFT], "  delete ConfigMap shop/old\n  adopt Service shop/web\nDo you want to accept it"),
        (("y", "n"), 2, [[]], "nothing was approved"),
        ((), 1, [[]], "add: --acknowledge 'delete ConfigMap shop/old' --acknowledge 'adopt Service shop/web'"),
    ],
    ids=["accepted", "not accepted", "nobody to ask"],
)
def test_what_an_approval_left_out_is_shown_and_asked_about(
    run: Run,
    own_sandbox: Endpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    typed: tuple[str, ...],
    status: int,
    acknowledged: list[list[str]],
    words: str,
) -> None:
    api = ClusterClient.connect(kubeconfig(own_sandbox, tmp_path).read_text(), trusted=True)
    given: list[list[str]] = []

    def create(*what: Any) -> str:
        name = _create_review(*what)
        live = api.get(ObjectRef("core.rukpak.io", "v1alpha2", "BundleDeploymentReview", "", name))
        assert live is not None
        given.append(live["spec"]["acknowledges"])
        is_whole = given[-1] == LEFT
        about = {"reason": "Counted" if is_whole else "Unacknowledged", "status": "True" if is_whole else "False"}
        condition = {"type": "Counted", "message": "", "lastTransitionTime": "2026-11-24T00:00:00Z", **about}
        told = {"conditions": [condition], **({} if is_whole else {"unacknowledged": LEFT})}
        review = {"apiVersion": GROUP, "kind": "BundleDeploymentReview", "metadata": {"name": name}, "status": told}
        api.apply(review, field_manager="test", subresource="status", force=True)
        return name

    monkeypatch.setattr("provisioner.cli.kubectl.decisions._create_review", create)
    for module in ("decisions", "terminal"):
        monkeypatch.setattr(f"provisioner.cli.kubectl.{module}.is_conversation", lambda: bool(typed))
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{one}\n" for one in typed)))
    assert run("approve", "web", *([] if typed else ["--yes"])) == status
    assert given == acknowledged
    assert words in capsys.readouterr().err


def test_a_cluster_without_pratique_is_said_so(
    own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(kubeconfig(own_sandbox, tmp_path))
    for command in (("list",), ("show", "web"), ("pause", "web")):
        assert main([*command, "--kubeconfig", path]) == 2
        shown = capsys.readouterr().err
        assert "Pratique is not installed there" in shown
        assert "cluster_manifests" in shown


@pytest.mark.parametrize(
    ("user", "changed", "words"),
    [
        ("admin", {"token": "wrong"}, "log in to the cluster again"),
        ("mallory", {}, "ClusterRole pratique-reader"),
        ("admin", {"server": "https://127.0.0.1:1"}, "is the cluster up"),
    ],
    ids=["401", "403", "unreachable"],
)
def test_what_the_api_server_refuses_comes_with_what_to_do(
    own_sandbox: Endpoint,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    user: str,
    changed: dict[str, str],
    words: str,
) -> None:
    wish(own_sandbox, tmp_path)
    path = kubeconfig(own_sandbox, tmp_path / "theirs", user, **changed)
    assert main(["list", "--kubeconfig", str(path)]) == 2
    assert words in capsys.readouterr().err


def test_a_kubeconfig_that_is_not_there_is_said_whatever_kubectl_says(
    monkeypatch: pytest.MonkeyPatch, kubectl: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(kubectl.parent))
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    assert main(["list"]) == 2
    assert "/nowhere/config: there is no such kubeconfig: name one with --kubeconfig" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "words"),
    [("x: [", "kubeconfig"), ("", "kubeconfig"), ("apiVersion: v1\nkind: Config\n", "kubeconfig")],
    ids=["no YAML", "empty", "nothing in it"],
)
def test_a_broken_kubeconfig_comes_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, words: str
) -> None:
    (tmp_path / "config").mkdir()
    path = tmp_path / "config" / "broken"
    path.write_text(text)
    assert main(["list", "--kubeconfig", str(path)]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert "kubectl config" in shown


def test_a_preview_is_made_with_the_callers_own_rights(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle"
    bundle.mkdir()
    (bundle / "map.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n")
    assert run("preview", str(bundle), "-o", "json", "--fail-on", "breaking") == 0
    report = json.loads(capsys.readouterr().out)
    (action,) = report["plan"]["actions"]
    assert (action["action"], action["isProved"]) == ("create", True)
    path = kubeconfig(own_sandbox, tmp_path / "theirs", "mallory")
    main(["preview", str(bundle), "--kubeconfig", str(path), "-o", "json"])
    report = json.loads(capsys.readouterr().out)
    (action,) = report["plan"]["actions"]
    assert 'User "mallory" cannot' in action["problem"] + action["serverWords"]


def test_a_preview_says_what_a_request_would(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whose account applies it is known of a request, and of a preview only where one is named."""
    (tmp_path / "web.yaml").write_text(json.dumps(WEB))

    def told_of_pratique(*words: str) -> list[str]:
        run("preview", str(tmp_path / "web.yaml"), "-o", "json", *words)
        found = json.loads(capsys.readouterr().out)["findings"]
        return [one["rule"] for one in found if one["rule"].startswith("OWN-PRATIQUE")]

    assert told_of_pratique() == told_of_pratique("--service-account", "installer") == []
    assert told_of_pratique("--service-account", "default") == ["OWN-PRATIQUE-05"]


def test_the_shell_is_told_the_names_of_this_cluster(
    run: Run, own_sandbox: Endpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(kubeconfig(own_sandbox, tmp_path))

    def proposed(*words: str) -> list[str]:
        complete([words[0], "--kubeconfig", path, *words[1:]])
        return capsys.readouterr().out.splitlines()

    assert proposed("approve", "") == ["web-2", ":4"]
    assert proposed("diff", "we") == ["web-2", ":4"]
    assert proposed("pause", "") == ["web", ":4"]
    assert proposed("pause", "web", "") == [":4"]
    assert proposed("show", "--output", "") == ["json", "text", "yaml", ":4"]
    assert "--watch" in proposed("list", "--")
    assert proposed("convert", "") == [":0"]


def test_a_report_names_the_findings_that_are_accepted(
    run: Run, service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    assert main(["login", "--service", service.url, "--token", "-"]) == 0
    given = {"by": "ada and ben", "reason": "until\nspring", "exception": "web", "until": "2027-03-31T00:00:00+00:00"}
    by_review = {"by": "cleo", "reason": "known", "exception": "", "until": None}
    address = f"/api/v1/requests/{UID}/report"
    shown = {**service.answers[address][1]}
    first = shown["findings"][0]
    shown["findings"] = [{**first, "accepted": [given, by_review]}, *shown["findings"][1:]]
    service.answers[address] = (200, shown)
    assert run("show", "web", "--report") == 0
    text = capsys.readouterr().out
    about = f"{first['rule']} {ObjectRef(**first['ref'])}" if first["ref"] else first["rule"]
    assert (
        "Accepted findings, which guards ignore:\n"
        f"  {about}: by exception web (ada and ben) until 2027-03-31T00:00:00+00:00: until\\nspring\n"
        f"  {about}: by cleo: known\n"
    ) in text
