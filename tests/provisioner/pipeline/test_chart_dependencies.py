"""Charts that their sources do not bring: fetched by the rules of sources, pinned, rendered, and refused by name."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
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
    SourceUnavailable,
    Unreachable,
)
from provisioner.render import BUILT_IN
from provisioner.source import Credentials, EgressPolicy, HttpSource, ImageSource, LocalSource, Source
from provisioner.unpack import UnpackLimits
from provisioner.values import Content, Pin
from tests.support.provisioner.charts import packed, texts
from tests.support.provisioner.dependencies import archive, chart_with, index, needs, subchart
from tests.support.servers.hostile import HASTY, HERE
from tests.support.servers.http import FileServer, Reply
from tests.support.servers.registry import Registry

LISTED = replace(HERE, plain_http_hosts=("127.0.0.1",))


def write(folder: Path, files: Mapping[str, bytes]) -> LocalSource:
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
    return LocalSource(str(folder))


def prepare(
    *sources: Source,
    egress: EgressPolicy = LISTED,
    credentials: Credentials | None = None,
    pins: Sequence[Pin] = (),
    config: Mapping[str, Any] | None = None,
    **limits: int,
) -> Content:
    return pipeline.prepare(
        sources,
        options=pipeline.PrepareOptions("shop", "installer", format="helm", config=config or {}),
        egress=egress,
        credentials=credentials,
        limits=UnpackLimits(**limits),
        is_namespaced=BUILT_IN.get,
        pins=pins,
    )


@dataclass
class Charts:
    """A Helm repository with base 1.0.0, and a chart in a folder that needs it."""

    server: FileServer
    folder: Path

    @property
    def repository(self) -> str:
        return f"{self.server.url}/stable"

    def serve(self, text: str = "one", *, url: str = "base-1.0.0.tgz", checksum: bool = False) -> None:
        data = archive("base", text)
        self.server.serve("/stable/base-1.0.0.tgz", data)
        self.server.serve("/stable/index.yaml", index(("base", "1.0.0", url, data if checksum else None)))

    def source(self, **more: Any) -> LocalSource:
        return write(self.folder / "chart", chart_with(needs("base", self.repository), **more))

    @property
    def asked(self) -> list[str]:
        return [one.path for one in self.server.asked]


@pytest.fixture
def charts(http_server: FileServer, tmp_path: Path) -> Iterator[Charts]:
    http_server.forget()
    yield Charts(http_server, tmp_path)
    http_server.forget()


def test_dependencies_of_all_kinds_are_fetched_and_pinned_and_rendered_again_from_their_pins(
    charts: Charts, registry: Registry, tmp_path: Path
) -> None:
    charts.serve(checksum=True)
    repository = f"oci://{registry.host}/charts"
    first = registry.push("charts/cache:1.0.0_b", {}, layers=[archive("cache", version="1.0.0+b")])
    asked = (needs("base", charts.repository), needs("cache", repository), needs("near", "file://../lib/near"))
    files = {f"web/{path}": data for path, data in chart_with(*asked, locked=["1.0.0", "1.0.0+b", "1.0.0"]).items()}
    near = {f"lib/near/{path}": data for path, data in subchart("near").items()}
    source = write(tmp_path, {**files, **near})
    content = prepare(source)
    assert texts(content) == {"own": "own", "base": "one", "cache": "one", "near": "one"}
    assert [(pin.kind, pin.reference, pin.destination) for pin in content.pins[1:]] == [
        ("dependency", f"{charts.repository}/base:1.0.0", "web/charts/base-1.0.0.tgz"),
        ("dependency", f"{repository}/cache:1.0.0+b", "web/charts/cache-1.0.0+b.tgz"),
    ]
    assert content.pins[2].digest == first
    charts.serve("two")
    registry.push("charts/cache:1.0.0_b", {}, layers=[archive("cache", "two", "1.0.0+b")])
    changed = prepare(source)
    assert texts(changed) == {"own": "own", "base": "two", "cache": "two", "near": "one"}
    assert {pin.digest for pin in changed.pins[1:]}.isdisjoint({pin.digest for pin in content.pins[1:]})
    with pytest.raises(DigestMismatch, match=r"dependency base 1\.0\.0: .* expected"):
        prepare(source, pins=content.pins)
    charts.serve()
    assert prepare(source, pins=content.pins) == content


def test_an_archive_over_http_and_one_of_a_registry_have_dependencies_too(charts: Charts, registry: Registry) -> None:
    charts.serve()
    whole = packed(chart_with(needs("base", charts.repository)))
    url = charts.server.serve("/shop-1.2.3.tgz", whole)
    registry.push("shop:1.2.3", {}, layers=[whole])
    for source in (HttpSource(url), ImageSource(f"{registry.host}/shop:1.2.3", insecure_http=True)):
        assert texts(prepare(source)) == {"own": "own", "base": "one"}


HOSTILE: dict[str, tuple[Mapping[str, Reply], type[PratiqueError], str]] = {
    "no index": ({"index.yaml": Reply(b"", 404)}, SourceUnavailable, "answered 404"),
    "an index that is none": ({"index.yaml": Reply(b"<html>")}, BadBundle, "no index of a Helm repository"),
    "an index without the version": (
        {"index.yaml": Reply(index(("base", "1.0.1", "base-1.0.1.tgz", None)))},
        SourceUnavailable,
        r"index\.yaml has no base 1\.0\.0",
    ),
    "an index of a gigabyte": (
        {"index.yaml": Reply(b"", headers={"Content-Length": str(2**30)})},
        BundleTooLarge,
        "more than .* bytes",
    ),
    "an index that never ends": (
        {"index.yaml": Reply(iter(lambda: b"#" * 2**20, b""))},
        BundleTooLarge,
        "more than .* bytes",
    ),
    "an index that leads to the metadata address": (
        {"index.yaml": Reply(b"", 302, {"Location": "https://169.254.169.254/latest/"})},
        BadSource,
        "leads to 169.254.169.254, another host",
    ),
    "an archive at the metadata address": (
        {"index.yaml": Reply(index(("base", "1.0.0", "https://169.254.169.254/base.tgz", None)))},
        ForbiddenAddress,
        "169.254.169.254",
    ),
    "an archive in a file": (
        {"index.yaml": Reply(index(("base", "1.0.0", "file:///etc/passwd", None)))},
        SourceUnavailable,
        "or no address to fetch it from",
    ),
    "an archive at a host that Docker Hub has a folder of": (
        {"index.yaml": Reply(index(("base", "1.0.0", "oci://internal/base:1.0.0", None)))},
        BadSource,
        "'internal' has neither a dot nor a port",
    ),
    "an archive that leads elsewhere": (
        {"base-1.0.0.tgz": Reply(b"", 302, {"Location": "https://169.254.169.254/latest/"})},
        BadSource,
        "leads to 169.254.169.254, another host",
    ),
    "other bytes than its index says": (
        {"index.yaml": Reply(index(("base", "1.0.0", "base-1.0.0.tgz", b"other")))},
        DigestMismatch,
        "its checksum is",
    ),
    "another chart": ({"base-1.0.0.tgz": Reply(archive("evil"))}, BadBundle, "holds 'evil'"),
    "a server that is away": ({"base-1.0.0.tgz": Reply(b"", 503)}, Unreachable, "503"),
}


@pytest.mark.parametrize("how", list(HOSTILE))
def test_a_hostile_repository_is_refused_and_the_dependency_named(charts: Charts, how: str) -> None:
    replies, error, words = HOSTILE[how]
    charts.serve()
    for path, reply in replies.items():
        charts.server.serve_reply(f"/stable/{path}", reply)
    with pytest.raises(error, match=words) as caught:
        prepare(charts.source(), max_bytes=2**22)
    assert str(caught.value).startswith("the chart's dependency base 1.0.0: ")


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("https://169.254.169.254/charts", "not a public address"),
        ("oci://169.254.169.254/charts", "not a public address"),
        ("https://user:word@example.com/x", "holds credentials"),
        ("https://example.com/ours/%2e./theirs", r"its path holds \. or \.\."),
        (
            "oci://internal/charts",
            "'internal' has neither a dot nor a port, so that it could be a folder of Docker Hub",
        ),
    ],
)
def test_S18_a_dependency_is_fetched_from_no_address_that_a_source_may_not_have(
    charts: Charts, repository: str, words: str
) -> None:
    source = write(charts.folder, chart_with(needs("base", repository)))
    with pytest.raises((ForbiddenAddress, BadSource), match=words):
        prepare(source, egress=EgressPolicy())


def test_a_repository_is_asked_over_tls_unless_its_host_is_listed(charts: Charts) -> None:
    charts.serve()
    for hosts in ((), ("*",)):  # which is for what is named on the command line
        with pytest.raises(BadSource, match="PRATIQUE_PLAIN_HTTP_HOSTS"):
            prepare(charts.source(), egress=replace(LISTED, plain_http_hosts=hosts))
    assert not charts.asked


def test_all_dependencies_together_have_the_time_of_one_source(charts: Charts) -> None:
    charts.serve()
    drip = iter(lambda: b"#", b"")
    charts.server.serve_reply("/stable/index.yaml", Reply(drip))
    with pytest.raises(Unreachable, match=r"dependency base 1\.0\.0: .*not finished within 1 s"):
        prepare(charts.source(), egress=replace(HASTY, plain_http_hosts=("127.0.0.1",)), max_bytes=2**30)


@pytest.mark.parametrize(("asked", "listed"), [("1.0.0", "v1.0.0"), ("v1.0.0", "1.0.0")])
def test_a_version_with_a_v_is_the_one_without(charts: Charts, asked: str, listed: str) -> None:
    charts.server.serve("/stable/base.tgz", archive("base", version=listed))
    charts.server.serve("/stable/index.yaml", index(("base", listed, "base.tgz", None)))
    chart = chart_with(needs("base", charts.repository, asked), locked=None)
    assert texts(prepare(write(charts.folder / "chart", chart)))["base"] == "one"


def test_a_chart_that_brings_all_is_never_asked_for(charts: Charts) -> None:
    source = charts.source()
    write(charts.folder / "chart", {"charts/base-1.0.0.tgz": archive("base", "brought")})
    assert texts(prepare(source))["base"] == "brought"
    assert not charts.asked


def test_S08_a_dependency_is_shown_the_credentials_of_the_chart_at_the_same_host_only(
    charts: Charts, registry_with_auth: Registry
) -> None:
    user, password = registry_with_auth.credentials or ("", "")
    pair = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"
    charts.serve()
    registry_with_auth.push("charts/cache:1.0.0", {}, layers=[archive("cache")])
    asked = (needs("base", charts.repository), needs("cache", f"oci://{registry_with_auth.host}/charts"))
    source = write(charts.folder / "chart", chart_with(*asked))
    with pytest.raises(SourceUnavailable, match=r"dependency cache 1\.0\.0: .*may not read it"):
        prepare(source, credentials=Credentials(charts.server.url.partition("//")[2], user, password))
    assert {one.headers.get("authorization") for one in charts.server.asked} == {pair}
    charts.server.asked.clear()
    given = Credentials(registry_with_auth.host, user, password)
    assert texts(prepare(source, credentials=given))["cache"] == "one"
    assert {one.headers.get("authorization") for one in charts.server.asked} == {None}


@pytest.mark.parametrize(
    ("repository", "words"),
    [
        ("file:///etc", "is no folder with a Chart.yaml in what was fetched"),
        ("file://../../elsewhere", "is no folder with a Chart.yaml in what was fetched"),
        ("file://../.hidden/..", "is, or holds, the chart"),
        ("file://.", "is, or holds, the chart"),
        ("file://..", "is, or holds, the chart"),
        ("file://../lib/none", "is no folder with a Chart.yaml in what was fetched"),
    ],
)
def test_a_folder_outside_of_the_source_or_the_chart_itself_is_no_dependency(
    tmp_path: Path, repository: str, words: str
) -> None:
    files = {f"web/{path}": data for path, data in chart_with(needs("base", repository)).items()}
    with pytest.raises(BadBundle, match=words):
        prepare(write(tmp_path, files))


def test_one_of_several_charts_of_a_source_needs_another_one_beside_it(tmp_path: Path) -> None:
    web = chart_with(needs("base", "file://../base"))
    files = {f"web/{path}": data for path, data in web.items()}
    files |= {f"base/{path}": data for path, data in subchart("base").items()} | {"README.md": b""}
    source = write(tmp_path, files)
    with pytest.raises(BadBundle, match=r"several charts \(base, web\): name one in config\.path"):
        prepare(source)
    content = prepare(source, config={"path": "web"})
    assert texts(content) == {"own": "own", "base": "one"}
    assert content.unused.paths == ("README.md",)
    placed = prepare(replace(source, destination="all/charts"), config={"path": "all/charts/web/"})
    assert texts(placed) == texts(content)
    with pytest.raises(BadConfig, match=r"config\.path: expected the folder of a chart; no source has 'none/Chart"):
        prepare(source, config={"path": "none"})


def test_folders_that_are_dependencies_count_to_the_limit_of_the_bundle(tmp_path: Path) -> None:
    web = {f"web/{path}": data for path, data in chart_with(needs("near", "file://../near")).items()}
    near = {f"near/{path}": data for path, data in subchart("near", noise=random.Random(1).randbytes(2**19)).items()}
    source = write(tmp_path, {**web, **near})
    assert texts(prepare(source, config={"path": "web"}))["near"] == "one"
    with pytest.raises(BundleTooLarge, match=r"dependency near 1\.0\.0: .*PRATIQUE_MAX_BUNDLE_MIB"):
        prepare(source, config={"path": "web"}, max_bytes=2**20)


def test_a_folder_of_another_source_is_outside(tmp_path: Path) -> None:
    web = write(tmp_path / "a", chart_with(needs("base", "file://../lib/more/base")))
    lib = write(tmp_path / "b", {f"more/base/{path}": data for path, data in subchart("base").items()})
    with pytest.raises(BadBundle, match="is no folder with a Chart.yaml in what was fetched of the chart's source"):
        prepare(replace(web, destination="web"), replace(lib, destination="lib"))
