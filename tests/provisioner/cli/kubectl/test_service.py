"""What goes to the service, and what never does."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl import complete, completion, main
from provisioner.cli.kubectl.service import Service, ServiceSilent, checked_url, service_url
from tests.provisioner.cli.kubectl.conftest import Run
from tests.provisioner.cli.kubectl.scene import TOKEN, UID, Recorder
from tests.support.kubernetes.endpoint import Endpoint
from tests.support.kubernetes.kubectl import kubeconfig


def log_in(service: Recorder, monkeypatch: pytest.MonkeyPatch, text: str = TOKEN) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{text}\n"))
    return main(["login", "--service", service.url, "--token", "-"])


def test_S35_the_credential_of_the_kubeconfig_never_goes_to_the_service(
    run: Run, service: Recorder, own_sandbox: Endpoint, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bundle.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    assert log_in(service, monkeypatch) == 0
    assert [run("show", "web"), run("show", "web", "--report"), run("diff", "web"), run("list")] == [0, 0, 1, 0]
    assert run("preview", str(tmp_path / "bundle.yaml"), "--fail-on", "never") == 0
    assert run("deny", "web", "--yes", "--timeout", "0") == 2
    assert main(["logout"]) == 0
    assert service.paths[-1] == "DELETE /api/v1/tokens/current"
    assert len(service.came) >= 8
    sent = service.everything()
    assert {headers.get("Authorization") for _, _, headers, _ in service.came} == {f"Bearer {TOKEN}"}
    for user, secret in own_sandbox.tokens.items():
        assert secret not in sent, user
    allowed = {"Host", "Accept", "Accept-Encoding", "User-Agent", "Authorization"}
    assert {name for _, _, headers, _ in service.came for name in headers} <= allowed


def test_S35_a_token_goes_to_no_service_where_nobody_logged_in(
    run: Run, service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", "web") == 0
    shown = capsys.readouterr().out
    assert "1 object to update." in shown
    assert f"the request names the service {service.url}, where you are not logged in" in shown
    # Whoever may edit the object may write an address of their own there.
    assert f"--service {service.url}" not in shown
    assert run("diff", "web") == 2
    assert service.came == []


def test_S35_what_is_no_token_of_the_service_is_not_sent_there(
    service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert log_in(service, monkeypatch, "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZGEifQ.c2lnbmVk") == 2
    assert "begins with prq_; nothing was sent" in capsys.readouterr().err
    assert service.came == []


def test_S35_a_token_follows_no_redirect(service: Recorder) -> None:
    service.answers["/api/v1/tokens/current"] = (302, None)
    with pytest.raises(ServiceSilent, match="follows no redirect"):
        Service(service.url, TOKEN).get("tokens/current")
    assert len(service.came) == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("http://pratique.example.com", "plain text"),
        ("pratique.example.com", "no address"),
        ("https://ada:secret@pratique.example.com", "does not belong there"),
        ("https://pratique.example.com/?a=b", "does not belong there"),
        ("ftp://pratique.example.com", "no address"),
        ("https://pratique.example.com:port", "no address"),
        ("https://pratique.example.com/\x1b[2J", "no address"),
    ],
)
def test_an_address_where_a_token_could_be_read_is_refused(text: str, words: str) -> None:
    with pytest.raises(Usage, match=words):
        checked_url(text)


def test_the_service_is_named_by_option_then_environment_then_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"metadata": {"annotations": {"core.rukpak.io/url": "https://c.example/p/requests/u-1"}}}
    nothing = argparse.Namespace(service="")
    assert service_url(nothing, named) == "https://c.example/p"
    assert (
        service_url(nothing, {"metadata": {"annotations": {"core.rukpak.io/url": "http://evil.example/requests/1"}}})
        == ""
    )
    assert service_url(nothing, {"metadata": {}}) == ""
    monkeypatch.setenv("PRATIQUE_SERVICE", "https://B.example/")
    assert service_url(nothing, named) == "https://b.example"
    assert service_url(argparse.Namespace(service="https://a.example"), named) == "https://a.example"


@pytest.mark.parametrize(
    ("status", "found", "words"),
    [
        (403, {"detail": "this token lacks the scope read"}, "lacks the scope read"),
        (500, b"<html>", "status 500"),
        (200, b"<html>", "not as Pratique does"),
    ],
)
def test_an_answer_that_is_none_is_said_in_words(service: Recorder, status: int, found: object, words: str) -> None:
    service.answers["/api/v1/requests"] = (status, found)
    with pytest.raises(ServiceSilent, match=words):
        Service(service.url, TOKEN).get("requests")


def test_a_service_that_is_not_there_is_said_in_words() -> None:
    with pytest.raises(ServiceSilent, match="does not answer"):
        Service("http://127.0.0.1:1").get("requests")


def test_the_shell_is_told_the_objects_of_a_request_by_whom_has_logged_in(
    own_sandbox: Endpoint,
    service: Recorder,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    run: Run,
) -> None:
    assert run("list") == 0
    where = ["--kubeconfig", str(kubeconfig(own_sandbox, tmp_path / "theirs"))]
    capsys.readouterr()

    def proposed(*words: str) -> list[str]:
        complete([*words[:1], *where, *words[1:]])
        shown = capsys.readouterr()
        assert shown.err == ""
        return shown.out.splitlines()

    assert proposed("diff", "web-2", "") == [":4"]
    log_in(service, monkeypatch)
    capsys.readouterr()
    assert proposed("diff", "web-2", "") == ["ConfigMap/shop/settings", ":4"]
    assert proposed("diff", "web-2", "ConfigMap/shop/settings", "") == [":4"]
    assert proposed("show", "web-2", "") == [":4"]


@pytest.mark.parametrize("name", ["$(touch x)", "`touch x`", "a b", "a\nb", "a\x1b[2J", "a;b", "ä"])
def test_S24_no_name_of_a_bundle_reaches_the_shell_of_who_completes_it(
    service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The scripts of older kubectl have bash expand what is proposed."""
    monkeypatch.setattr(completion, "objects_to_diff", lambda _: [f"ClusterRole/{name}", "ClusterRole/reader"])
    complete(["diff", "web-2", ""])
    assert capsys.readouterr().out == "ClusterRole/reader\n:4\n"


def test_a_login_that_no_longer_counts_says_how_to_get_another(
    run: Run, service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_in(service, monkeypatch)
    service.answers["/api/v1/requests"] = (401, {"detail": "the token is unknown, revoked or expired"})
    assert run("show", "web") == 0
    assert "revoked or expired. Log in again: kubectl pratique login" in capsys.readouterr().out
    assert run("show", "web", "--report") == 2


def test_a_large_report_is_put_together_of_its_parts(
    run: Run, service: Recorder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log_in(service, monkeypatch)
    path = f"/api/v1/requests/{UID}/report"
    _, whole = service.answers[path]
    action = whole["plan"]["actions"][0]
    short = {**whole["plan"], "actions": [{**action, "before": None, "after": None}]}
    parts = {"findings": {"total": 1}, "actions": {"total": 1}, "containers": {"total": 0}}
    service.answers[path] = (200, {**whole, "plan": short, "is_whole": False, "parts": parts})
    service.answers[f"{path}/objects/0"] = (200, action)
    assert run("diff", "web", "configmap/settings") == 1
    assert "-   colour: red\n+   colour: green" in capsys.readouterr().out
    assert f"GET {path}/objects/0" in service.paths
