"""`login` by a browser: what it opens, what it believes, and what it brings to the service."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
import threading
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from provisioner.cli.arguments import Usage
from provisioner.cli.kubectl import login, main
from provisioner.cli.kubectl.login import Login
from tests.provisioner.cli.kubectl.scene import TOKEN, Recorder
from tests.support.patience import scaled

ISSUER = {
    "name": "example",
    "title": "Example",
    "authorization_url": "https://issuer.example/authorize?a=b",
    "client_id": "kubectl-pratique",
    "scopes": ["openid", "groups"],
}


@pytest.fixture
def opened(service: Recorder, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A browser that brings back what the test puts into `back`; the wish that it was sent with is noted."""
    service.answers["/api/v1/sign-in/issuers"] = (200, [ISSUER])
    service.answers["/api/v1/sign-in/exchange"] = (201, {"token": TOKEN, "about": {}})
    wish: dict[str, str] = {}

    def open_(address: str) -> bool:
        wish.update({name: texts[0] for name, texts in parse_qs(urlsplit(address).query).items()}, address=address)
        threading.Thread(target=visit, args=(wish,), daemon=True).start()
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    return wish


def visit(wish: dict[str, str]) -> None:
    """First strangers, who know neither place nor state; then the issuer's answer."""
    for address in (
        f"{wish['redirect_uri']}?code=evil&state=guessed",
        f"{wish['redirect_uri']}x?code=evil&state={wish['state']}",
    ):
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(address, timeout=scaled(60))
    back = {"error": "access_denied"} if wish.get("refuse") else {"code": "the-code"}
    urllib.request.urlopen(
        f"{wish['redirect_uri']}?{urlencode({**back, 'state': wish['state']})}", timeout=scaled(60)
    ).read()


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def test_the_browsers_code_is_exchanged_with_the_secret_that_only_this_program_knew(
    opened: dict[str, str], service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["login", "--service", service.url]) == 0
    assert opened["address"].startswith("https://issuer.example/authorize?a=b&response_type=code&")
    assert (opened["code_challenge_method"], opened["client_id"], opened["scope"]) == (
        "S256",
        "kubectl-pratique",
        "openid groups",
    )
    sent = json.loads(next(body for _, path, _, body in service.came if path.endswith("/exchange")))
    assert (sent["code"], sent["issuer"], sent["service"]) == ("the-code", "example", service.url)
    assert sent["redirect_uri"] == opened["redirect_uri"]
    assert digest(sent["verifier"]) == opened["code_challenge"]
    assert digest(f"{service.url}\n{sent['verifier']}") == opened["nonce"]
    assert sent["verifier"] not in opened["address"]
    kept = login.read_login(service.url)
    assert kept is not None
    assert (kept.token, kept.ends_at) == (TOKEN, "2026-12-01T00:00:00Z")
    shown = capsys.readouterr()
    assert "as ada on cluster prod" in shown.out
    assert TOKEN not in shown.out + shown.err


def test_an_issuer_that_refuses_is_told_of(
    opened: dict[str, str], service: Recorder, capsys: pytest.CaptureFixture[str]
) -> None:
    opened["refuse"] = "yes"
    assert main(["login", "--service", service.url]) == 2
    assert "the issuer refused the sign-in: access_denied" in capsys.readouterr().err
    assert login.known_services() == []


@pytest.mark.parametrize(
    ("issuers", "words"),
    [
        ([], "has no issuer for the command line. Create a token with the scope read"),
        ([ISSUER, {**ISSUER, "name": "other"}], "choose one with --issuer: example, other"),
        ([{**ISSUER, "authorization_url": "http://issuer.example/"}], "without https: nothing was opened"),
    ],
)
def test_where_nobody_can_sign_in_it_says_what_to_do(
    opened: dict[str, str], service: Recorder, capsys: pytest.CaptureFixture[str], issuers: object, words: str
) -> None:
    service.answers["/api/v1/sign-in/issuers"] = (200, issuers)
    assert main(["login", "--service", service.url]) == 2
    assert words in capsys.readouterr().err
    assert opened == {}


UNREAD = "answers what this program cannot read"


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        ("sign-in/issuers", [1], UNREAD),
        ("sign-in/issuers", {"name": "x"}, UNREAD),
        ("sign-in/issuers", [{**ISSUER, "scopes": 3}], UNREAD),
        ("sign-in/issuers", [{**ISSUER, "authorization_url": "https://[::"}], UNREAD),
        ("sign-in/issuers", [{**ISSUER, "authorization_url": "file:///etc/passwd"}], "nothing was opened"),
        ("sign-in/issuers", b"[" * 100_000, "not as Pratique does"),
        ("sign-in/exchange", {"token": "prq_short\nX-Evil: 1"}, UNREAD),
        ("tokens/current", {"scopes": 5}, UNREAD),
        ("tokens/current", {"scopes": ["read"], "proofs": ["x"]}, UNREAD),
    ],
    ids=lambda it: it if isinstance(it, str) and "/" in it else "",
)
def test_S35_a_service_that_answers_anything_is_told_of_and_leaves_no_login(
    opened: dict[str, str], service: Recorder, capsys: pytest.CaptureFixture[str], path: str, answer: object, words: str
) -> None:
    service.answers[f"/api/v1/{path}"] = (200, answer)
    assert main(["login", "--service", service.url]) == 2
    assert words in capsys.readouterr().err
    assert login.known_services() == []
    if path == "sign-in/issuers":
        assert opened == {}


def test_S24_what_a_service_says_is_no_line_of_ours(service: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    said = "\x1b[2J\u202eno\nkubectl pratique: signed in"
    service.answers["/api/v1/sign-in/issuers"] = (403, {"detail": said})
    assert main(["login", "--service", service.url]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert r"refuses: \x1b[2J\u202eno\nkubectl pratique: signed in" in line


def test_nobody_who_comes_in_time_is_not_waited_for(service: Recorder, capsys: pytest.CaptureFixture[str]) -> None:
    service.answers["/api/v1/sign-in/issuers"] = (200, [ISSUER])
    assert main(["login", "--service", service.url, "--no-browser", "--timeout", "0.1"]) == 2
    shown = capsys.readouterr().err
    assert "https://issuer.example/authorize" in shown
    assert "nobody signed in within 0 s" in shown


def test_a_login_needs_a_service_and_a_token_with_the_scope(
    service: Recorder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["login"]) == 2
    assert "which service?" in capsys.readouterr().err
    assert main(["login", "--service", service.url, "--token", TOKEN]) == 2
    assert "--token takes only -" in capsys.readouterr().err
    assert main(["logout"]) == 2
    assert "there is no login to end" in capsys.readouterr().err
    assert service.came == []


ONE, OTHER = Login("https://a.example", "prq_one", "2026-12-01T00:00:00Z"), Login("https://b.example", "prq_other")


def test_S35_only_its_owner_may_read_a_token(own_folder: Path) -> None:
    path = login.keep_login(ONE)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(own_folder.stat().st_mode) == 0o700
    path.chmod(0o640)
    with pytest.raises(Usage, match="other users may read this token"):
        login.read_login(ONE.url)


def test_each_service_has_a_token_of_its_own(own_folder: Path) -> None:
    login.keep_login(ONE)
    login.keep_login(OTHER)
    assert (login.read_login(ONE.url), login.read_login("https://c.example")) == (ONE, None)
    assert login.known_services() == sorted(login.known_services(), key=lambda url: login._login_path(url).name)
    assert {*login.known_services()} == {ONE.url, OTHER.url}
    assert (login.forget_login(ONE.url), login.forget_login(ONE.url)) == (True, False)
    assert login.known_services() == [OTHER.url]
    assert [*own_folder.glob(".*")] == []


def test_a_file_that_was_put_there_for_another_service_is_refused(own_folder: Path) -> None:
    login.keep_login(OTHER).replace(login._login_path(ONE.url))
    with pytest.raises(Usage, match="not a login for https://a.example"):
        login.read_login(ONE.url)
    login._login_path(ONE.url).write_text("nonsense")
    with pytest.raises(Usage, match="remove it and log in again"):
        login.read_login(ONE.url)


def test_a_token_is_not_shown_by_accident() -> None:
    assert "prq_one" not in repr(ONE)
