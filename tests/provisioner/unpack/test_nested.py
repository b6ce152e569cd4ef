"""Archives in archives: only the outermost is opened, and whatever is inside counts as it stands."""

from __future__ import annotations

import gzip

import pytest
from backports.zstd import compress as zstd

from provisioner.errors import BadBundle, InvalidArchive
from provisioner.unpack import unpack
from provisioner.values import Archive
from tests.support.provisioner import archives as make

FILES = {"a.yaml": b"kind: A\n"}
MIB = 1024 * 1024
TWICE = {
    "gzip of gzip": gzip.compress(make.tar_gz(FILES)),
    "gzip of zstd": gzip.compress(make.tar_zst(FILES)),
    "zstd of gzip": zstd(make.tar_gz(FILES)),
    "gzip of zip": gzip.compress(make.zipped(FILES)),
}


@pytest.mark.parametrize("packed", TWICE.values(), ids=TWICE)
def test_what_is_packed_twice_is_refused(packed: bytes) -> None:
    with pytest.raises(InvalidArchive):
        unpack([Archive("", packed)])


def test_an_archive_inside_is_a_file_like_any_other() -> None:
    inner = make.tar_gz({"../climbs": b"1"})
    assert unpack([Archive("", make.zipped({"inner.tgz": inner}))]).files == {"inner.tgz": inner}


def test_a_bomb_inside_is_never_unpacked() -> None:
    bomb = gzip.compress(gzip.compress(bytes(64 * MIB)))
    assert unpack([Archive("", make.tar({"bomb.gz": bomb}))]).files == {"bomb.gz": bomb}
    with pytest.raises(BadBundle):
        unpack([Archive("", bomb)])
