"""Folders and files of the machine that runs the command line."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from provisioner.errors import BadSource, BundleTooLarge, UnsafePath
from provisioner.source import EgressPolicy, Fetched, LocalSource, fetch
from provisioner.unpack import unpack


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
