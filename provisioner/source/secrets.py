"""The standard kinds of Secret as credentials of one source. Messages name keys, never values (promise 8)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from provisioner.errors import BadSource
from provisioner.source.egress import Origin
from provisioner.source.image import is_named, names_host
from provisioner.source.source_type import Credentials, RemoteSource, SourceProtocol
from provisioner.source.tls import CERTIFICATE_KEYS, SourceCertificates
from provisioner.values import JsonObject, ObjectRef

OPAQUE = "Opaque"
TLS = "kubernetes.io/tls"
CERTIFICATES = f"ca.crt, or tls.crt and tls.key, or all three (type {TLS}), alone or beside these"
HEADER_WORD = re.compile(r"[\x21-\x7e]+")
MAX_SHOWN_KEYS = 10


@dataclass(frozen=True, slots=True)
class SecretForm:
    """A standard form: all `keys` are needed. A Secret of type Opaque may have any form, as Flux writes them, and one
    of type kubernetes.io/tls each that its certificates may stand beside.
    """

    keys: tuple[str, ...]
    ways: frozenset[SourceProtocol]
    type: str = OPAQUE

    def fits(self, type_: str, present: Mapping[str, str]) -> bool:
        types = {self.type, OPAQUE} | (set() if SourceProtocol.SSH in self.ways else {TLS})
        return type_ in types and all(key in present for key in self.keys)

    def __str__(self) -> str:
        return f"{' and '.join(self.keys)} (type {self.type})"


DOCKER_CONFIG = SecretForm(
    (".dockerconfigjson",), frozenset({SourceProtocol.REGISTRY}), "kubernetes.io/dockerconfigjson"
)
DOCKER_CFG = SecretForm((".dockercfg",), frozenset({SourceProtocol.REGISTRY}), "kubernetes.io/dockercfg")
BASIC = SecretForm(
    ("username", "password"), frozenset({SourceProtocol.REGISTRY, SourceProtocol.HTTP}), "kubernetes.io/basic-auth"
)
BEARER = SecretForm(("bearerToken",), frozenset({SourceProtocol.HTTP}))
SSH = SecretForm(("ssh-privatekey", "known_hosts"), frozenset({SourceProtocol.SSH}), "kubernetes.io/ssh-auth")
FLUX_SSH = SecretForm(("identity", "known_hosts"), frozenset({SourceProtocol.SSH}))
FORMS = (DOCKER_CONFIG, DOCKER_CFG, BASIC, BEARER, SSH, FLUX_SSH)


def with_secret(source: RemoteSource, secret: JsonObject) -> RemoteSource:
    """The source with the credentials that a live Secret holds for it, which go to the source's own host only.

    Raises BadSource for a Secret of no form that opens such a source, naming its keys and those expected, and for
    certificates that cannot be used.
    """
    ref = ObjectRef.of(secret)
    way, place = source.protocol, source.place()
    type_ = str(secret.get("type") or OPAQUE)
    present = {str(key): str(text) for key, text in (secret.get("data") or {}).items() if text}
    suitable = [form for form in FORMS if way in form.ways]
    form = next((form for form in suitable if form.fits(type_, present)), None)
    # Certificates may stand alone. Half of another form beside them, or one for another kind of source, is a mistake.
    others = {key for each in FORMS for key in each.keys} & set(present)
    has_certificates = not others and any(key in present for key in CERTIFICATE_KEYS)
    if form is None and not (has_certificates and type_ in (TLS, OPAQUE) and way != SourceProtocol.SSH):
        keys = ", ".join(sorted(present)[:MAX_SHOWN_KEYS]) or "no keys with a value"
        expected = ", or ".join([*map(str, suitable), *([] if way == SourceProtocol.SSH else [CERTIFICATES])])
        raise BadSource(f"{ref} of type {type_} has {keys}; expected for {way}: {expected}")
    values = {key: _decode_key(ref, key, present[key]) for key in form.keys} if form else {}
    made = _credentials(ref, form, values, place) if form else Credentials(_host_of(place))
    return replace(source, credentials=replace(made, certificates=_certificates(ref, present, source, place)))


def with_secret_for(source: RemoteSource, secret: JsonObject, *, host: str) -> RemoteSource:
    """As `with_secret`, where somebody else chose the address than who named the Secret: it goes to no host that they
    did not name (S08).

    They name it by `host` (`host` or `host:port`), or by an entry of the docker configuration that the Secret is. A
    source at any other place goes without. Raises as `with_secret`, and BadSource where no host is named.
    """
    place = source.place()
    if host and not is_named(host, place):
        return source
    made = with_secret(source, secret)
    assert made.credentials is not None
    if host:
        return made
    if not made.credentials.docker_config:
        raise BadSource(
            f"{ObjectRef.of(secret)} names no host that it is for, and the catalog chose {place}; expected auth.host "
            "beside auth.secret, or a docker configuration, which names its hosts"
        )
    return made if names_host(made.credentials, place) else source


def _certificates(
    ref: ObjectRef, present: Mapping[str, str], source: RemoteSource, place: Origin
) -> SourceCertificates | None:
    """None for a Secret without any. ssh has no use for them."""
    if place.scheme == "ssh":
        return None
    texts = {key: _decode_key(ref, key, present[key]) for key in CERTIFICATE_KEYS if key in present}
    if not texts:
        return None
    if place.scheme != "https":
        keys = " and ".join(texts)
        why = " as PRATIQUE_PLAIN_HTTP_HOSTS lists it" if source.protocol == SourceProtocol.REGISTRY else ""
        raise BadSource(
            f"{ref} has {keys}, and {place} is asked without TLS{why}; expected https, or a Secret without them"
        )
    from provisioner.source.certificates import certificates_of  # noqa: PLC0415 - cryptography: with the first of them

    try:
        return certificates_of(texts, datetime.now(UTC))
    except BadSource as exc:
        raise type(exc)(f"{ref}: {exc}") from None


def _decode_key(ref: ObjectRef, key: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadSource(f"{ref}: the value of its key {key} is no UTF-8 text") from None


def _credentials(ref: ObjectRef, form: SecretForm, values: Mapping[str, str], place: Origin) -> Credentials:
    first, *others = values.values()
    host = _host_of(place)
    if form in (DOCKER_CONFIG, DOCKER_CFG):
        return Credentials(host, docker_config=_docker_config(ref, form, first))
    if form is BASIC:
        if ":" in first:
            raise BadSource(f"{ref}: the value of its key username holds a colon, which no user name may")
        return Credentials(host, first, others[0])
    if form is BEARER:
        if not HEADER_WORD.fullmatch(first):
            raise BadSource(f"{ref}: the value of its key bearerToken holds a blank or line break, which no token may")
        return Credentials(host, bearer=first)
    return Credentials(host, ssh_private_key=first, ssh_known_hosts=others[0])


def _host_of(place: Origin) -> str:
    return f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"


def _docker_config(ref: ObjectRef, form: SecretForm, text: str) -> str:
    """A dockerconfigjson; the entries of the legacy form stand at the top of theirs."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        document = None
    auths = document.get("auths") if isinstance(document, dict) and form is DOCKER_CONFIG else document
    if not isinstance(auths, dict):
        expected = "auths" if form is DOCKER_CONFIG else "registries"
        raise BadSource(f"{ref}: the value of its key {form.keys[0]} is no JSON object of {expected}")
    return json.dumps({"auths": auths})
