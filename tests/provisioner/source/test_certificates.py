"""The certificates of a Secret: what is taken, and what is said of those that cannot be used. Nobody is asked here."""

from __future__ import annotations

import base64
import time
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, NoEncryption, PrivateFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.errors import BadSource, SourceUnavailable
from provisioner.source import GitSource, HttpSource, ImageSource, RemoteSource, with_secret
from provisioner.source.certificates import MAX_BYTES, MAX_CERTIFICATES
from provisioner.source.tls import SourceCertificates
from provisioner.values import JsonObject
from tests.provisioner.source.places import secret
from tests.support.servers.certificates import CertificateAuthority, private_pem

TLS = "kubernetes.io/tls"
FILE = HttpSource("https://files.example/a.yaml")
IMAGE = ImageSource("registry.example/app:v1")
OVER_SSH = GitSource("ssh://git@git.example/x.git", branch="main")
ROOT = CertificateAuthority("root")
OTHER = CertificateAuthority("other")
OLD = CertificateAuthority("old", days=(-9, -2))
ADA = ROOT.pair("ada")
RSA = rsa.generate_private_key(65537, 2048)
PASSWORD = BestAvailableEncryption(b"hunter2")


def held(source: RemoteSource, given: JsonObject) -> SourceCertificates:
    credentials = with_secret(source, given).credentials
    assert credentials is not None
    assert credentials.certificates is not None
    return credentials.certificates


def refusal(source: RemoteSource, **values: Any) -> BadSource:
    with pytest.raises(BadSource) as caught:
        with_secret(source, secret("Opaque", **values))
    assert str(caught.value).startswith("Secret harbour/pull")
    assert len(str(caught.value)) < 400
    return caught.value


PAIRS: dict[str, Any] = {
    "elliptic curve": ADA,
    "RSA": ROOT.pair("ada", key=RSA),
    "Ed25519": ROOT.pair("ada", key=ed25519.Ed25519PrivateKey.generate()),
    "P-384": ROOT.pair("ada", key=ec.generate_private_key(ec.SECP384R1())),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("type_", [TLS, "Opaque"])
def test_a_client_certificate_is_taken_with_every_kind_of_key(type_: str, pair: Any) -> None:
    made = held(FILE, secret(type_, **{"tls.crt": pair.certificate, "tls.key": pair.key}))
    assert made.client.decode() == pair.certificate
    assert made.authorities == b""


def test_all_three_keys_are_taken_and_shown_nowhere() -> None:
    given = secret(TLS, **{"ca.crt": ROOT.pem + OTHER.pem, "tls.crt": ADA.certificate + ROOT.pem, "tls.key": ADA.key})
    source = with_secret(FILE, given)
    made = held(FILE, given)
    assert made.client.decode() == ADA.certificate + ROOT.pem
    assert made.authorities == b"".join(one.certificate.public_bytes(Encoding.DER) for one in (ROOT, OTHER))
    key = ADA.key.splitlines()[1]
    assert key not in repr(source) + repr(source.credentials) + repr(made)
    assert key in made.key.decode()


def test_words_around_certificates_and_parameters_before_a_key_are_left_out() -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    old = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()
    parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
    pair = ROOT.pair("ada", key=key)
    given = {
        "ca.crt": f"# Our root\n{ROOT.pem}\n",
        "tls.crt": f"subject=ada\n{pair.certificate}",
        "tls.key": parameters + old,
    }
    made = held(FILE, secret("Opaque", **given))
    assert (made.client.decode(), made.key.decode()) == (pair.certificate, private_pem(key))


def test_a_private_key_among_the_certificates_is_not_taken_along() -> None:
    both = ADA.certificate + ADA.key
    made = held(FILE, secret("Opaque", **{"ca.crt": ROOT.pem + ADA.key, "tls.crt": both, "tls.key": ADA.key}))
    assert made.client.decode() == ADA.certificate
    assert b"PRIVATE" not in made.authorities


BESIDE = {
    "a password": (FILE, {"username": "reader", "password": "shh"}, "kubernetes.io/basic-auth"),
    "a password for an image": (IMAGE, {"username": "reader", "password": "shh"}, "kubernetes.io/basic-auth"),
    "a token": (FILE, {"bearerToken": "shh"}, "Opaque"),
    "a pull secret": (IMAGE, {".dockerconfigjson": '{"auths": {}}'}, "kubernetes.io/dockerconfigjson"),
}


@pytest.mark.parametrize(("source", "values", "type_"), BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("is_tls", [False, True], ids=["of the form's type", "of type tls"])
def test_certificates_stand_beside_other_credentials(
    source: RemoteSource, values: dict[str, str], type_: str, is_tls: bool
) -> None:
    more = {"ca.crt": ROOT.pem, "tls.crt": ADA.certificate, "tls.key": ADA.key}
    credentials = with_secret(source, secret(TLS if is_tls else type_, **values, **more)).credentials
    assert credentials is not None
    assert credentials.certificates is not None
    assert credentials.bearer or credentials.password or credentials.docker_config


def test_empty_keys_are_as_none() -> None:
    assert held(FILE, secret(TLS, **{"ca.crt": ROOT.pem, "tls.crt": "", "tls.key": ""})).client == b""


def test_an_authority_that_has_expired_beside_one_that_has_not_is_left_in_the_bundle() -> None:
    assert held(FILE, secret("Opaque", **{"ca.crt": OLD.pem + ROOT.pem})).authorities


def test_ssh_does_without_them() -> None:
    given = secret("Opaque", **{"identity": "key", "known_hosts": "hosts", "ca.crt": b"\xff", "tls.crt": "x"})
    credentials = with_secret(OVER_SSH, given).credentials
    assert credentials is not None
    assert credentials.certificates is None


def pem(label: str, body: str = "AAAA") -> str:
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----\n"


def client(certificate: str = ADA.certificate, key: str = ADA.key) -> dict[str, str]:
    return {"tls.crt": certificate, "tls.key": key}


def encrypted(form: PrivateFormat) -> str:
    return RSA.private_bytes(Encoding.PEM, form, PASSWORD).decode()


def der_of(text: str) -> bytes:
    return base64.b64decode("".join(line for line in text.splitlines() if "-----" not in line))


def with_version(number: int) -> str:
    """The root, which says of itself that it is of another version of X.509."""
    changed = der_of(ROOT.pem).replace(b"\xa0\x03\x02\x01\x02", bytes([0xA0, 3, 2, 1, number]), 1)
    return pem("CERTIFICATE", base64.encodebytes(changed).decode().strip())


NONE = "a certificate of its key ca.crt cannot be read"
NO_KEY = "the private key of its key tls.key cannot be read"
WEAK = ROOT.pair("ada", key=rsa.generate_private_key(65537, 1024))
BROKEN: dict[str, tuple[dict[str, str | bytes], str]] = {
    "an authority that is no PEM": ({"ca.crt": "shh"}, NONE),
    "an authority that is DER": (
        {"ca.crt": ROOT.certificate.public_bytes(Encoding.DER)},
        "key ca.crt is no UTF-8 text",
    ),
    "an authority that is a key": ({"ca.crt": ADA.key}, NONE),
    "an authority cut off": ({"ca.crt": ROOT.pem[:-40]}, NONE),
    "an authority of zeros": ({"ca.crt": pem("CERTIFICATE")}, NONE),
    "a good one and a broken one": ({"ca.crt": ROOT.pem + pem("CERTIFICATE")}, NONE),
    "an authority of no version that there is": ({"ca.crt": with_version(34)}, NONE),
    "blanks": ({"ca.crt": " \n"}, NONE),
    "a certificate that is no PEM": (client("shh"), "a certificate of its key tls.crt cannot be read"),
    "a key that is no PEM": (client(key="shh"), NO_KEY),
    "a key that is a certificate": (client(key=ADA.certificate), NO_KEY),
    "a key of zeros": (client(key=pem("PRIVATE KEY")), NO_KEY),
    "a key of ssh": (client(key=pem("OPENSSH PRIVATE KEY")), NO_KEY),
    "a public key": (client(key=pem("PUBLIC KEY")), NO_KEY),
    "a certificate alone": ({"tls.crt": ADA.certificate}, "it has tls.crt alone; expected both tls.crt and tls.key"),
    "a key alone": ({"tls.key": ADA.key}, "it has tls.key alone; expected both"),
    "a key alone beside a password": ({"username": "u", "password": "shh", "tls.key": ADA.key}, "it has tls.key alone"),
    "an authority beside a key alone": ({"ca.crt": ROOT.pem, "tls.key": ADA.key}, "it has tls.key alone"),
    "another's key": (client(key=OTHER.pair("eve").key), "its keys tls.crt and tls.key do not fit together"),
    "a key of another kind": (client(key=private_pem(RSA)), "tls.crt and tls.key do not fit together"),
    "the chain turned round": (
        client(ROOT.pem + ADA.certificate),
        "the private key of the first certificate in tls.crt",
    ),
    "an encrypted key": (client(key=encrypted(PrivateFormat.PKCS8)), "its key tls.key is encrypted"),
    "an encrypted key of old form": (
        client(key=encrypted(PrivateFormat.TraditionalOpenSSL)),
        "is encrypted; expected one",
    ),
    "a weak key": (client(WEAK.certificate, WEAK.key), "cannot be used with tls.key (ee key too small)"),
}


@pytest.mark.parametrize(("values", "words"), BROKEN.values(), ids=BROKEN)
def test_what_cannot_be_used_is_told_by_its_key_and_not_by_its_value(
    values: dict[str, str | bytes], words: str
) -> None:
    error = refusal(FILE, **values)
    assert words in str(error)
    lines = [line for text in values.values() if isinstance(text, str) for line in text.splitlines() if len(line) > 20]
    assert not any(line in str(error) for line in ["shh", *(line for line in lines if "-----" not in line)])
    assert not isinstance(error, SourceUnavailable)
    assert error.__cause__ is None


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_broken_bytes_are_taken_or_refused_and_nothing_else_happens(data: st.DataObject) -> None:
    labels = {"ca.crt": "CERTIFICATE", "tls.crt": "CERTIFICATE", "tls.key": "PRIVATE KEY"}
    whole = {"ca.crt": ROOT.pem, **client()}
    key = data.draw(st.sampled_from(sorted(labels)))
    content = bytearray(der_of(whole[key]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    broken = pem(labels[key], base64.encodebytes(bytes(content)).decode().strip())
    said = ""
    try:
        with_secret(FILE, secret("Opaque", **{**whole, key: broken}))
    except BadSource as error:
        said = str(error)
    assert not said or said.startswith("Secret harbour/pull: ")
    assert len(said) < 400


TIMES = {
    "an expired authority": ({"ca.crt": OLD.pem}, "every certificate of its key ca.crt has expired, the last on 20"),
    "an expired certificate": ((-9, -2), "the certificate of its key tls.crt has expired, on 20"),
    "a certificate of tomorrow": ((1, 2), "the certificate of its key tls.crt is not valid before 20"),
}


@pytest.mark.parametrize(("given", "words"), TIMES.values(), ids=TIMES)
def test_what_is_out_of_its_time_is_asked_for_again_as_it_may_be_renewed(given: Any, words: str) -> None:
    if isinstance(given, tuple):
        pair = ROOT.pair("ada", days=given)
        given = client(pair.certificate, pair.key)
    error = refusal(FILE, **given)
    assert isinstance(error, SourceUnavailable)
    assert words in str(error)


LARGE = {
    "bytes of authorities": ({"ca.crt": ROOT.pem + "#" * MAX_BYTES["ca.crt"]}, "its key ca.crt is too large"),
    "authorities": ({"ca.crt": ROOT.pem * (MAX_CERTIFICATES["ca.crt"] + 1)}, "251 certificates; expected at most 250"),
    "bytes of a chain": (client(ADA.certificate + "#" * MAX_BYTES["tls.crt"]), "its key tls.crt is too large"),
    "a chain": (client(ADA.certificate + ROOT.pem * 10), "its key tls.crt has 11 certificates; expected at most 10"),
    "bytes of a key": (client(key=ADA.key + "#" * MAX_BYTES["tls.key"]), "its key tls.key is too large"),
}


@pytest.mark.parametrize(("values", "words"), LARGE.values(), ids=LARGE)
def test_size_and_number_are_bounded(values: dict[str, str], words: str) -> None:
    assert words in str(refusal(FILE, **values))


def test_a_bundle_as_large_as_that_of_a_system_is_taken() -> None:
    assert held(FILE, secret("Opaque", **{"ca.crt": ROOT.pem * MAX_CERTIFICATES["ca.crt"]})).authorities


def test_a_key_whose_validation_takes_a_minute_is_not_validated() -> None:
    """Two primes of Mersenne make an RSA key as large as the limit allows."""
    p, q = 2**9941 - 1, 2**9689 - 1
    private = pow(65537, -1, (p - 1) * (q - 1))
    numbers = [0, p * q, 65537, private, p, q, private % (p - 1), private % (q - 1), pow(q, -1, p)]
    body = b"".join(der(2, number.to_bytes(number.bit_length() // 8 + 1, "big")) for number in numbers)
    text = base64.encodebytes(der(0x30, body)).decode()
    began = time.thread_time()  # of the processor: others on the machine do not count
    error = refusal(FILE, **client(key=pem("RSA PRIVATE KEY", text.strip())))
    assert "do not fit together" in str(error)
    assert time.thread_time() - began < 20


def der(tag: int, body: bytes) -> bytes:
    size = len(body).to_bytes((len(body).bit_length() + 7) // 8, "big")
    return bytes([tag, *([len(body)] if len(body) < 128 else [128 | len(size), *size])]) + body


UNFIT: dict[str, tuple[RemoteSource, JsonObject, str]] = {
    "over ssh": (OVER_SSH, secret("Opaque", **{"ca.crt": ROOT.pem}), "expected for git over ssh: ssh-privatekey"),
    "of another type": (
        FILE,
        secret("kubernetes.io/service-account-token", **{"ca.crt": ROOT.pem, "token": "shh"}),
        "has ca.crt, token; expected for http and git over https: username and password",
    ),
    "half a password": (
        FILE,
        secret("Opaque", **{"username": "u", "ca.crt": ROOT.pem}),
        "has ca.crt, username; expected",
    ),
    "half a password of its type": (
        FILE,
        secret("kubernetes.io/basic-auth", **{"username": "u", "ca.crt": ROOT.pem}),
        "has ca.crt, username; expected",
    ),
    "a token for an image": (
        IMAGE,
        secret("Opaque", **{"bearerToken": "shh", "ca.crt": ROOT.pem}),
        "has bearerToken, ca.crt; expected for an image",
    ),
    "a pull secret for a file": (
        FILE,
        secret(TLS, **{".dockerconfigjson": "{}", "ca.crt": ROOT.pem}),
        "has .dockerconfigjson, ca.crt; expected",
    ),
    "another spelling": (FILE, secret("Opaque", caFile=ROOT.pem), "or ca.crt, or tls.crt and tls.key, or all three"),
}


@pytest.mark.parametrize(("source", "given", "words"), UNFIT.values(), ids=UNFIT)
def test_a_secret_that_holds_something_else_as_well_is_told_by_its_keys(
    source: RemoteSource, given: JsonObject, words: str
) -> None:
    with pytest.raises(BadSource) as caught:
        with_secret(source, given)
    assert words in str(caught.value)
    assert "shh" not in str(caught.value)


PLAIN: dict[str, tuple[RemoteSource, str]] = {
    "a file": (HttpSource("http://files.example/a.yaml"), "files.example is asked without TLS; expected https"),
    "git": (GitSource("http://git.example/x.git", branch="main"), "git.example is asked without TLS; expected https"),
    "an image": (
        ImageSource("registry.example/app:v1", insecure_http=True),
        "registry.example is asked without TLS as PRATIQUE_PLAIN_HTTP_HOSTS lists it; expected https",
    ),
}


@pytest.mark.parametrize(("source", "words"), PLAIN.values(), ids=PLAIN)
def test_certificates_mean_nothing_without_tls_and_that_is_said(source: RemoteSource, words: str) -> None:
    error = refusal(source, **{"ca.crt": ROOT.pem}, **client())
    assert f"has ca.crt and tls.crt and tls.key, and {words}" in str(error)
