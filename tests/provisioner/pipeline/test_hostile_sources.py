"""Several sources of which one is hostile, or each of which is within its bounds: refused by name, and nothing is made."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from provisioner import pipeline
from provisioner.errors import (
    BadBundle,
    BadConfig,
    BadSource,
    BundleTooLarge,
    DigestMismatch,
    ForbiddenAddress,
    PratiqueError,
    Unreachable,
    UnsafePath,
)
from provisioner.render import BUILT_IN
from provisioner.source import EgressPolicy, HttpSource, Source
from provisioner.unpack import UnpackLimits
from provisioner.values import Content
from tests.provisioner.pipeline.staging import CONFIG_MAP
from tests.support.servers.hostile import HASTY, HERE, Speaker
from tests.support.servers.http import FileServer, Reply

MAP = (CONFIG_MAP % ("one", "x")).encode()
CHART = {"Chart.yaml": b"apiVersion: v2\nname: shop\nversion: 1.0.0\n", "templates/one.yaml": MAP}
CSV = b"""\
apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: shop.v1.0.0}
spec:
  installModes: [{type: AllNamespaces, supported: true}]
  install: {strategy: deployment, spec: {deployments: []}}
"""
PACKAGE = b"annotations: {operators.operatorframework.io.bundle.package.v1: shop}\n"
BUNDLE = {"manifests/csv.yaml": CSV, "metadata/annotations.yaml": PACKAGE}
# By format: a sound source, and what beside it is a source of manifests.
SOUND: dict[str, Mapping[str, bytes]] = {"plain": {"one.yaml": MAP}, "helm": CHART, "registry-v1": BUNDLE}
BESIDE = {"two.yaml": (CONFIG_MAP % ("two", "y")).encode()}
FORMATS = pytest.mark.parametrize("name", list(SOUND))


def packed(files: Mapping[str, bytes], link: str = "") -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        if link:
            entry = tarfile.TarInfo("link.yaml")
            entry.type, entry.linkname = tarfile.SYMTYPE, link
            archive.addfile(entry)
    return whole.getvalue()


class Sources:
    """Served one by one, each at a destination of its own; `asked` are the paths that were fetched."""

    def __init__(self, server: FileServer):
        self.server = server
        self.made: list[Source] = []

    def add(self, body: bytes | Mapping[str, bytes], *, destination: str | None = None, **how: Any) -> None:
        number = len(self.made)
        data = body if isinstance(body, bytes) else packed(body)
        url = self.server.serve_reply(f"/{number}.tar.gz", how.pop("reply", Reply(data)))
        folder = destination if destination is not None else f"s{number}" if number else ""
        checksum = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.made.append(HttpSource(url, **{"checksum": checksum, "destination": folder, **how}))

    def prepare(self, name: str, *, egress: EgressPolicy = HERE, **more: Any) -> Content:
        return pipeline.prepare(
            self.made,
            options=pipeline.PrepareOptions("shop", "installer", format=name, config=more.pop("config", {})),
            egress=egress,
            credentials=None,
            limits=UnpackLimits(**more),
            is_namespaced=BUILT_IN.get,
        )

    @property
    def fetched(self) -> list[str]:
        return [one.path for one in self.server.asked]


@pytest.fixture
def sources(http_server: FileServer) -> Sources:
    http_server.forget()
    return Sources(http_server)


@FORMATS
def test_a_sound_source_beside_another_is_rendered(sources: Sources, name: str) -> None:
    sources.add(SOUND[name])
    sources.add(BESIDE)
    assert "two" in [one.ref.name for one in sources.prepare(name).manifests]


HOSTILE: dict[str, tuple[dict[str, Any], type[PratiqueError], str]] = {
    "another digest": ({"checksum": "sha256:" + "0" * 64}, DigestMismatch, "sha256:0000"),
    "a redirect to the metadata address": (
        {"reply": Reply(b"", 302, {"Location": "http://169.254.169.254/latest/meta-data/"})},
        BadSource,
        "leads to 169.254.169.254, another host",
    ),
    "a server that is away": ({"reply": Reply(b"", 503)}, Unreachable, "503"),
    "a link out of it": ({"link": "/etc/passwd"}, UnsafePath, "link.yaml"),
    "a path out of it": ({"files": {"../../templates/two.yaml": MAP}}, UnsafePath, "climbs"),
}


@FORMATS
@pytest.mark.parametrize("how", list(HOSTILE))
def test_one_hostile_source_beside_a_sound_one_is_named_and_nothing_is_made(
    sources: Sources, name: str, how: str
) -> None:
    about, error, words = HOSTILE[how]
    rest = {key: value for key, value in about.items() if key not in ("link", "files")}
    sources.add(SOUND[name])
    sources.add(packed(about.get("files", BESIDE), about.get("link", "")), **rest)
    with pytest.raises(error, match=words) as caught:
        sources.prepare(name)
    assert str(caught.value).startswith("sources[1]: ")


@FORMATS
def test_s18_a_redirect_to_the_metadata_address_is_refused_though_its_host_is_listed(
    sources: Sources, name: str
) -> None:
    sources.add(SOUND[name])
    sources.add(BESIDE, reply=Reply(b"", 302, {"Location": "http://169.254.169.254/latest/meta-data/"}))
    with pytest.raises(ForbiddenAddress, match=r"sources\[1\]: .*169\.254\.169\.254"):
        sources.prepare(name, egress=replace(HERE, allowed_hosts=("169.254.169.254",)))


@FORMATS
def test_many_files_of_many_sources_together_are_bounded_before_the_last_is_fetched(
    sources: Sources, name: str
) -> None:
    """16 sources of 6,250 files each would be 100,000; each alone is within its bounds."""
    sources.add(SOUND[name])
    for number in range(1, 16):
        sources.add({f"{number}-{index}.txt": b"" for index in range(50)})
    with pytest.raises(BundleTooLarge, match=r"all sources together have more than 120 files.*max_entries"):
        sources.prepare(name, max_entries=120)
    assert len(sources.fetched) == 4


@FORMATS
def test_many_bytes_of_many_sources_together_are_bounded_before_the_last_is_fetched(
    sources: Sources, name: str
) -> None:
    sources.add(SOUND[name])
    for _ in range(1, 16):
        sources.add({"large.txt": b"x" * 50_000})
    with pytest.raises(BundleTooLarge, match=r"all sources together are .* bytes; the limit max_bytes .* is 120000"):
        sources.prepare(name, max_bytes=120_000)
    assert len(sources.fetched) == 4


@FORMATS
@pytest.mark.parametrize("folder", ["templates", "charts", "charts/evil", "crds", "manifests", "metadata"])
def test_no_source_puts_files_into_the_bundle_of_another(sources: Sources, name: str, folder: str) -> None:
    """What it brings is read as manifests of its own, or nothing is made of either."""
    evil = (CONFIG_MAP % ("evil", "{{ .Release.Name }}")).encode()
    sources.add({path: data for path, data in SOUND[name].items() if not path.startswith(f"{folder}/")})
    sources.add({"evil.yaml": evil}, destination=folder)
    try:
        content = sources.prepare(name)
    except (BadBundle, BadConfig):
        return
    made = [one.body for one in content.everything if one.ref.name == "evil"]
    assert [one["data"] for one in made] == [{"a": "{{ .Release.Name }}"}]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../etc/passwd", "values/../../etc/passwd", "s1", "s1/", "s2/two.yaml"]
)
def test_values_come_from_the_sources_alone(sources: Sources, path: str) -> None:
    sources.add(CHART)
    sources.add({"two.yaml": b"text: x\n"})
    with pytest.raises(BadConfig, match="no source has the file"):
        sources.prepare("helm", config={"valuesFiles": [path]})


def test_values_of_another_source_that_grow_are_bounded(sources: Sources) -> None:
    layers = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 9))
    sources.add(CHART)
    sources.add({"prod.yaml": f"l0: &l0 [x, x]\n{layers}".encode()})
    with pytest.raises(BundleTooLarge):
        sources.prepare("helm", config={"valuesFiles": ["s1/prod.yaml"]})


def test_a_template_that_takes_all_memory_fails_beside_sound_manifests(sources: Sources) -> None:
    bomb = '{{- $a := list "x" }}{{- range until 60 }}{{- $a = concat $a $a }}{{- end }}\n'
    sources.add({**CHART, "templates/bomb.yaml": bomb.encode()})
    sources.add(BESIDE)
    with pytest.raises((BadBundle, BundleTooLarge)):
        sources.prepare("helm")


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that listens and never says a word."""
    speaker = Speaker(lambda connection: list(iter(lambda: connection.recv(1024), b""))[:0])
    yield f"http://{speaker.host}/bundle.tar.gz"
    speaker.stop()


@FORMATS
def test_a_silent_source_is_left_and_named(sources: Sources, silent: str, name: str) -> None:
    sources.add(SOUND[name])
    sources.made.append(HttpSource(silent, checksum=f"sha256:{'0' * 64}", destination="s1"))
    with pytest.raises(Unreachable, match=r"sources\[1\]: "):
        sources.prepare(name, egress=HASTY)
