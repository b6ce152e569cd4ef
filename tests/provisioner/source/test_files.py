"""ConfigMaps as bundles: keys are files, and the pin says which ConfigMap it was and in which state."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import BadSource, BundleTooLarge, DigestMismatch, UnsafePath
from provisioner.source import ConfigMapSource, EgressPolicy, Fetched, LocalSource, fetch
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


def read(path: Path, max_bytes: int = 1_000_000) -> Fetched:
    return fetch(LocalSource(str(path)), egress=EgressPolicy(), max_bytes=max_bytes)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "bundle"
    (made / "manifests").mkdir(parents=True)
    (made / "manifests" / "a.yaml").write_bytes(b"kind: A\n")
    (made / "b.yaml").write_bytes(b"kind: B\n")
    return made


def test_a_folder_comes_whole_without_version_control(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("secret")
    (folder / "manifests" / ".git").write_text("gitdir: elsewhere")
    assert unpack(read(folder).archives).files == {"b.yaml": b"kind: B\n", "manifests/a.yaml": b"kind: A\n"}


def test_the_pin_depends_on_names_and_contents_only(folder: Path) -> None:
    first = read(folder).pin
    os.utime(folder / "b.yaml", (1, 1))
    (folder / "b.yaml").chmod(0o600)
    assert read(folder).pin == first
    assert (first.kind, first.reference) == ("local", str(folder))
    (folder / "b.yaml").write_bytes(b"kind: C\n")
    assert read(folder).pin != first


def test_a_single_file_keeps_its_name(folder: Path) -> None:
    assert unpack(read(folder / "b.yaml").archives).files == {"b.yaml": b"kind: B\n"}


def test_what_is_not_there_is_said_so(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadSource, match="it is a pipe or a device: save it to a file first"):
        read(tmp_path / "pipe")
    with pytest.raises(BadSource, match="there is no such file or folder"):
        read(tmp_path / "none")


def test_a_link_to_a_file_or_a_folder_is_refused_by_name(folder: Path, tmp_path: Path) -> None:
    link = folder / "manifests" / "link.yaml"
    for target in (tmp_path, Path("/etc/passwd"), folder / "b.yaml", Path("nowhere")):
        link.symlink_to(target)
        with pytest.raises(UnsafePath, match=r"manifests/link\.yaml is a symbolic link"):
            read(folder)
        link.unlink()


def test_a_pipe_is_refused_and_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(UnsafePath, match="pipe is a special file"):
        read(folder)


def test_a_socket_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("socket")
        with pytest.raises(BadSource, match="socket: cannot be read"):
            read(folder)


def test_a_folder_or_file_over_the_limit_is_refused(folder: Path) -> None:
    with pytest.raises(BundleTooLarge, match=r"manifests/a\.yaml: more than .*PRATIQUE_MAX_BUNDLE_MIB"):
        read(folder, max_bytes=12)
    with pytest.raises(BundleTooLarge):
        read(folder / "b.yaml", max_bytes=5)


def test_a_name_that_is_not_utf8_is_refused_when_unpacked(folder: Path) -> None:
    (Path(os.fsdecode(os.fsencode(folder) + b"/\xff.yaml"))).write_bytes(b"1")
    with pytest.raises(UnsafePath, match="not UTF-8"):
        unpack(read(folder).archives)
