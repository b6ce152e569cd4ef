"""Which kubeconfigs may register a cluster."""

from __future__ import annotations

import base64
import json
import tempfile
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from provisioner.cluster.client.api import ClusterClient
from provisioner.cluster.client.kubeconfig import (
    MAX_KUBECONFIG_BYTES,
    end_of_credentials,
    kept_kubeconfig,
    read_kubeconfig,
)
from provisioner.errors import BadSource, Unreachable
from provisioner.sandbox.sandbox import self_signed


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
        assert ClusterClient.connect(config, trusted=True)
    else:
        with pytest.raises(Unreachable, match="gave no credentials"):
            ClusterClient.connect(config, trusted=True)


def test_an_empty_token_file_makes_nobody_of_us(tmp_path):
    (tmp_path / "token").write_text("")
    with pytest.raises(Unreachable, match="gave no credentials"):
        ClusterClient.connect(kubeconfig(user={"tokenFile": str(tmp_path / "token")}), trusted=True)


def test_S19_an_entry_outside_the_chosen_context_is_refused_as_well():
    config = kubeconfig()
    config["users"].append({"name": "other", "user": {"exec": {"command": "sh"}}})
    with pytest.raises(BadSource, match="'other' uses exec"):
        ClusterClient.connect(config)


def test_S19_a_command_of_a_refused_kubeconfig_is_never_run(tmp_path):
    witness = tmp_path / "ran"
    run = {"command": "touch", "args": [str(witness)], "apiVersion": "client.authentication.k8s.io/v1"}
    with pytest.raises(BadSource):
        ClusterClient.connect(yaml.safe_dump(kubeconfig(user={"exec": run})))
    assert not witness.exists()


HOSTILE = [
    pytest.param({"cluster": {"insecure-skip-tls-verify": True}}, "insecure-skip-tls-verify", id="no check of TLS"),
    pytest.param({"cluster": {"insecure-skip-tls-verify": "false"}}, "insecure-skip-tls", id="a false that is text"),
    pytest.param({"cluster": {"server": "http://192.0.2.1:8080"}}, "plain text", id="no TLS"),
    pytest.param({"cluster": {"server": "HTTPS://192.0.2.1"}}, "expected an https://", id="TLS in capitals"),
    pytest.param({"cluster": {"server": "https://a\n.evil.example"}}, "expected an https://", id="a broken line"),
    pytest.param({"cluster": {"server": "https://a:99999999"}}, "no URL", id="no port"),
    pytest.param({"cluster": {"server": "https://a\\@evil.example"}}, "kubeconfig", id="a backslash"),
    pytest.param({"cluster": {"tls-server-name": ["a"]}}, "is no text", id="a name that is a list"),
    pytest.param({"user": {"token": "t", "as": "root"}}, "has as;", id="somebody else"),
    pytest.param({"user": {"token": "t", "as-uid": "0"}}, "as-uid", id="somebody else's uid"),
    pytest.param({"user": {"token": "t", "as-groups": ["system:masters"]}}, "as-groups", id="other groups"),
    pytest.param({"user": {"token": "t", "as-user-extra": {"a": ["b"]}}}, "as-user-extra", id="other extras"),
    pytest.param({"user": {"username": "u", "password": "p"}}, "basic authentication", id="a password"),
    pytest.param({"user": {"token": "a\nX-Remote-User: root"}}, "line ends", id="a header in the token"),
    pytest.param({"user": {"token": 12345}}, "is no text", id="a token that is a number"),
    pytest.param({"user": {"client-certificate-data": "aGk="}}, "without its key", id="half a certificate"),
]


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(("parts", "words"), HOSTILE)
def test_S19_nobody_may_skip_the_check_of_who_answers_or_act_as_somebody_else(parts, words, trusted):
    with pytest.raises(BadSource, match=words):
        read_kubeconfig(yaml.safe_dump(kubeconfig(**parts)), trusted=trusted)


@pytest.mark.parametrize(
    ("place", "body"),
    [
        pytest.param("clusters", {"cluster": {"server": "https://a", "insecure-skip-tls-verify": True}}, id="TLS"),
        pytest.param("users", {"user": {"as": "root"}}, id="somebody else"),
        pytest.param("users", {"user": {"exek": {"command": "sh"}}}, id="a key nobody knows"),
        pytest.param("contexts", {"context": {"cluster": "c", "role": "root"}}, id="a key of a context"),
    ],
)
def test_S19_every_entry_of_a_registered_kubeconfig_is_looked_at(place, body):
    config = kubeconfig()
    config[place].append({"name": "other", **body})
    with pytest.raises(BadSource, match="'other'"):
        read_kubeconfig(config)
    assert read_kubeconfig(config, trusted=True)["current-context"] == "main"


def test_S19_a_field_that_no_kubeconfig_has_is_refused():
    with pytest.raises(BadSource, match="proxy is no field"):
        read_kubeconfig({**kubeconfig(), "proxy": "http://192.0.2.9"})


AMBIGUOUS = [
    pytest.param("  server: https://a\n  server: https://b", "server stands twice", id="a key twice"),
    pytest.param("  server: https://a\n  <<: {server: https://b}", "merges", id="a merge"),
    pytest.param("  ? [a]\n  : b", "merges", id="a key that is a list"),
]


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize(("lines", "words"), AMBIGUOUS)
def test_S19_a_kubeconfig_that_two_parsers_read_differently_is_refused(lines, words, trusted):
    with pytest.raises(BadSource, match=words):
        read_kubeconfig(f"x:\n{lines}\n", trusted=trusted)


@pytest.mark.parametrize("place", ["contexts", "clusters", "users"])
def test_S19_two_entries_of_one_name_are_refused(place):
    config = kubeconfig()
    config[place].append(config[place][0])
    with pytest.raises(BadSource, match="two entries named"):
        read_kubeconfig(config)


def test_S19_of_several_contexts_one_is_to_be_chosen_and_only_that_is_kept():
    config = kubeconfig()
    config["clusters"].append({"name": "d", "cluster": {"server": "https://192.0.2.2"}})
    config["users"].append({"name": "v", "user": {"token": "0ther"}})
    config["contexts"].append({"name": "second", "context": {"cluster": "d", "user": "v", "namespace": "x"}})
    config["extensions"] = [{"name": "minikube", "extension": {"note": "s3cret"}}]
    text = yaml.safe_dump(config)
    with pytest.raises(BadSource, match=r"2 contexts \(main, second\): choose one"):
        kept_kubeconfig(text)
    kept = kept_kubeconfig(text, context="second")
    assert kept_kubeconfig(kept) == kept
    assert json.loads(kept)["clusters"] == [{"name": "d", "cluster": {"server": "https://192.0.2.2"}}]
    assert "0ther" in kept
    assert "t0ken" not in kept
    assert "s3cret" not in kept


def test_S30_a_client_key_is_not_written_to_a_file(tmp_path, monkeypatch):
    certificate, key = (base64.b64encode(part.encode()).decode() for part in self_signed())
    made: list[str] = []
    monkeypatch.setattr(tempfile, "mkstemp", lambda *_, **__: made.append("mkstemp"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    user = {"client-certificate-data": certificate, "client-key-data": key}
    assert ClusterClient.connect(kubeconfig(user=user, cluster={"certificate-authority-data": certificate}))
    assert made == []
    assert list(tmp_path.iterdir()) == []


def test_an_encrypted_client_key_is_refused_and_nobody_is_asked_for_its_password():
    certificate, _ = self_signed()
    sealed = (
        ec.generate_private_key(ec.SECP256R1())
        .private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"password"),
        )
        .decode()
    )
    user = {
        "client-certificate-data": base64.b64encode(certificate.encode()).decode(),
        "client-key-data": base64.b64encode(sealed.encode()).decode(),
    }
    with pytest.raises(BadSource, match="cannot be used"):
        ClusterClient.connect(kubeconfig(user=user))


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
        ClusterClient.connect(kubeconfig(cluster={"certificate-authority-data": data}))


SOON, LATER = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)


def certificate(end: datetime) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "pratique")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(end - timedelta(days=1))
        .not_valid_after(end)
        .sign(key, hashes.SHA256())
    )
    return base64.b64encode(made.public_bytes(serialization.Encoding.PEM)).decode()


def token(claims: object) -> str:
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{body}.c2ln"


@pytest.mark.parametrize(
    ("user", "end"),
    [
        ({"token": token({"exp": SOON.timestamp()})}, SOON),
        ({"client-certificate-data": certificate(SOON), "client-key-data": "eA=="}, SOON),
        (
            {
                "token": token({"exp": LATER.timestamp()}),
                "client-certificate-data": certificate(SOON),
                "client-key-data": "eA==",
            },
            SOON,
        ),
        ({"token": token({"sub": "for ever"})}, None),
        ({"token": token({"exp": "tomorrow"})}, None),
        ({"token": token({"exp": 1e300})}, None),
        ({"token": token([])}, None),
        ({"token": "opaque"}, None),
        ({"token": "a.b.c"}, None),
        ({"client-certificate-data": "bm8=", "client-key-data": "eA=="}, None),
        ({}, None),
    ],
    ids=[
        "token",
        "certificate",
        "the first",
        "no end",
        "a word",
        "too far",
        "a list",
        "opaque",
        "broken",
        "no",
        "none",
    ],
)
def test_the_end_of_what_ends_first(user: dict[str, str], end: datetime | None) -> None:
    kubeconfig = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://example.com"}}],
        "users": [{"name": "a", "user": user}],
    }
    assert end_of_credentials(json.dumps(kubeconfig)) == end
