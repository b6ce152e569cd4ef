"""TLS to the hosts of sources: who answers is always checked, and what a failed handshake means is said in words.

The certificates of a Secret are checked before anybody is asked anything. Messages name keys, never values.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
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
from provisioner.keyfiles import as_file

CA_KEY, CLIENT_KEY, PRIVATE_KEY = "ca.crt", "tls.crt", "tls.key"
# X509_V_ERR_* of a chain that ends in no authority that is trusted.
UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
# How servers end a handshake because of the certificate that they saw or missed (RFC 8446, section 6.2).
ALERTS = frozenset({
    "ACCESS_DENIED", "BAD_CERTIFICATE", "CERTIFICATE_EXPIRED", "CERTIFICATE_REQUIRED", "CERTIFICATE_REVOKED",
    "CERTIFICATE_UNKNOWN", "DECRYPT_ERROR", "HANDSHAKE_FAILURE", "NO_CERTIFICATE", "UNKNOWN_CA",
    "UNSUPPORTED_CERTIFICATE",
})  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class SourceCertificates:
    """What one source's own host is met with; made by `certificates_of`, which checks them.

    `authorities` (DER, one after another) are trusted in place of the system's. `client` and `key` (PEM) are the
    certificate that we show, with its chain, and its private key.
    """

    authorities: bytes = b""
    client: bytes = b""
    key: bytes = b""


def context_of(certificates: SourceCertificates | None, *, ca_pem: str = "") -> ssl.SSLContext:
    """A context that checks certificate and host name. `ca_pem` is trusted beside the system's authorities.

    Raises BadSource, which names the key of the Secret, for what OpenSSL cannot use.
    """
    if certificates is None or not certificates.authorities:
        context = ssl.create_default_context()
        if ca_pem:
            context.load_verify_locations(cadata=ca_pem)
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and host names
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Whatever is listed is trusted, an intermediate authority too, as in Go and so in Flux and container runtimes.
        context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
        try:
            context.load_verify_locations(cadata=certificates.authorities)
        except ssl.SSLError as exc:
            raise BadSource(f"the certificates of its key {CA_KEY} cannot be used ({_reason(exc)})") from None
    if certificates is not None and certificates.client:
        try:
            with as_file(certificates.client + certificates.key) as path:
                context.load_cert_chain(path, password="")
        except ssl.SSLError as exc:
            words = f"the certificate of its key {CLIENT_KEY} cannot be used with {PRIVATE_KEY} ({_reason(exc)})"
            raise BadSource(words) from None
    return context


def distrust_of(exc: ssl.SSLCertVerificationError, certificates: SourceCertificates | None) -> str:
    """Why the certificate of a host that was met with `certificates` is not trusted."""
    words = f"its certificate is not trusted: {exc.verify_message}"
    if exc.verify_code not in UNKNOWN_AUTHORITY:
        return words
    if certificates is not None and certificates.authorities:
        return f"{words}; expected an authority of {CA_KEY} in the source's Secret, which replaces those of the system"
    system = "expected an authority of the system (SSL_CERT_FILE)"
    return f"{words}; {system}, or for the source's own host one of {CA_KEY} in its Secret"


def refusal_of(exc: ssl.SSLError, certificates: SourceCertificates | None) -> str:
    """What a host that ended the handshake has against our certificate, or against none; "" if it is something else."""
    alert = (exc.reason or "").rpartition("ALERT_")[2]
    if alert not in ALERTS:
        return ""
    if certificates is not None and certificates.client:
        return f"the server does not accept the client certificate ({_reason(exc)})"
    demand = f"{CLIENT_KEY} and {PRIVATE_KEY} in a source's Secret are for the source's own host"
    if alert == "HANDSHAKE_FAILURE":
        return f"the server refused the handshake ({_reason(exc)}), perhaps for want of a client certificate; {demand}"
    return f"the server wants a client certificate ({_reason(exc)}); {demand}"


def _reason(exc: ssl.SSLError) -> str:
    """OpenSSL's own constant in small letters, which holds nothing of the certificates."""
    return (exc.reason or "unknown reason").rpartition("ALERT_")[2].replace("_", " ").lower()


CERTIFICATE_KEYS = (CA_KEY, CLIENT_KEY, PRIVATE_KEY)
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
