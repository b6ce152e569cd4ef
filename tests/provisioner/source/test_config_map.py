"""ConfigMaps as bundles: keys are files, and the pin says which ConfigMap it was and in which state."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, UnsafePath
from provisioner.source import ConfigMapSource, EgressPolicy, Fetched, fetch
from provisioner.unpack import unpack
from provisioner.values import JsonObject, Pin

NOTHING = EgressPolicy()


def config_map(*, uid: str = "1-2-3", version: str = "7", **more: Any) -> JsonObject:
    meta = {"name": "bundle", "namespace": "harbour", "uid": uid, "resourceVersion": version}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, **more}


def get(given: JsonObject, *, max_bytes: int = 1_000_000, pin: Pin | None = None) -> Fetched:
    source = ConfigMapSource.of(given, destination="manifests")
    return fetch(source, egress=NOTHING, max_bytes=max_bytes, pin=pin)


TEXT = config_map(data={"a.yaml": "kind: Ä\n"})


def test_texts_and_bytes_are_files_by_their_keys() -> None:
    given = config_map(data={"a.yaml": "kind: Ä\n"}, binaryData={"b.bin": base64.b64encode(b"\x00\xff").decode()})
    assert unpack(get(given).archives).files == {"a.yaml": "kind: Ä\n".encode(), "b.bin": b"\x00\xff"}


def test_the_pin_names_the_config_map_and_its_place() -> None:
    pin = get(TEXT).pin
    assert (pin.kind, pin.reference, pin.destination) == ("configMap", "harbour/bundle", "manifests")
    assert get(TEXT, pin=pin).pin == pin


CHANGED = {
    "made again": config_map(uid="4-5-6", data={"a.yaml": "kind: Ä\n"}),
    "written again": config_map(version="8", data={"a.yaml": "kind: Ä\n"}),
    "another text": config_map(data={"a.yaml": "kind: B\n"}),
    "another key": config_map(data={"b.yaml": "kind: Ä\n"}),
    "one key more": config_map(data={"a.yaml": "kind: Ä\n", "b.yaml": ""}),
}


@pytest.mark.parametrize("other", CHANGED.values(), ids=CHANGED)
def test_another_state_is_another_pin(other: JsonObject) -> None:
    pin = get(TEXT).pin
    assert get(other).pin.digest != pin.digest
    with pytest.raises(DigestMismatch):
        get(other, pin=pin)


def test_the_order_of_keys_says_nothing() -> None:
    one, other = ({"a.yaml": "1", "b.yaml": "2"}, {"b.yaml": "2", "a.yaml": "1"})
    assert get(config_map(data=one)).pin == get(config_map(data=other)).pin


def test_an_empty_one_is_no_bundle() -> None:
    with pytest.raises(BadSource, match="ConfigMap harbour/bundle: holds no files"):
        get(config_map())


def test_bytes_that_are_no_base64_are_refused() -> None:
    with pytest.raises(BadSource, match=r"ConfigMap harbour/bundle: the key b\.bin of its binaryData is no base64"):
        get(config_map(binaryData={"b.bin": "%"}))


def test_all_files_together_are_bounded() -> None:
    given = config_map(data={"a.yaml": "x" * 60, "b.yaml": "x" * 60})
    assert get(given, max_bytes=120).archives
    with pytest.raises(BundleTooLarge, match="has 120 bytes; the limit is 119"):
        get(given, max_bytes=119)


@pytest.mark.parametrize("key", ["../a.yaml", "/etc/a.yaml"], ids=["climbing", "absolute"])
def test_a_key_that_no_server_would_take_leads_nowhere(key: str) -> None:
    with pytest.raises(UnsafePath):
        unpack(get(config_map(data={key: "kind: A"})).archives)
