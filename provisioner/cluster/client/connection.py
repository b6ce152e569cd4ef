"""Connections to an API server, by a kubeconfig or as the pod that we run in.

The official client reads kubeconfigs, renews credentials and owns the pool; the calls are plain REST over it. It would
write an inline private key to a file of its own in /tmp, and has a switch for not checking who answers. Therefore the
TLS of every connection is made here: who answers is always checked, by the kubeconfig and not by the environment (S19).
"""

from __future__ import annotations

import base64
import binascii
import math
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.incluster_config import load_incluster_config
from kubernetes.config.kube_config import load_kube_config_from_dict

from provisioner.cluster.client.kubeconfig import asks_for_credentials, read_kubeconfig
from provisioner.cluster.client.transport import Observer, Transport
from provisioner.errors import BadSource, Unreachable
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
            plural: [
                {**item, singular: {key: value for key, value in item[singular].items() if key not in _INLINE}}
                for item in document[plural]
            ]
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
        # Those that OpenSSL was built for, whatever the environment says.
        paths = ssl.get_default_verify_paths()
        cafile = paths.openssl_cafile if Path(paths.openssl_cafile).is_file() else None
        capath = paths.openssl_capath if Path(paths.openssl_capath).is_dir() else None
        if cafile or capath:
            context.load_verify_locations(cafile=cafile, capath=capath)
    if certificates.client:
        with as_file(certificates.client + b"\n" + certificates.key) as path:
            context.load_cert_chain(path, password="")
    elif client_files[0]:
        context.load_cert_chain(client_files[0], client_files[1] or None, password="")
    return context


def _decoded(body: Mapping[str, Any], key: str) -> bytes:
    try:
        return base64.b64decode(str(body.get(key) or "").encode(), validate=True)
    except (binascii.Error, ValueError) as exc:
        raise BadSource(f"kubeconfig: {key} is not base64") from exc.with_traceback(None)


# A worker process applies six requests at once by default, with 24 writes each on their way, and asks questions beside.
POOL_SIZE = 200
CREDENTIALS_SECONDS = 1.0


def by_kubeconfig(
    kubeconfig: str | Mapping[str, Any], *, context: str, timeout_seconds: float, trusted: bool, observe: Observer
) -> Transport:
    """The connection that a kubeconfig describes; `Cluster.connect` says which errors it raises."""
    document = read_kubeconfig(kubeconfig, context=context, trusted=trusted)
    certificates = Certificates.inline(document)
    configuration = Configuration()
    try:
        load_kube_config_from_dict(  # type: ignore[no-untyped-call]  # the client is not typed here
            without_certificates(document), client_configuration=configuration, persist_config=False
        )
    except (ConfigException, ValueError, TypeError, KeyError) as exc:
        raise BadSource(f"kubeconfig: cannot be used ({type(exc).__name__})") from exc.with_traceback(None)
    if asks_for_credentials(document) and not (configuration.api_key or configuration.cert_file):
        # The client logs it and would go on as nobody.
        raise Unreachable("kubeconfig: the command or file that it names gave no credentials")
    return _transport(configuration, certificates, timeout_seconds, observe, trusted=trusted)


def as_pod(*, timeout_seconds: float, observe: Observer) -> Transport:
    """The connection as the ServiceAccount of the pod that we run in. Raises BadSource outside of one."""
    configuration = Configuration()
    try:
        load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]  # the client is not typed here
    except ConfigException as exc:
        raise BadSource(f"not in a pod with a ServiceAccount: {exc}") from exc
    return _transport(configuration, Certificates(), timeout_seconds, observe, trusted=False)


def _transport(
    configuration: Configuration,
    certificates: Certificates,
    timeout_seconds: float,
    observe: Observer,
    *,
    trusted: bool,
) -> Transport:
    configuration.connection_pool_maxsize = POOL_SIZE
    configuration.keep_alive = True  # else what a network forgets in silence is noticed by a timeout
    try:
        pool = _pool(configuration, certificates, trusted=trusted)
    except (OSError, ValueError) as exc:
        raise BadSource(f"kubeconfig: its certificates cannot be used ({type(exc).__name__})") from exc
    return Transport(pool, configuration.host, _Credentials(configuration), timeout_seconds, observe)


class _Credentials:
    """The headers that say who we are. Asking the client whether to renew them takes a fifth of a call's own time."""

    def __init__(self, configuration: Configuration):
        self._configuration = configuration
        self._lock = threading.Lock()  # renewing is not made for threads
        self._asked_at = -math.inf
        self._token = ""

    def __call__(self) -> Mapping[str, str]:
        with self._lock:
            if time.monotonic() - self._asked_at > CREDENTIALS_SECONDS:
                self._token = self._configuration.get_api_key_with_prefix("BearerToken") or ""
                self._asked_at = time.monotonic()
            return {"Authorization": self._token} if self._token else {}


def _pool(configuration: Configuration, certificates: Certificates, *, trusted: bool) -> urllib3.PoolManager:
    """The client's pool with TLS of ours. HTTPS_PROXY and its like choose a proxy only where the operator trusts it."""
    context = tls_context(
        certificates,
        authority_file=configuration.ssl_ca_cert or "",
        client_files=(configuration.cert_file or "", configuration.key_file or ""),
        trusted=trusted,
    )
    configuration.ssl_ca_cert = configuration.cert_file = configuration.key_file = None
    configuration.verify_ssl, configuration.assert_hostname = True, None
    if not trusted:
        configuration.proxy = None
    pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
    pool.connection_pool_kw["ssl_context"] = context
    return pool
