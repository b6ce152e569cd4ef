"""Certificates of webhooks: what their issuer needs to make them, and to tell the API server which one to trust.

The terms are those of OLM v0 and v1: valid for two years, renewed a day before they end, kept in a Secret of the
Certificate's name.
"""

from __future__ import annotations

from collections.abc import Iterator

from provisioner.render.registry.config import CertificateIssuer
from provisioner.render.registry.names import certificate_name, service_name, suffixed
from provisioner.values import JsonObject

_API = "cert-manager.io/v1"
_INJECT = {
    CertificateIssuer.CERT_MANAGER: "cert-manager.io/inject-ca-from",
    CertificateIssuer.SERVICE_CA: "service.beta.openshift.io/inject-cabundle",
}
_SERVED_FROM = "service.beta.openshift.io/serving-cert-secret-name"


def trusting(issuer: CertificateIssuer, deployment: str, namespace: str) -> dict[str, str]:
    """The annotations of a webhook configuration or CRD into which the issuer writes its CA."""
    if issuer is CertificateIssuer.NONE:
        return {}
    value = f"{namespace}/{certificate_name(deployment)}" if issuer is CertificateIssuer.CERT_MANAGER else "true"
    return {_INJECT[issuer]: value}


def serving(issuer: CertificateIssuer, deployment: str) -> dict[str, str]:
    """The annotations of the Service whose certificate is issued."""
    return {_SERVED_FROM: certificate_name(deployment)} if issuer is CertificateIssuer.SERVICE_CA else {}


def issued(issuer: CertificateIssuer, deployment: str, namespace: str) -> Iterator[JsonObject]:
    """The objects by which the certificate is asked for."""
    if issuer is not CertificateIssuer.CERT_MANAGER:
        return
    name, host = certificate_name(deployment), f"{service_name(deployment)}.{namespace}"
    issuer_name = suffixed(name, "selfsigned-issuer")
    yield {
        "apiVersion": _API,
        "kind": "Issuer",
        "metadata": {"name": issuer_name, "namespace": namespace},
        "spec": {"selfSigned": {}},
    }
    yield {
        "apiVersion": _API,
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "commonName": host,
            "dnsNames": [host, f"{host}.svc", f"{host}.svc.cluster.local"],
            "duration": "17520h0m0s",
            "issuerRef": {"name": issuer_name},
            "renewBefore": "24h0m0s",
            "secretName": name,
            "usages": ["server auth"],
        },
    }
