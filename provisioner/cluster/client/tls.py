"""TLS to an API server: who answers is always checked, by the kubeconfig and not by the environment (S19).

The official client would write an inline private key to a file of its own in /tmp, and has a switch for not checking.
Therefore the TLS of every connection is made here.
"""

from __future__ import annotations

import base64
import binascii
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provisioner.errors import BadSource
from provisioner.keyfiles import as_file

_INLINE = {"certificate-authority-data", "client-certificate-data", "client-key-data"}


@dataclass(frozen=True, slots=True, repr=False)
class Certificates:
    """PEM that stands in a kubeconfig; empty where it names files or nothing."""

    authority: bytes = b""
    client: bytes = b""
    key: bytes = b""

    @classmethod
    def inline(cls, document: Mapping[str, Any]) -> Certificates:
        """Of what `read_kubeconfig` returned. Raises BadSource where it is not base64."""
        cluster, user = document["clusters"][0]["cluster"], document["users"][0]["user"]
        return cls(
            _decoded(cluster, "certificate-authority-data"),
            _decoded(user, "client-certificate-data"),
            _decoded(user, "client-key-data"),
        )


def without_certificates(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same kubeconfig for the official client, which then writes no files."""
    lists = {"clusters": "cluster", "users": "user"}
    return {
        **document,
        **{
            plural: [{**item, singular: _without_data(item[singular])} for item in document[plural]]
            for plural, singular in lists.items()
        },
    }


def tls_context(
    certificates: Certificates, *, authority_file: str, client_files: tuple[str, str], trusted: bool
) -> ssl.SSLContext:
    """A context that checks certificate and host name, with TLS 1.2 or newer.

    Without an authority those of the system count; SSL_CERT_FILE and SSL_CERT_DIR choose them only where `trusted`.
    Raises OSError (ssl.SSLError is one) or ValueError for certificates that cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and host names
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificates.authority:
        context.load_verify_locations(cadata=certificates.authority.decode("ascii"))
    elif authority_file:
        context.load_verify_locations(cafile=authority_file)
    elif trusted:
        context.load_default_certs()
    else:
        _load_authorities_of_system(context)
    if certificates.client:
        with as_file(certificates.client + b"\n" + certificates.key) as path:
            context.load_cert_chain(path, password="")
    elif client_files[0]:
        context.load_cert_chain(client_files[0], client_files[1] or None, password="")
    return context


def _load_authorities_of_system(context: ssl.SSLContext) -> None:
    """Those that OpenSSL was built for, whatever the environment says."""
    paths = ssl.get_default_verify_paths()
    cafile = paths.openssl_cafile if Path(paths.openssl_cafile).is_file() else None
    capath = paths.openssl_capath if Path(paths.openssl_capath).is_dir() else None
    if cafile or capath:
        context.load_verify_locations(cafile=cafile, capath=capath)


def _without_data(body: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in body.items() if key not in _INLINE}


def _decoded(body: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(str(body.get(key) or "").encode(), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise BadSource(f"kubeconfig: {key} is not base64") from exc.with_traceback(None)
