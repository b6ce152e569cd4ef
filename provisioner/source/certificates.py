"""The certificates of a Secret, checked before anybody is asked anything. Messages name keys, never values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from provisioner.errors import BadSource, SourceUnavailable
from provisioner.source.tls import CA_KEY, CLIENT_KEY, PRIVATE_KEY, SourceCertificates, context_of

MAX_BYTES = {CA_KEY: 512 * 1024, CLIENT_KEY: 64 * 1024, PRIVATE_KEY: 16 * 1024}
MAX_CERTIFICATES = {CA_KEY: 250, CLIENT_KEY: 10}
EXPECTED_CERTIFICATES = "expected PEM, -----BEGIN CERTIFICATE-----"
UNREADABLE = (ValueError, UnsupportedAlgorithm, x509.InvalidVersion)


def certificates_of(texts: Mapping[str, str], now: datetime) -> SourceCertificates:
    """What the texts of CERTIFICATE_KEYS hold, at least one of them; both of the client's or neither.

    Raises BadSource for what cannot be used, and SourceUnavailable for what can once it is renewed or its time has
    come.
    """
    for key, text in texts.items():
        if len(text.encode()) > MAX_BYTES[key]:
            raise BadSource(f"the value of its key {key} is too large; expected at most {MAX_BYTES[key]} bytes")
    authorities = _read_certificates(CA_KEY, texts[CA_KEY]) if CA_KEY in texts else []
    # Some of a bundle may have expired, as they do while authorities change.
    last = max((certificate.not_valid_after_utc for certificate in authorities), default=now)
    if last < now:
        raise SourceUnavailable(f"every certificate of its key {CA_KEY} has expired, the last on {last:%Y-%m-%d}")
    trusted = b"".join(certificate.public_bytes(Encoding.DER) for certificate in authorities)
    made = SourceCertificates(trusted, *_client(texts, now))
    # What one parser reads another may refuse: better here, where the Secret is named, than while we connect.
    context_of(made)
    return made


def _client(texts: Mapping[str, str], now: datetime) -> tuple[bytes, bytes]:
    """The certificate with its chain, and the key, as PEM of our own writing."""
    given = [key for key in (CLIENT_KEY, PRIVATE_KEY) if key in texts]
    if not given:
        return b"", b""
    if len(given) == 1:
        raise BadSource(f"it has {given[0]} alone; expected both {CLIENT_KEY} and {PRIVATE_KEY}")
    chain = _read_certificates(CLIENT_KEY, texts[CLIENT_KEY])
    key = _private_key(texts[PRIVATE_KEY])
    form = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    try:
        is_pair = chain[0].public_key().public_bytes(*form) == key.public_key().public_bytes(*form)
    except UNREADABLE:
        raise BadSource(f"the public key in the certificate of its key {CLIENT_KEY} cannot be read") from None
    if not is_pair:
        raise BadSource(
            f"its keys {CLIENT_KEY} and {PRIVATE_KEY} do not fit together; expected the private key of the first "
            f"certificate in {CLIENT_KEY}"
        )
    if chain[0].not_valid_after_utc < now:
        ended = chain[0].not_valid_after_utc
        raise SourceUnavailable(f"the certificate of its key {CLIENT_KEY} has expired, on {ended:%Y-%m-%d}")
    if chain[0].not_valid_before_utc > now:
        begins = chain[0].not_valid_before_utc
        raise SourceUnavailable(f"the certificate of its key {CLIENT_KEY} is not valid before {begins:%Y-%m-%d %H:%M}")
    pem = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)
    return pem, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _read_certificates(key: str, text: str) -> list[x509.Certificate]:
    try:
        found = x509.load_pem_x509_certificates(text.encode())
        # Dates are read when they are asked for.
        for certificate in found:
            _ = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    except UNREADABLE:
        raise BadSource(f"a certificate of its key {key} cannot be read; {EXPECTED_CERTIFICATES}") from None
    if len(found) > MAX_CERTIFICATES[key]:
        raise BadSource(f"its key {key} has {len(found)} certificates; expected at most {MAX_CERTIFICATES[key]}")
    return found


def _private_key(text: str) -> PrivateKeyTypes:
    try:
        # The validation of hostile RSA keys takes minutes. A key that does not fit is found without it.
        return load_pem_private_key(text.encode(), None, unsafe_skip_rsa_key_validation=True)
    except TypeError:
        raise BadSource(
            f"the private key of its key {PRIVATE_KEY} is encrypted; expected one without a passphrase"
        ) from None
    except UNREADABLE:
        words = f"the private key of its key {PRIVATE_KEY} cannot be read; expected PEM, -----BEGIN PRIVATE KEY-----"
        raise BadSource(words) from None
