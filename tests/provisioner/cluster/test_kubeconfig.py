"""Which kubeconfigs may register a cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from provisioner.cluster.api import Cluster
from provisioner.cluster.kubeconfig import MAX_KUBECONFIG_BYTES, read_kubeconfig
from provisioner.errors import BadSource, Unreachable


def kubeconfig(*, user: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://192.0.2.1:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user if user is not None else {"token": "t0ken"}}],
    }


REACHING = [
    pytest.param({"user": {"exec": {"command": "sh"}}}, "exec", id="a command"),
    pytest.param({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider", id="an auth provider"),
    pytest.param({"user": {"tokenFile": "/etc/passwd"}}, "tokenFile", id="a token file"),
    pytest.param({"user": {"client-certificate": "/a.crt"}}, "client-certificate", id="a certificate file"),
    pytest.param({"user": {"client-key": "/a.key"}}, "client-key", id="a key file"),
    pytest.param({"cluster": {"certificate-authority": "/ca.crt"}}, "certificate-authority", id="an authority file"),
    pytest.param({"cluster": {"proxy-url": "http://192.0.2.9"}}, "proxy-url", id="a proxy"),
]


@pytest.mark.parametrize(("parts", "word"), REACHING)
def test_S19_a_kubeconfig_that_reaches_outside_itself_is_refused(parts, word):
    with pytest.raises(BadSource, match=word):
        read_kubeconfig(kubeconfig(**parts))


@pytest.mark.parametrize(("parts", "word"), REACHING)
def test_S19_the_operator_may_trust_a_kubeconfig_that_reaches_outside(parts, word):
    assert read_kubeconfig(kubeconfig(**parts), trusted=True)["current-context"] == "main"


@pytest.mark.parametrize("given", ["nothing", "credentials"])
def test_a_command_that_gives_no_credentials_makes_nobody_of_us(tmp_path, given):
    answer = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t0ken"}}
    told = tmp_path / "told"
    told.write_text(json.dumps(answer) if given == "credentials" else "")
    run = {"command": "cat", "args": [str(told)], "apiVersion": answer["apiVersion"], "interactiveMode": "Never"}
    config = kubeconfig(user={"exec": run})
    if given == "credentials":
        assert Cluster.connect(config, trusted=True)
    else:
        with pytest.raises(Unreachable, match="gave no credentials"):
            Cluster.connect(config, trusted=True)


def test_an_empty_token_file_makes_nobody_of_us(tmp_path):
    (tmp_path / "token").write_text("")
    with pytest.raises(Unreachable, match="gave no credentials"):
        Cluster.connect(kubeconfig(user={"tokenFile": str(tmp_path / "token")}), trusted=True)


def test_S19_an_entry_outside_the_chosen_context_is_refused_as_well():
    config = kubeconfig()
    config["users"].append({"name": "other", "user": {"exec": {"command": "sh"}}})
    with pytest.raises(BadSource, match="'other' uses exec"):
        Cluster.connect(config)


def test_S19_a_command_of_a_refused_kubeconfig_is_never_run(tmp_path):
    witness = tmp_path / "ran"
    run = {"command": "touch", "args": [str(witness)], "apiVersion": "client.authentication.k8s.io/v1"}
    with pytest.raises(BadSource):
        Cluster.connect(yaml.safe_dump(kubeconfig(user={"exec": run})))
    assert not witness.exists()


def test_inline_credentials_are_accepted():
    read = read_kubeconfig(yaml.safe_dump(kubeconfig(cluster={"certificate-authority-data": "aGk="})))
    assert read["users"][0]["user"]["token"] == "t0ken"


def test_a_named_context_is_chosen():
    config = kubeconfig()
    config["contexts"].append({"name": "second", "context": {"cluster": "c", "user": "u"}})
    assert read_kubeconfig(config, context="second")["current-context"] == "second"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("a: [", "not YAML", id="no YAML"),
        pytest.param("- a", "expected a mapping", id="a list"),
        pytest.param("", "expected a mapping", id="nothing"),
        pytest.param("a" * (MAX_KUBECONFIG_BYTES + 1), "expected at most", id="too long"),
        pytest.param("!!python/object/apply:os.system ['true']", "not YAML", id="a Python tag"),
        pytest.param("contexts: 7", "to be a list", id="contexts that are no list"),
        pytest.param("contexts: [7]", "is no mapping", id="a context that is no mapping"),
        pytest.param("current-context: a", "no context 'a'", id="a context that is not there"),
    ],
)
def test_what_is_no_kubeconfig_is_refused_in_words(text, words):
    with pytest.raises(BadSource, match=words):
        read_kubeconfig(text)


def test_a_parse_error_never_quotes_the_file():
    with pytest.raises(BadSource) as caught:
        read_kubeconfig("token: hunter2\n  x: [")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "server",
    ["", "ftp://a", "file:///etc/passwd", "https://", "https://user:pw@a", "https://a?b=c", "unix:///run/x.sock"],
)
def test_a_server_that_is_no_plain_address_is_refused(server):
    with pytest.raises(BadSource, match="kubeconfig"):
        read_kubeconfig(kubeconfig(cluster={"server": server}))


@pytest.mark.parametrize("data", ["not base64!", "aGVsbG8="])
def test_certificate_data_that_cannot_be_used_is_refused_in_words(data):
    with pytest.raises(BadSource, match="kubeconfig"):
        Cluster.connect(kubeconfig(cluster={"certificate-authority-data": data}))
