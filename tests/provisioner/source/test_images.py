"""Images from a real registry: digests, tags that move, indexes, tampering and limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, ForbiddenAddress, Unreachable
from provisioner.source import EgressPolicy, Fetched, ImageSource, fetch
from provisioner.source import image as room
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import Pin
from tests.provisioner.source.places import MIB, OPEN, STRICT
from tests.support.servers.registry import LAYER_TYPE, MANIFEST_TYPE, Registry, digest_of, layer_of

FILES = {"manifests/a.yaml": "kind: A\n", "manifests/b.yaml": "kind: B\n"}


def get(
    ref: str, *, platform: str = "", policy: EgressPolicy = OPEN, max_bytes: int = MIB, pin: Pin | None = None
) -> Fetched:
    source = ImageSource(ref, insecure_http=True, platform=platform, destination="deps")
    return fetch(source, egress=policy, max_bytes=max_bytes, pin=pin)


def files_of(fetched: Fetched) -> dict[str, bytes]:
    return dict(unpack(fetched.archives).files)


def manifest_of(registry: Registry, repository: str, *layers: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    config = registry.push_blob(repository, b"{}", "application/vnd.oci.image.config.v1+json").descriptor()
    return {"schemaVersion": 2, "mediaType": MANIFEST_TYPE, "config": config, "layers": list(layers), **more}


def test_an_image_by_digest_is_fetched_and_pinned_to_it(registry: Registry) -> None:
    digest = registry.push("by-digest:v1", FILES)
    ref = f"{registry.host}/by-digest@{digest}"
    fetched = get(ref)
    assert fetched.pin == Pin("image", ref, digest, "deps")
    assert files_of(fetched) == {path: text.encode() for path, text in FILES.items()}


def test_a_tag_is_pinned_to_the_digest_that_it_has_now(registry: Registry) -> None:
    digest = registry.push("by-tag:v1", FILES)
    assert get(f"{registry.host}/by-tag:v1").pin.digest == digest
    assert get(f"{registry.host}/by-tag:v1@{digest}").pin.digest == digest


def test_a_pin_fetches_what_was_pinned_though_the_tag_moved(registry: Registry) -> None:
    pin = get(f"{registry.host}/moving:{_push(registry, 'moving:v1', 'old')}").pin
    moved = registry.push("moving:v1", {"a.yaml": "new"})
    source = ImageSource(f"{registry.host}/moving:v1", insecure_http=True)
    assert fetch(source, egress=OPEN, max_bytes=MIB).pin.digest == moved != pin.digest
    exact = fetch(source, egress=OPEN, max_bytes=MIB, pin=pin)
    assert (exact.pin.digest, files_of(exact)) == (pin.digest, {"a.yaml": b"old"})
    assert files_of(fetch(source.pinned(pin), egress=OPEN, max_bytes=MIB)) == {"a.yaml": b"old"}


def _push(registry: Registry, ref: str, text: str) -> str:
    registry.push(ref, {"a.yaml": text})
    return ref.partition(":")[2]


def test_a_tampered_layer_is_refused(registry: Registry) -> None:
    registry.push("tampered-layer:v1", {"a.yaml": "tamper with me"})
    blob = layer_of({"a.yaml": "tamper with me"})
    registry.tamper(digest_of(blob), blob[:-1] + bytes([blob[-1] ^ 1]))
    with pytest.raises(DigestMismatch, match=f"a layer has digest .* expected {digest_of(blob)}"):
        get(f"{registry.host}/tampered-layer:v1")


def test_a_tampered_manifest_is_refused_by_digest(registry: Registry) -> None:
    digest = registry.push("tampered-manifest:v1", {"a.yaml": "one"})
    other = registry.manifest("tampered-manifest", registry.push("tampered-manifest:v2", {"a.yaml": "two"}))
    registry.tamper(digest, other)
    with pytest.raises(DigestMismatch, match=f"has digest {digest_of(other)}; expected {digest}"):
        get(f"{registry.host}/tampered-manifest@{digest}")


def test_layers_are_stacked_in_order_with_whiteouts(registry: Registry) -> None:
    lower = layer_of({"a.yaml": "1", "old/b.yaml": "2", "c.yaml": "3"})
    upper = layer_of({"a.yaml": "9", ".wh.old": "", "new.yaml": "4"})
    registry.push("stacked:v1", {}, layers=[lower, upper])
    assert files_of(get(f"{registry.host}/stacked:v1")) == {"a.yaml": b"9", "c.yaml": b"3", "new.yaml": b"4"}


def test_an_artifact_of_plain_files_keeps_their_titles(registry: Registry) -> None:
    blob = registry.push_blob("artifact", b"kind: A\n", "application/yaml")
    title = {"annotations": {"org.opencontainers.image.title": "a.yaml"}}
    registry.push_manifest("artifact", "v1", manifest_of(registry, "artifact", {**blob.descriptor(), **title}))
    assert files_of(get(f"{registry.host}/artifact:v1")) == {"a.yaml": b"kind: A\n"}


@pytest.fixture(scope="module")
def index(registry: Registry) -> str:
    images = {f"linux/{name}": registry.push(f"index:{name}", {"a.yaml": name}) for name in ("amd64", "arm64", "s390x")}
    return registry.push_index("index:all", images)


@pytest.mark.parametrize("platform", ["linux/amd64", "linux/arm64", "linux/s390x"])
def test_a_platform_chooses_from_an_index_and_the_index_is_pinned(
    registry: Registry, index: str, platform: str
) -> None:
    fetched = get(f"{registry.host}/index:all", platform=platform)
    assert fetched.pin.digest == index
    assert files_of(fetched) == {"a.yaml": platform.partition("/")[2].encode()}


def test_without_a_platform_it_is_the_same_one_everywhere(registry: Registry, index: str) -> None:
    assert files_of(get(f"{registry.host}/index@{index}")) == {"a.yaml": b"amd64"}


def test_an_unknown_platform_names_those_that_there_are(registry: Registry, index: str) -> None:
    with pytest.raises(BadSource, match="no image for windows/amd64; it has linux/amd64, linux/arm64, linux/s390x"):
        get(f"{registry.host}/index:all", platform="windows/amd64")


def test_the_only_image_of_an_index_is_taken_unless_another_was_asked_for(registry: Registry) -> None:
    registry.push_index("only:all", {"linux/riscv64": registry.push("only:v1", {"a.yaml": "only"})})
    assert files_of(get(f"{registry.host}/only:all")) == {"a.yaml": b"only"}
    with pytest.raises(BadSource, match="has no image for linux/amd64; it has linux/riscv64"):
        get(f"{registry.host}/only:all", platform="linux/amd64")


def test_an_index_in_an_index_is_refused(registry: Registry, index: str) -> None:
    entry = {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": index, "size": 1}
    nested = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json"}
    registry.push_manifest("index", "nested", {**nested, "manifests": [{**entry, "platform": {}}]})
    with pytest.raises(BadSource, match="its index holds another index"):
        get(f"{registry.host}/index:nested")


class TestLimits:
    def test_more_layers_than_allowed(self, registry: Registry) -> None:
        blob = registry.push_blob("many", layer_of({"a.yaml": "1"}), LAYER_TYPE).descriptor()
        registry.push_manifest("many", "v1", manifest_of(registry, "many", *[blob] * (room.MAX_LAYERS + 1)))
        with pytest.raises(BundleTooLarge, match=f"has {room.MAX_LAYERS + 1} layers; the limit is {room.MAX_LAYERS}"):
            get(f"{registry.host}/many:v1")

    def test_all_layers_together_are_bounded(self, registry: Registry) -> None:
        blob = layer_of({"a.yaml": "1"})
        registry.push("together:v1", {}, layers=[blob, blob])
        assert get(f"{registry.host}/together:v1", max_bytes=2 * len(blob))
        with pytest.raises(BundleTooLarge, match=f"has {len(blob)} bytes; {len(blob) - 1} are left .*max_bytes"):
            get(f"{registry.host}/together:v1", max_bytes=2 * len(blob) - 1)

    def test_a_bomb_of_layers_is_stopped_while_unpacking(self, registry: Registry) -> None:
        bombs = [layer_of({f"{number}.yaml": bytes(12 * MIB)}) for number in range(3)]
        registry.push("bombs:v1", {}, layers=bombs)
        fetched = get(f"{registry.host}/bombs:v1")
        with pytest.raises(BundleTooLarge, match="max_bytes"):
            unpack(fetched.archives, limits=UnpackLimits(max_bytes=30 * MIB))

    def test_a_manifest_over_4_mib(self, registry: Registry) -> None:
        digest = registry.push("large:v1", {"a.yaml": "large manifest"})
        registry.tamper(digest, b'{"schemaVersion": 2' + b" " * room.MAX_MANIFEST_BYTES + b"}")
        with pytest.raises((BundleTooLarge, BadSource, Unreachable)):
            get(f"{registry.host}/large@{digest}")


ODD = {
    "no layers": ({"layers": []}, "has no layers"),
    "layers that are no list": ({"layers": {}}, "has no layers"),
    "a layer that is no object": ({"layers": ["x"]}, "no sha256 digest"),
    "a layer without a digest": ({"layers": [{"size": 1}]}, "no sha256 digest"),
    "a climbing digest": ({"layers": [{"digest": "sha256:../../../x", "size": 1}]}, "no sha256 digest"),
    "sha512": ({"layers": [{"digest": f"sha512:{'0' * 128}", "size": 1}]}, "no sha256 digest"),
    "a negative size": ({"layers": [{"digest": f"sha256:{'0' * 64}", "size": -1}]}, "has no size"),
    "no size": ({"layers": [{"digest": f"sha256:{'0' * 64}"}]}, "has no size"),
    "a foreign layer": (
        {"layers": [{"digest": f"sha256:{'0' * 64}", "size": 1, "urls": ["http://10.0.0.1/"],
                     "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"}]},
        "foreign",
    ),
    "schema 1": ({"schemaVersion": 1, "layers": [{}]}, "schema 2"),
    "index and image at once": ({"manifests": [], "layers": [{}]}, "index and an image at once"),
    "manifests that are no list": ({"manifests": {"a": 1}}, "it has none"),
    "an index of strings": ({"manifests": ["x"]}, "without a platform"),
    "a climbing digest in an index": ({"manifests": [{"digest": "../x", "platform": {"os": "linux", "architecture": "amd64"}}]}, "linux/amd64"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "words"), ODD.values(), ids=ODD)
def test_an_odd_manifest_is_refused_in_words(http_server, body: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSource, match=words):
        _served(http_server, json.dumps({"schemaVersion": 2, **body}).encode())


def _served(http_server, manifest: bytes, headers: Mapping[str, str] | None = None, ref: str = ":v1") -> Fetched:
    """Fetch from a registry that serves this one manifest, whatever a real one would refuse."""
    name = ref.lstrip(":@")
    http_server.serve(f"/v2/odd/manifests/{name}", manifest, headers=headers)
    return get(f"{http_server.url.removeprefix('http://')}/odd{ref}")


NO_JSON = {"text": b"<html>", "a list": b"[]", "deep": b"[" * 100_000, "not UTF-8": b'{"a": "\xff"}', "nothing": b""}


@pytest.mark.parametrize("body", NO_JSON.values(), ids=NO_JSON)
def test_a_manifest_that_is_none_is_refused(http_server, body: bytes) -> None:
    with pytest.raises(BadSource, match="manifest"):
        _served(http_server, body)


def test_a_manifest_of_another_digest_is_refused_whoever_serves_it(http_server) -> None:
    body = json.dumps({"schemaVersion": 2, "layers": [{}]}).encode()
    with pytest.raises(DigestMismatch, match=f"has digest {digest_of(body)}; expected sha256:{'0' * 64}"):
        _served(http_server, body, ref=f"@sha256:{'0' * 64}")


def test_a_registry_that_contradicts_itself_about_a_tag_is_refused(http_server) -> None:
    with pytest.raises(DigestMismatch):
        _served(http_server, b'{"schemaVersion": 2}', {"Docker-Content-Digest": f"sha256:{'1' * 64}"})


def test_a_manifest_without_end_stops_at_4_mib(http_server) -> None:
    with pytest.raises(BundleTooLarge, match=str(room.MAX_MANIFEST_BYTES)):
        _served(http_server, b" " * (room.MAX_MANIFEST_BYTES + 1))


def test_a_layer_longer_than_told_is_refused(http_server) -> None:
    layer = layer_of({"a.yaml": "1"})
    http_server.serve(f"/v2/odd/blobs/{digest_of(layer)}", layer)
    manifest = {"schemaVersion": 2, "layers": [{"digest": digest_of(layer), "size": len(layer) - 1}]}
    with pytest.raises(DigestMismatch, match=f"and {len(layer)} bytes; .*and {len(layer) - 1}"):
        _served(http_server, json.dumps(manifest).encode())


def test_s18_a_blob_that_redirects_inside_is_refused(http_server) -> None:
    digest = f"sha256:{'2' * 64}"
    target = {"Location": "http://169.254.169.254/latest"}
    http_server.serve(f"/v2/odd/blobs/{digest}", status=307, headers=target)
    manifest = json.dumps({"schemaVersion": 2, "layers": [{"digest": digest, "size": 3}]}).encode()
    with pytest.raises(BadSource, match="another host"):
        _served(http_server, manifest)


REFERENCES = {
    "empty": "",
    "a scheme": "https://registry.example/a:v1",
    "upper case": "registry.example/Repository:v1",
    "climbing": "registry.example/../a:v1",
    "a short digest": "registry.example/a@sha256:abc",
    "sha512": f"registry.example/a@sha512:{'0' * 128}",
    "a query": "registry.example/a:v1?x=y",
    "a blank": "registry.example/a :v1",
    "a line break": "registry.example/a:v1\n",
    "credentials": "user:hunter2@registry.example/a:v1",
    "an empty tag": "registry.example/a:",
    "a tag too long": f"registry.example/a:{'x' * 129}",
}


@pytest.mark.parametrize("ref", REFERENCES.values(), ids=REFERENCES)
def test_what_is_no_reference_is_refused_before_anything_is_asked(ref: str) -> None:
    with pytest.raises(BadSource, match="no image reference"):
        get(ref)


def test_what_is_not_there_is_a_bad_source(registry: Registry) -> None:
    with pytest.raises(BadSource, match="answered 404"):
        get(f"{registry.host}/never:pushed")


def test_plain_http_needs_the_source_and_the_operator(registry: Registry) -> None:
    digest = registry.push("plain:v1", FILES)
    with pytest.raises(BadSource, match="expected https; PRATIQUE_PLAIN_HTTP_HOSTS"):
        get(f"{registry.host}/plain@{digest}", policy=replace(OPEN, plain_http_hosts=()))
    with pytest.raises(Unreachable):  # without insecure_http it speaks TLS, whatever the operator allows
        fetch(ImageSource(f"{registry.host}/plain@{digest}"), egress=OPEN, max_bytes=MIB)


def test_s18_a_registry_on_this_machine_is_refused(registry: Registry) -> None:
    port = registry.host.rpartition(":")[2]
    for host in ("127.0.0.1", "localhost", "127.1", "2130706433", "[::1]"):
        with pytest.raises(ForbiddenAddress):
            get(f"{host}:{port}/a:v1", policy=replace(STRICT, plain_http_hosts=("*",)))
