"""TLS to the hosts of sources: who answers is always checked, and what a failed handshake means is said in words."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from provisioner.errors import BadSource
from provisioner.keyfiles import as_file

CA_KEY, CLIENT_KEY, PRIVATE_KEY = CERTIFICATE_KEYS = ("ca.crt", "tls.crt", "tls.key")
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
