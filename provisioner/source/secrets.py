"""The standard kinds of Secret as credentials of one source. Messages name keys, never values (promise 8)."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from provisioner.errors import BadSource
from provisioner.source import image, remote
from provisioner.source.egress import Place, place_of
from provisioner.source.specs import Credentials, GitSource, HttpSource, ImageSource
from provisioner.values import JsonObject, ObjectRef

RemoteSource = ImageSource | GitSource | HttpSource
OPAQUE = "Opaque"
HEADER_WORD = re.compile(r"[\x21-\x7e]+")
MAX_SHOWN_KEYS = 10


class Way(StrEnum):
    """How a source is opened."""

    REGISTRY = "an image"
    HTTP = "http and git over https"
    SSH = "git over ssh"


@dataclass(frozen=True, slots=True)
class Form:
    """A standard form: all `keys` are needed. A Secret of type Opaque may have any form, as Flux writes them."""

    keys: tuple[str, ...]
    ways: frozenset[Way]
    type: str = OPAQUE

    def fits(self, type_: str, present: Mapping[str, str]) -> bool:
        return type_ in (self.type, OPAQUE) and all(key in present for key in self.keys)

    def __str__(self) -> str:
        return f"{' and '.join(self.keys)} (type {self.type})"


DOCKER_CONFIG = Form((".dockerconfigjson",), frozenset({Way.REGISTRY}), "kubernetes.io/dockerconfigjson")
DOCKER_CFG = Form((".dockercfg",), frozenset({Way.REGISTRY}), "kubernetes.io/dockercfg")
BASIC = Form(("username", "password"), frozenset({Way.REGISTRY, Way.HTTP}), "kubernetes.io/basic-auth")
BEARER = Form(("bearerToken",), frozenset({Way.HTTP}))
SSH = Form(("ssh-privatekey", "known_hosts"), frozenset({Way.SSH}), "kubernetes.io/ssh-auth")
FLUX_SSH = Form(("identity", "known_hosts"), frozenset({Way.SSH}))
FORMS = (DOCKER_CONFIG, DOCKER_CFG, BASIC, BEARER, SSH, FLUX_SSH)


def with_secret(source: RemoteSource, secret: JsonObject) -> RemoteSource:
    """The source with the credentials that a live Secret holds for it, which go to the source's own host only.

    Raises BadSource for a Secret of no form that opens such a source, naming its keys and those expected.
    """
    ref = ObjectRef.of(secret)
    way, place = _way_of(source)
    type_ = str(secret.get("type") or OPAQUE)
    present = {str(key): str(text) for key, text in (secret.get("data") or {}).items() if text}
    suitable = [form for form in FORMS if way in form.ways]
    form = next((form for form in suitable if form.fits(type_, present)), None)
    if form is None:
        keys = ", ".join(sorted(present)[:MAX_SHOWN_KEYS]) or "no keys with a value"
        expected = ", or ".join(map(str, suitable))
        raise BadSource(f"{ref} of type {type_} has {keys}; expected for {way}: {expected}")
    values = {key: _text(ref, key, present[key]) for key in form.keys}
    return replace(source, credentials=_credentials(ref, form, values, place))


def _way_of(source: RemoteSource) -> tuple[Way, Place]:
    if isinstance(source, ImageSource):
        return Way.REGISTRY, image.place_of_image(source)
    place = remote.place_of_repository(source.repository) if isinstance(source, GitSource) else place_of(source.url)
    return (Way.SSH if place.scheme == "ssh" else Way.HTTP), place


def _text(ref: ObjectRef, key: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, ValueError):
        raise BadSource(f"{ref}: the value of its key {key} is no UTF-8 text") from None


def _credentials(ref: ObjectRef, form: Form, values: Mapping[str, str], place: Place) -> Credentials:
    first, *others = values.values()
    if form in (DOCKER_CONFIG, DOCKER_CFG):
        return Credentials(docker_config=_docker_config(ref, form, first))
    host = f"[{place.host}]:{place.port}" if ":" in place.host else f"{place.host}:{place.port}"
    if form is BASIC:
        if ":" in first:
            raise BadSource(f"{ref}: the value of its key username holds a colon, which no user name may")
        return Credentials(host, first, others[0])
    if form is BEARER:
        if not HEADER_WORD.fullmatch(first):
            raise BadSource(f"{ref}: the value of its key bearerToken holds a blank or line break, which no token may")
        return Credentials(host, bearer=first)
    return Credentials(host, ssh_private_key=first, ssh_known_hosts=others[0])


def _docker_config(ref: ObjectRef, form: Form, text: str) -> str:
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
