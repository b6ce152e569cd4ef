"""What is unpacked: every format, image layers, and nothing of an archive that is not whole (promise 10)."""

from __future__ import annotations

import gzip
import io
import string
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Mapping, Sequence

import pytest
from backports.zstd import compress as zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.errors import BundleTooLarge, InvalidArchive, UnsafePath
from provisioner.unpack import UnpackLimits, unpack
from provisioner.values import Archive, Tree
from tests.support.provisioner import archives as make
from tests.support.provisioner.archives import PACKERS, RawZip, header, member, octal, padded, pax, record

FILES = {"a.yaml": b"kind: A\n", "manifests/b.yaml": b"kind: B\n" * 100, "empty.yaml": b""}
MIB = 1024 * 1024


def tree_of(data: bytes, name: str = "", limits: UnpackLimits | None = None) -> dict[str, bytes]:
    return dict(unpack([Archive(name, data)], limits=limits).files)


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
def test_every_format_gives_the_files_that_were_packed(pack) -> None:
    assert tree_of(pack(FILES)) == FILES


_names = st.text(string.ascii_lowercase + "é-_. ", min_size=1, max_size=12).filter(
    lambda name: name.strip(". ") and not name.startswith(".wh.")
)
_paths = st.lists(_names, min_size=1, max_size=4).map("/".join)


def _is_a_tree(files: Mapping[str, bytes]) -> bool:
    return not any(other.startswith(f"{path}/") for path in files for other in files)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(_paths, st.binary(max_size=2000), min_size=1, max_size=8).filter(_is_a_tree))
def test_unpacking_what_was_packed_gives_it_back(files: dict[str, bytes]) -> None:
    for pack in (make.tar, make.tar_gz, make.tar_zst, make.zipped):
        assert tree_of(pack(files)) == files


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(PACKERS)), st.data())
def test_a_damaged_archive_is_refused_or_whole_but_never_a_crash(form: str, data: st.DataObject) -> None:
    packed = bytearray(PACKERS[form](FILES))
    for _ in range(data.draw(st.integers(1, 4))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = tree_of(bytes(packed), "x")
    except (InvalidArchive, UnsafePath, BundleTooLarge):
        return
    assert found


@pytest.mark.parametrize("form", sorted(PACKERS))
def test_an_archive_cut_off_anywhere_is_refused(form: str) -> None:
    packed = PACKERS[form](FILES)
    meaning = len(packed.rstrip(b"\0")) if form.startswith("tar,") or form == "tar" else len(packed)
    for end in range(4, meaning, max(1, meaning // 60)):
        with pytest.raises(InvalidArchive):
            tree_of(packed[:end])


@pytest.mark.parametrize("name", ["deployment.yaml", "folder/x.yml", "bundle.json", "UPPER.YAML"])
def test_a_single_file_keeps_its_name(name: str) -> None:
    assert tree_of(b"kind: A\n", name) == {name: b"kind: A\n"}


@pytest.mark.parametrize("file", [b"PK: not a zip\n", b"BZ", b""], ids=["PK", "BZ", "empty"])
def test_a_yaml_file_is_not_taken_for_an_archive_by_two_letters(file: bytes) -> None:
    assert tree_of(file, "a.yaml") == {"a.yaml": file}


def test_a_format_that_is_not_read_is_named() -> None:
    with pytest.raises(InvalidArchive, match=r"bundle\.tar\.xz: it is xz; expected tar, tar\.gz"):
        tree_of(b"\xfd7zXZ\x00rest", "bundle.tar.xz")


def test_the_bytes_decide_and_not_the_name() -> None:
    assert tree_of(make.zipped(FILES), "bundle.tar.gz") == FILES
    assert tree_of(make.tar_zst(FILES), "bundle.yaml") == FILES


def test_long_names_in_every_dialect_of_tar() -> None:
    name = "folder/" * 20 + "x" * 100 + ".yaml"
    for form in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert tree_of(make.tar({name: b"1"}, form=form)) == {name: b"1"}


def test_git_archive_with_its_global_comment_is_read() -> None:
    packed = pax(record("comment", b"0123456789abcdef"), kind=b"g") + make.tar(FILES)
    assert tree_of(packed) == FILES


def test_a_pax_size_overrides_the_header() -> None:
    packed = pax(record("size", b"3")) + header(b"a.yaml") + padded(b"abc") + make.END
    assert tree_of(packed) == {"a.yaml": b"abc"}


def test_a_size_in_base_256_is_read() -> None:
    packed = header(b"a.yaml", size=b"\x80" + (3).to_bytes(11, "big")) + padded(b"abc") + make.END
    assert tree_of(packed) == {"a.yaml": b"abc"}


FOLDER, SYMLINK = tarfile.DIRTYPE, tarfile.SYMTYPE
UNSAFE_TARS = {
    "climbing": (make.tar({"../a.yaml": b""}), r"\.\./a\.yaml.*climbs"),
    "climbing in the middle": (make.tar({"a/../../b": b""}), "climbs"),
    "two dots alone": (make.tar({"..": b""}), "climbs"),
    "absolute": (make.tar({"/etc/passwd": b""}), "/etc/passwd.*absolute"),
    "a climbing folder": (make.tar_of(member("../x", FOLDER), member("a.yaml")), "climbs"),
    "backslash": (make.tar({"..\\a.yaml": b""}), "backslash"),
    "line break": (make.tar({"a\nb.yaml": b""}), "control character"),
    "NUL by pax": (pax(record("path", b"a\0b.yaml")) + header() + make.END, "control character"),
    "symbolic link": (make.tar_of(member("link", SYMLINK, "/etc/passwd")), "link.*symbolic link"),
    "hard link": (make.tar_of(member("a.yaml"), member("b.yaml", tarfile.LNKTYPE, "a.yaml")), "b.yaml.*hard link"),
    "character device": (make.tar_of(member("dev", tarfile.CHRTYPE)), "character device"),
    "block device": (make.tar_of(member("dev", tarfile.BLKTYPE)), "block device"),
    "pipe": (make.tar_of(member("p", tarfile.FIFOTYPE)), "a pipe"),
    "sparse": (header(b"s.yaml", kind=b"S") + make.END, "sparse"),
    "sparse by pax": (pax(record("GNU.sparse.major", b"1")) + header() + make.END, "sparse"),
    "unknown type": (header(b"what", kind=b"Z") + make.END, "special file"),
    "not UTF-8": (header(b"\xff\xfe.yaml") + make.END, "not UTF-8"),
    "not UTF-8 by pax": (pax(record("path", b"\xff.yaml")) + header() + make.END, "not UTF-8"),
    "a file called a folder": (header(b"a/", kind=b"0") + make.END, "name of a folder"),
    "the root as a file": (header(b"./") + make.END, "name of a folder"),
    "a folder with contents": (header(b"a/", kind=b"5", size=octal(4)) + padded(b"abcd") + make.END, "with contents"),
    "case": (make.tar({"a/X.yaml": b"", "a/x.yaml": b""}), "differ only in case"),
    "composed letters": (make.tar({"é.yaml": b"", "e\u0301.yaml": b""}), "differ only"),
    "sharp s": (make.tar({"straße": b"", "STRASSE": b""}), "differ only"),
    "whiteout of the parent": (make.tar({"a/.wh...": b"", "b": b""}), "whiteout of no file"),
    "whiteout of nothing": (make.tar({".wh.": b"", "b": b""}), "whiteout of no file"),
}  # fmt: skip


@pytest.mark.parametrize(("packed", "words"), UNSAFE_TARS.values(), ids=UNSAFE_TARS)
def test_an_unsafe_entry_is_refused_by_name(packed: bytes, words: str) -> None:
    for form in (packed, gzip.compress(packed), zstd(packed)):
        with pytest.raises(UnsafePath, match=words):
            tree_of(form)


INVALID_TARS = {
    "twice": (make.tar_of(member("a.yaml", data=b"1"), member("a.yaml", data=b"2")), "a.yaml is in the archive twice"),
    "twice by another spelling": (make.tar_of(member("a.yaml"), member("./a.yaml")), "twice"),
    "file and folder": (make.tar({"a": b"1", "a/b": b"2"}), "a is a file, and a a folder"),
    "file and folder by case": (make.tar({"a": b"1", "A/b": b"2"}), "is a file"),
    "file and empty folder": (make.tar_of(member("a", data=b"1"), member("a/", FOLDER)), "is a file"),
    "no files": (make.tar_of(member("a/", FOLDER)), "no files"),
    "nothing": (make.END, "no files"),
    "garbage after the end": (make.tar(FILES) + b"x" * 512, "follows the end"),
    "a second archive after the end": (make.tar(FILES) + make.tar(FILES), "follows the end"),
    "a damaged header in the middle": (
        header() + b"x" * 512 + make.END,
        "wrong checksum",
    ),
    "no end mark": (header(), "cut off"),
    "a size that is no number": (header(size=b"12xy56789012") + make.END, "no number"),
    "a negative size": (header(size=b"\xff" * 12) + make.END, "no number"),
    "a negative size by pax": (pax(record("size", b"-1")) + header() + make.END, "no number"),
    "an extended header of 8 GB": (pax(b"", claimed=8 * 1024**3 - 1) + make.END, "extended header has 8589934591"),
    "a long name of 1 GB": (header(b"n", size=octal(1024**3), kind=b"L") + make.END, "extended header has 1073741824"),
    "a pax record of length 0": (pax(b"0 path=a\n") + header() + make.END, "damaged"),
    "a pax record that is too long": (pax(b"999 path=a\n") + header() + make.END, "damaged"),
    "a pax record without a length": (pax(b"path=a\n") + header() + make.END, "damaged"),
    "a pax record with a huge length": (pax(b"9" * 5000 + b" path=a\n") + header() + make.END, "damaged"),
    "a global name": (pax(record("path", b"x"), kind=b"g") + header() + make.END, "same name or size"),
}  # fmt: skip


@pytest.mark.parametrize(("packed", "words"), INVALID_TARS.values(), ids=INVALID_TARS)
def test_a_broken_tar_is_refused_with_the_reason(packed: bytes, words: str) -> None:
    for form in (packed, gzip.compress(packed), zstd(packed)):
        with pytest.raises(InvalidArchive, match=words):
            tree_of(form)


def test_garbage_after_a_gzip_stream_is_refused_and_zeros_are_not() -> None:
    packed = make.tar_gz(FILES)
    assert tree_of(packed + bytes(1000)) == FILES
    with pytest.raises(InvalidArchive, match="follows the end of the gzip stream"):
        tree_of(packed + b"garbage")
    with pytest.raises(InvalidArchive, match="follows the end of the tar archive"):
        tree_of(packed + packed)


def test_a_wrong_gzip_checksum_is_refused() -> None:
    packed = bytearray(make.tar_gz(FILES))
    packed[-6] ^= 1
    with pytest.raises(InvalidArchive, match="damaged"):
        tree_of(bytes(packed))


def test_garbage_after_a_zstd_stream_is_refused() -> None:
    with pytest.raises(InvalidArchive):
        tree_of(make.tar_zst(FILES) + b"garbage")


def test_a_zstd_frame_that_wants_a_huge_window_is_refused_before_it_is_given() -> None:
    frame = b"\x28\xb5\x2f\xfd" + bytes([0b00000000, 21 << 3]) + b"\x01\x00\x00"
    with pytest.raises(InvalidArchive):
        tree_of(frame)


def test_thousands_of_empty_gzip_members_are_refused_quickly() -> None:
    packed = gzip.compress(b"", mtime=0) * 200_000
    with pytest.raises(InvalidArchive, match="more members"):
        tree_of(packed)


ZIPS = {
    "climbing": (RawZip().add(b"../a.yaml", b"1").done(), UnsafePath, "climbs"),
    "absolute": (RawZip().add(b"/a.yaml", b"1").done(), UnsafePath, "absolute"),
    "backslash": (RawZip().add(b"..\\a.yaml", b"1").done(), UnsafePath, "backslash"),
    "NUL in the name": (RawZip().add(b"a.yaml\0.txt", b"1").done(), UnsafePath, "control character"),
    "not UTF-8": (RawZip().add(b"\xff\xfe.yaml", b"1").done(), UnsafePath, "not UTF-8"),
    "not UTF-8 with the flag": (RawZip().add(b"\xff\xfe.yaml", b"1", flags=0x800).done(), InvalidArchive, "cannot be read"),
    "symbolic link": (RawZip().add(b"link", b"/etc/passwd", mode=0o120777).done(), UnsafePath, "link.*symbolic link"),
    "device": (RawZip().add(b"dev", b"", mode=0o020644).done(), UnsafePath, "special file"),
    "a folder with contents": (RawZip().add(b"a/", b"1", mode=0o040755).done(), UnsafePath, "with contents"),
    "the root as a file": (RawZip().add(b".", b"1").done(), UnsafePath, "without a name"),
    "encrypted": (RawZip().add(b"a.yaml", b"1", flags=1).done(), InvalidArchive, "a.yaml is encrypted"),
    "lzma": (RawZip().add(b"a.yaml", b"1", method=14).done(), InvalidArchive, "method 14"),
    "twice": (RawZip().add(b"a", b"1").add(b"a", b"2").done(), InvalidArchive, "twice"),
    "case": (RawZip().add(b"a", b"1").add(b"A", b"2").done(), UnsafePath, "differ only in case"),
    "two entries of the same bytes": (RawZip().add(b"a", b"1").add(b"b", b"1", at=0).done(), InvalidArchive, "overlaps"),
    "another name inside": (RawZip().add(b"a.yaml", b"1", local_name=b"b.yaml").done(), InvalidArchive, "differ"),
    "a size that is too small": (RawZip().add(b"a", b"123456", size=3).done(), InvalidArchive, "CRC"),
    "a size that is too large": (RawZip().add(b"a", b"123456", size=9).done(), InvalidArchive, "its header says 9"),
    "a wrong checksum": (RawZip().add(b"a", b"123", crc=1).done(), InvalidArchive, "CRC"),
    "garbage at the end": (RawZip().add(b"a", b"123").done(tail=b"xyz"), InvalidArchive, "follows the end"),
    "garbage before": (b"PK\x03\x04" + RawZip().add(b"a", b"123").done(), InvalidArchive, "damaged"),
    "no directory": (RawZip().add(b"a", b"123").done()[:40], InvalidArchive, "cut off"),
    "a count that lies": (RawZip().add(b"a", b"1").done(count=60_000), None, ""),
    "no files": (make.zipped({}), InvalidArchive, "no files"),
}  # fmt: skip


@pytest.mark.parametrize(("packed", "error", "words"), ZIPS.values(), ids=ZIPS)
def test_an_odd_zip_is_refused_with_the_reason(packed: bytes, error: type[Exception] | None, words: str) -> None:
    if error is None:
        assert tree_of(packed) == {"a": b"1"}
        return
    with pytest.raises(error, match=words):
        tree_of(packed)


def test_a_zip_streamed_with_zip64_fields_is_read() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive, archive.open("a.yaml", "w", force_zip64=True) as file:
        file.write(b"kind: A\n")
    assert tree_of(packed.getvalue()) == {"a.yaml": b"kind: A\n"}


def test_a_zip64_directory_is_refused() -> None:
    locator = b"PK\x06\x07" + bytes(16)
    packed = RawZip().add(b"a", b"1").done()
    with pytest.raises(InvalidArchive, match="zip64"):
        tree_of(packed[:-22] + locator + packed[-22:])


def test_names_in_utf8_without_the_flag_are_read() -> None:
    assert tree_of(RawZip().add("é.yaml".encode(), b"1").done()) == {"é.yaml": b"1"}


LIMITS = UnpackLimits(max_bytes=3000, max_file_bytes=2000, max_entries=5, max_depth=3, max_name_bytes=40)
TOO_LARGE = {
    "one file": ({"a": b"x" * 2001}, "a: has 2001 bytes.*max_file_bytes is 2000"),
    "all together": ({"a": b"x" * 1600, "b": b"y" * 1600}, "b: more than 3000 bytes.*PRATIQUE_MAX_BUNDLE_MIB"),
    "count": ({str(number): b"" for number in range(6)}, "more than 5 entries .*max_entries"),
}
TOO_DEEP = {
    "depth": ({"a/b/c/d": b""}, "4 folders deep; the limit max_depth is 3"),
    "name": ({"x" * 41: b""}, "has 41 bytes; the limit max_name_bytes is 40"),
}


@pytest.mark.parametrize("pack", [make.tar, make.tar_gz, make.tar_zst, make.zipped])
@pytest.mark.parametrize(("files", "words"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_past_a_limit_the_message_names_it(pack, files: Mapping[str, bytes], words: str) -> None:
    with pytest.raises(BundleTooLarge, match=words):
        tree_of(pack(files), limits=LIMITS)


@pytest.mark.parametrize("pack", [make.tar, make.zipped])
@pytest.mark.parametrize(("files", "words"), TOO_DEEP.values(), ids=TOO_DEEP)
def test_names_that_are_too_long_or_too_deep_are_refused(pack, files: Mapping[str, bytes], words: str) -> None:
    with pytest.raises(UnsafePath, match=words):
        tree_of(pack(files), limits=LIMITS)


def test_a_single_file_whose_name_is_not_utf_8_is_refused() -> None:
    for name in (b"\xff.yaml".decode("utf-8", "surrogateescape"), "a/\ud800.yaml"):
        with pytest.raises(UnsafePath, match="its name is not UTF-8"):
            unpack([Archive(name, b"a: 1")])


def test_the_limits_hold_for_all_layers_together() -> None:
    layer = Archive("", make.tar({"a": b"x" * 1600}))
    with pytest.raises(BundleTooLarge, match="3000 bytes in all"):
        unpack([layer, layer], limits=LIMITS)


def _bomb(name: bytes, size: int) -> bytes:
    """A tar of one file of zeros, packed by zstd or gzip to nearly nothing."""
    return header(name, size=octal(size)) + bytes(size) + make.END


# Packed where they are tried: it takes two seconds, and each process of a run reads this file.
BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": lambda: gzip.compress(_bomb(b"a.yaml", 60 * MIB)),
    "zstd": lambda: zstd(_bomb(b"a.yaml", 60 * MIB)),
    "zip": lambda: make.zipped({"a.yaml": bytes(60 * MIB)}),
    "many files": lambda: gzip.compress(make.tar({f"{number}.yaml": bytes(4 * MIB) for number in range(15)})),
    "zeros after the end": lambda: gzip.compress(make.tar({"a.yaml": b"1"}) + bytes(60 * MIB)),
    "a lying size": lambda: gzip.compress(header(b"a.yaml", size=octal(10)) + bytes(60 * MIB)),
}


@pytest.mark.parametrize("pack", BOMBS.values(), ids=BOMBS)
def test_a_bomb_stops_early_and_is_never_held_unpacked(pack: Callable[[], bytes]) -> None:
    packed = pack()
    tracemalloc.start()
    try:
        with pytest.raises(BundleTooLarge, match="200 times its size"):
            tree_of(packed)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 48 * MIB


def test_a_zip_directory_of_a_million_names_is_refused_before_it_is_read() -> None:
    archive = RawZip()
    archive._directory = (b"PK\x01\x02" + bytes(42)) * 1_000_000
    archive._local = b"PK\x03\x04"
    tracemalloc.start()
    try:
        with pytest.raises(BundleTooLarge, match="20000 entries"):
            tree_of(archive.done(count=1))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 120 * MIB


def test_a_bundle_of_100_MB_needs_its_own_size_and_twice_its_largest_file() -> None:
    piece = bytes(range(256)) * 4096
    files = {f"crds/{number:03}.yaml": number.to_bytes(4, "big") + piece * 4 for number in range(25)}
    packed = gzip.compress(make.tar(files), compresslevel=1)
    total, largest = sum(map(len, files.values())), 4 * MIB + 4
    del files
    tracemalloc.start()
    try:
        tree = unpack([Archive("", packed)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(map(len, tree.files.values())) == total >= 100 * MIB
    assert peak <= total + 2 * largest + 2 * MIB


def layers(*each: Mapping[str, bytes] | Sequence[str]) -> Tree:
    """Layers from the bottom up; a list holds names of empty files, which is what whiteouts are."""
    return unpack(
        [Archive("", make.tar_gz(one if isinstance(one, Mapping) else dict.fromkeys(one, b""))) for one in each]
    )


BASE = {"a.yaml": b"1", "d/b.yaml": b"2", "d/e/c.yaml": b"3"}
STACKS = {
    "a later layer covers": ([BASE, {"a.yaml": b"9"}], BASE | {"a.yaml": b"9"}),
    "a whiteout removes a file": ([BASE, [".wh.a.yaml"]], {"d/b.yaml": b"2", "d/e/c.yaml": b"3"}),
    "a whiteout removes a folder": ([BASE, [".wh.d"]], {"a.yaml": b"1"}),
    "a whiteout in a folder": ([BASE, ["d/.wh.e"]], {"a.yaml": b"1", "d/b.yaml": b"2"}),
    "a whiteout is no prefix": ([BASE, [".wh.a"]], BASE),
    "an opaque folder": ([BASE, {"d/.wh..wh..opq": b"", "d/x.yaml": b"4"}], {"a.yaml": b"1", "d/x.yaml": b"4"}),
    "an opaque root": ([BASE, {".wh..wh..opq": b"", "x.yaml": b"4"}], {"x.yaml": b"4"}),
    "a whiteout spares its own layer": ([BASE, {".wh.d": b"", "d/new.yaml": b"5"}], {"a.yaml": b"1", "d/new.yaml": b"5"}),
    "what was removed may come back": ([BASE, [".wh.a.yaml"], {"a.yaml": b"7"}], BASE | {"a.yaml": b"7"}),
    "a file in the place of a folder": ([BASE, {"d": b"6"}], {"a.yaml": b"1", "d": b"6"}),
    "a folder in the place of a file": ([BASE, {"a.yaml/x": b"6"}], {k: v for k, v in BASE.items() if k != "a.yaml"} | {"a.yaml/x": b"6"}),
    "whiteouts of nothing": ([BASE, [".wh.none", "q/.wh..wh..opq"]], BASE),
}  # fmt: skip


@pytest.mark.parametrize(("stack", "expected"), STACKS.values(), ids=STACKS)
def test_layers_are_stacked_as_images_mean_them(stack, expected: dict[str, bytes]) -> None:
    assert layers(*stack).files == expected


def test_layers_that_collide_by_case_are_refused() -> None:
    with pytest.raises(UnsafePath, match="differ only in case"):
        layers({"a.yaml": b"1"}, {"A.yaml": b"2"})


def test_ten_thousand_whiteouts_over_ten_thousand_files_are_quick() -> None:
    lower = {f"d{number % 10}/{number}.yaml": b"" for number in range(9_000)}
    upper = {f"d{number % 10}/.wh.{number}.yaml": b"" for number in range(8_999)}
    assert layers(lower, upper).files == {"d9/8999.yaml": b""}


def test_the_tree_is_sorted_whatever_the_archive_s_order() -> None:
    assert list(unpack([Archive("", make.tar({"b": b"", "a": b""}))]).files) == ["a", "b"]
