"""`pratique review` of private images: credentials are taken from a docker configuration only where one is asked for."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import urllib3

from provisioner.cli import main
from tests.support.provisioner.dependencies import archive, chart_with, needs
from tests.support.servers.http import Asked, Authority, Listening, Reply
from tests.support.servers.registry import CREDENTIALS, Registry

PAIR = base64.b64encode(":".join(CREDENTIALS).encode()).decode()
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


@pytest.fixture
def host(registry_with_auth: Registry, authority: Authority, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The registry with a password, behind TLS that this test trusts."""
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    pool = urllib3.PoolManager(retries=False)

    def pass_on(asked: Asked) -> Reply:
        headers = {name: asked.headers[name] for name in ("accept", "authorization") if name in asked.headers}
        answer = pool.request(asked.method, f"{registry_with_auth.url}{asked.path}", headers=headers, redirect=False)
        kept = ("Content-Type", "Docker-Content-Digest", "WWW-Authenticate")
        return Reply(
            answer.data, answer.status, {name: answer.headers[name] for name in kept if name in answer.headers}
        )

    front = Listening(pass_on, authority)
    registry_with_auth.push("cli/app:v1", {"manifests/a.yaml": MANIFEST})
    yield front.host
    front.stop()


@pytest.fixture
def config(host: str, tmp_path: Path) -> Path:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {host: {"auth": PAIR}}}))
    return file


def review(capsys: pytest.CaptureFixture[str], host: str, *words: str) -> tuple[int, str]:
    status = main(["review", f"oci://{host}/cli/app:v1", *words])
    shown = "".join(capsys.readouterr())
    assert PAIR not in shown
    assert CREDENTIALS[1] not in shown
    return status, shown


def test_a_named_docker_configuration_opens_the_registry(
    capsys: pytest.CaptureFixture[str], host: str, config: Path
) -> None:
    assert review(capsys, host, "--docker-config", str(config))[0] == 0


def test_the_standard_one_opens_it_only_where_asked_for(
    capsys: pytest.CaptureFixture[str], host: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(config.parent))
    status, shown = review(capsys, host)
    assert (status, f"no credentials for {host} were given" in shown) == (2, True)
    assert review(capsys, host, "--docker-login")[0] == 0


def test_without_docker_config_the_home_folder_has_it(
    capsys: pytest.CaptureFixture[str], host: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.setenv("HOME", str(config.parent))
    assert review(capsys, host, "--docker-login")[0] == 2
    (config.parent / ".docker").mkdir()
    config.rename(config.parent / ".docker" / "config.json")
    assert review(capsys, host, "--docker-login")[0] == 0


WRONG = {
    "no JSON": ("auths", "no dockerconfigjson: expected an object with auths"),
    "a keeper of passwords": ('{"auths": {"HOST": {}}, "credsStore": "desktop"}', "has neither auth nor username"),
    "another registry": ('{"auths": {"r.example": {"auth": "AUTH"}}}', "no credentials for HOST were given"),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG)
def test_a_configuration_that_opens_nothing_is_said(
    capsys: pytest.CaptureFixture[str], host: str, config: Path, text: str, words: str
) -> None:
    config.write_text(text.replace("HOST", host).replace("AUTH", PAIR))
    status, shown = review(capsys, host, "--docker-config", str(config))
    assert (status, words.replace("HOST", host) in shown) == (2, True), shown


def test_a_configuration_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str], host: str, config: Path) -> None:
    config.unlink()
    assert "No such file" in review(capsys, host, "--docker-config", str(config))[1]


def test_help_says_where_credentials_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["review", "--help"])
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("--docker-config FILE", "--docker-login", "DOCKER_CONFIG", "credHelpers"))


def test_a_chart_in_a_folder_gets_its_private_dependency_over_tls(
    capsys: pytest.CaptureFixture[str], host: str, config: Path, registry_with_auth: Registry, tmp_path: Path
) -> None:
    digest = registry_with_auth.push("cli/cache:1.0.0", {}, layers=[archive("cache")])
    for path, data in chart_with(needs("cache", f"oci://{host}/cli")).items():
        (tmp_path / "shop" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "shop" / path).write_bytes(data)
    words = ["review", str(tmp_path / "shop"), "--install-namespace", "shop", "-o", "json"]
    assert main(words) == 2
    assert "the chart's dependency cache 1.0.0: " in "".join(capsys.readouterr())
    main([*words, "--docker-config", str(config)])
    shown = capsys.readouterr().out
    assert f"oci://{host}/cli/cache:1.0.0 was fetched, as the chart depends on it; its digest is {digest}" in shown
    assert '"ConfigMap shop/cache"' in shown or '"name": "cache"' in shown
