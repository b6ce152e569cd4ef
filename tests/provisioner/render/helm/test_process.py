"""Charts that would take the machine with them, or look out of their tree: bounded, and refused in words."""

from __future__ import annotations

import gzip
import re
import tarfile

import pytest

from provisioner.chart_engine.process import check_schemas
from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest
from provisioner.render.helm.packed_charts import checked_files
from tests.support.provisioner import archives as make
from tests.support.provisioner.archives import header, member, octal, padded, pax, record
from tests.support.provisioner.charts import CHART, chart, config_map, packed, rendered, texts

pytestmark = pytest.mark.usefixtures("each_helm", "kept_engine")

NEEDS_SUB = CHART + b"dependencies: [{name: sub, version: 1.0.0}]\n"
SUB = CHART.replace(b"shop", b"sub")
EVIL = b'{"properties": {"text": {"$ref": "file:///etc/passwd"}}}'
INNER = packed({"Chart.yaml": SUB, "values.schema.json": EVIL}, "inner")
LINK, HARD_LINK = tarfile.SYMTYPE, tarfile.LNKTYPE


def archive(*members: tuple[str, bytes] | tuple[tarfile.TarInfo, bytes]) -> bytes:
    """A packed chart of its Chart.yaml and these members."""
    made = [member(one, data=data) if isinstance(one, str) else (one, data) for one, data in members]
    return gzip.compress(make.tar_of(member("sub/Chart.yaml", data=SUB), *made), mtime=0)


def blocks(*headers: bytes) -> bytes:
    """A packed chart of a Chart.yaml, these blocks as they are, and contents of EVIL."""
    start = header(b"sub/Chart.yaml", size=octal(len(SUB))) + padded(SUB)
    return gzip.compress(b"".join([start, *headers, padded(EVIL), make.END]), mtime=0)


def named(name: bytes) -> bytes:
    return header(name, size=octal(len(EVIL)))


# Helm's reader takes each of these for another file than the one that its name is, or its name for that of another.
ATTACKS = {
    "a backslash": (archive(("sub/x\\values.schema.json", EVIL)), "holds a backslash"),
    "a backslash before a template": (archive(("sub/x\\templates/y.yaml", b"kind: A")), "holds a backslash"),
    "a backslash for the root": (archive(("sub\\values.schema.json", EVIL)), "holds a backslash"),
    "a dot at the end": (archive(("sub/values.schema.json/.", EVIL)), "schema.json/.': its name has an empty part"),
    "an archive with a dot at its end": (archive(("sub/charts/inner.tgz/.", INNER)), "inner.tgz/.': its name has"),
    "a dot": (archive(("sub/./values.schema.json", EVIL)), "sub/./values.schema.json': its name has an empty part"),
    "two dots in the middle": (archive(("sub/x/../values.schema.json", EVIL)), "x/../values.schema.json': .*climbs"),
    "two dots to the root": (archive(("sub/../values.schema.json", EVIL)), "sub/../values.schema.json': .*climbs"),
    "climbing": (archive(("../../x", EVIL)), "../../x': .*climbs"),
    "two dots at the end": (archive(("sub/values.schema.json/x/..", EVIL)), "climbs"),
    "two slashes": (archive(("sub//values.schema.json", EVIL)), "sub//values.schema.json': its name has an empty part"),
    "two slashes at the end": (blocks(named(b"sub/values.schema.json//")), "its name has an empty part"),
    "a slash at the end": (blocks(named(b"sub/values.schema.json/")), "values.schema.json/' is a file with the name"),
    "a dot twice at the start": (archive(("././sub/values.schema.json", EVIL)), "its name has an empty part"),
    "absolute": (archive(("/sub/values.schema.json", EVIL)), "'/sub/values.schema.json': its name is absolute"),
    "a NUL by pax": (
        blocks(pax(record("path", b"sub/values.schema.json\0.txt")), named(b"sub/a")),
        "control character",
    ),
    "a line break": (archive(("sub/values.schema.json\n", EVIL)), "control character"),
    "a carriage return": (archive(("sub/\rvalues.schema.json", EVIL)), "control character"),
    "no UTF-8": (blocks(named(b"sub/\xffvalues.schema.json")), "not UTF-8"),
    "a backslash by pax": (
        blocks(pax(record("path", b"sub/x\\values.schema.json")), named(b"sub/a.yaml")),
        "holds a backslash",
    ),
    "a backslash by a global pax header": (
        blocks(pax(record("path", b"sub/x\\values.schema.json"), kind=b"g"), named(b"sub/a.yaml")),
        "global header",
    ),
    "a dot by a long name of GNU": (
        blocks(header(b"L", size=octal(24), kind=b"L") + padded(b"sub/values.schema.json/."), named(b"sub/a.yaml")),
        "schema.json/.': its name has an empty part",
    ),
    "a symbolic link": (archive(member("sub/values.schema.json", LINK, "/etc/passwd")), "is a symbolic link"),
    "a hard link": (archive(member("sub/values.schema.json", HARD_LINK, "sub/Chart.yaml")), "is a hard link"),
    "a pipe": (archive(member("sub/values.schema.json", tarfile.FIFOTYPE)), "is a pipe"),
    "twice": (archive(("sub/values.schema.json", b"{}"), ("sub/values.schema.json", EVIL)), "twice"),
    "twice by another spelling": (archive(("sub/a", b""), ("./sub/a", b"")), "twice"),
    "names that differ in case": (archive(("sub/values.yaml", b""), ("sub/Values.yaml", b"")), "only in case"),
    "names that differ in composed letters": (archive(("sub/é", b""), ("sub/e\u0301", b"")), "differ only"),
    "a file and a folder": (archive(("sub/templates", EVIL), ("sub/templates/a.yaml", b"")), "is a file"),
    "gzip of gzip": (gzip.compress(INNER), "sub.tgz: it is cut off"),
    "a zip": (make.zipped({"sub/Chart.yaml": SUB}), "is no archive of a chart; expected tar.gz"),
    "zstd": (make.tar_zst({"sub/Chart.yaml": SUB}), "is no archive of a chart; expected tar.gz"),
    "a tar that is not packed": (make.tar({"sub/Chart.yaml": SUB}), "is no archive of a chart; expected tar.gz"),
    "two folders": (archive(("other/values.schema.json", EVIL)), "expected all its files in one folder"),
    "no folder": (archive(("values.schema.json", EVIL)), "expected all its files in one folder"),
    "a folder with the name of an archive": (
        archive(("sub/charts/inner.tgz/values.schema.json", EVIL)),
        "a folder with the name of an archive",
    ),
    "an archive and a folder": (
        archive(("sub/charts/inner.tgz", INNER), ("sub/charts/inner/values.yaml", b"")),
        "is an archive, and there is a folder of its name",
    ),
    "a schema in an archive in an archive": (
        archive(("sub/charts/inner.tgz", INNER)),
        "refers to 'file:///etc/passwd'",
    ),
    "a backslash in an archive in an archive": (
        archive(("sub/charts/inner.tgz", archive(("sub/x\\values.schema.json", EVIL)))),
        "holds a backslash",
    ),
}


@pytest.mark.parametrize(("packed_chart", "words"), ATTACKS.values(), ids=ATTACKS)
def test_S37_a_packed_chart_goes_by_the_rules_of_every_archive(packed_chart: bytes, words: str) -> None:
    with pytest.raises(BadBundle, match=re.escape(words).replace(r"\.\*", ".*")):
        check_schemas(checked_files(chart() | {"Chart.yaml": NEEDS_SUB, "charts/sub.tgz": packed_chart}))


@pytest.mark.parametrize(
    "packed_chart",
    [
        pytest.param(one, id=name, marks=() if name in ("a backslash", "a dot at the end") else pytest.mark.thorough)
        for name, (one, _) in ATTACKS.items()
    ],
)
def test_S37_no_such_chart_is_rendered_and_nothing_is_told_of_a_file(packed_chart: bytes) -> None:
    with pytest.raises(BadBundle) as caught:
        rendered(chart() | {"Chart.yaml": NEEDS_SUB, "charts/sub.tgz": packed_chart})
    assert not re.search(
        "failing loading|no such file|invalid character|permission denied|got string", caught.value.in_full
    )


@pytest.mark.parametrize(
    "path",
    ["x\\values.schema.json", "values.schema.json/.", "charts/x.tgz/.", "./values.schema.json", "charts//x/Chart.yaml"],
)
def test_S37_the_files_beside_an_archive_go_by_the_same_rules(path: str) -> None:
    with pytest.raises(BadBundle, match=re.escape(repr(path))):
        checked_files(chart() | {path: EVIL})


# Helm reads none of these, and so nobody has to: neither in the chart, nor in one below it.
@pytest.mark.parametrize(
    "name", ["x.TGZ", "x.tar.gz", "x.tgz.bak", "_x.tgz", ".x.tgz", "README.md", "_x/values.schema.json"]
)
def test_S37_what_helm_passes_over_is_not_handed_over(name: str) -> None:
    sub = {"Chart.yaml": SUB, f"charts/{name}": EVIL}
    files = chart() | {f"charts/{name}": EVIL, "charts/sub.tgz": packed(sub, "sub")}
    assert checked_files(files) == chart() | {"charts/sub/Chart.yaml": SUB}


def test_an_archive_that_is_a_file_of_the_chart_stays_one() -> None:
    files = chart() | {
        "files/charts/x.tgz": INNER,
        "charts/x.tgz.prov": b"",
        "Charts/x.tgz": INNER,
        "values．schema.json": EVIL,
    }
    assert checked_files(files) == files


def test_the_archives_of_one_chart_share_its_limits() -> None:
    many = packed({"Chart.yaml": SUB} | {f"templates/{at}": b"" for at in range(6_000)}, "sub")
    with pytest.raises(BundleTooLarge, match="more than 20000 entries"):
        checked_files(chart() | {f"charts/sub{at}.tgz": many for at in range(4)})


@pytest.mark.parametrize(
    "template",
    [
        pytest.param("{{ range until 50000000 }}aaaaaaaaaaaaaaaa{{ end }}", id="a text that grows"),
        pytest.param('{{ repeat 2000000000 "a" }}', id="one large text"),
        pytest.param("{{ $l := list }}{{ range until 40000000 }}{{ $l = append $l . }}{{ end }}", id="a list"),
    ],
)
def test_memory_is_bounded(template: str) -> None:
    with pytest.raises(BundleTooLarge, match="MiB"):
        rendered(chart(templates__bomb=template))


@pytest.mark.thorough
def test_time_is_bounded() -> None:
    loop = "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}"
    with pytest.raises(BundleTooLarge, match="the chart took"):
        rendered(chart(templates__loop=loop))


@pytest.mark.parametrize("how", ["include", "template"])
def test_recursion_is_bounded(how: str) -> None:
    itself = f'{{{{ define "a" }}}}{{{{ {how} "a" . }}}}{{{{ end }}}}{{{{ {how} "a" . }}}}'
    with pytest.raises(BadBundle, match="the chart: "):
        rendered(chart(templates__deep=itself))


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../../etc/passwd", "templates/../../etc/passwd"])
def test_files_outside_the_chart_are_not_there(path: str) -> None:
    assert texts(rendered(chart(templates__file=config_map(f'.Files.Get "{path}"'))))["made"] == ""


@pytest.mark.parametrize("function", ['env "PATH"', 'expandenv "$PATH"'])
def test_the_environment_is_not_there(function: str) -> None:
    with pytest.raises(BadBundle) as caught:
        rendered(chart(templates__env=config_map(function)))
    assert "not defined" in caught.value.server_words


def test_no_name_is_looked_up() -> None:
    assert texts(rendered(chart(templates__a=config_map('getHostByName "localhost"'))))["made"] == ""


def test_an_archive_in_charts_that_grows_is_bounded() -> None:
    bomb = packed({"Chart.yaml": CHART, "big": bytes(30 * 2**20)}, "sub")
    with pytest.raises(BundleTooLarge, match=r"charts/sub\.tgz: it unpacks to more than 200 times its size"):
        rendered(chart() | {"Chart.yaml": NEEDS_SUB, "charts/sub.tgz": bomb})


def test_charts_in_charts_have_an_end() -> None:
    inner = chart()
    for _ in range(20):
        inner = {"Chart.yaml": NEEDS_SUB, "charts/sub.tgz": packed(inner, "sub")}
    with pytest.raises(BadBundle, match="nested deeper than 16"):
        rendered(inner)


def test_what_is_rendered_is_read_as_strictly_as_any_manifest() -> None:
    with pytest.raises(InvalidManifest, match=r"templates/a\.yaml"):
        rendered(chart(templates__a="kind: [\n"))


@pytest.mark.parametrize(
    ("patterns", "words"),
    [(b"".join(b"a*b*c%d\n" % at for at in range(20_000)), "20000 patterns"), (b"*a" * 200, "400 characters")],
)
def test_patterns_of_ignored_files_are_bounded(patterns: bytes, words: str) -> None:
    with pytest.raises(BadBundle, match=f"helmignore: .*{words}; expected at most"):
        rendered(chart() | {".helmignore": patterns})
