"""Charts that would take the machine with them, or look out of their tree: bounded, and refused in words."""

from __future__ import annotations

import pytest

from provisioner.errors import BadBundle, BundleTooLarge, InvalidManifest
from tests.provisioner.render.helm.charts import CHART, chart, config_map, packed, rendered, texts

NEEDS_SUB = CHART + b"dependencies: [{name: sub, version: 1.0.0}]\n"


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
    with pytest.raises(BadBundle, match="not defined"):
        rendered(chart(templates__env=config_map(function)))


def test_no_name_is_looked_up() -> None:
    assert texts(rendered(chart(templates__a=config_map('getHostByName "localhost"'))))["made"] == ""


def test_an_archive_in_charts_climbs_nowhere() -> None:
    evil = packed({"../../x": b""}, "sub")
    with pytest.raises(BadBundle, match="is no plain file of a chart"):
        rendered(chart() | {"Chart.yaml": NEEDS_SUB, "charts/sub.tgz": evil})


def test_an_archive_in_charts_that_grows_is_bounded() -> None:
    bomb = packed({"Chart.yaml": CHART, "big": bytes(600 * 2**20)}, "sub")
    assert len(bomb) < 2**20
    with pytest.raises(BundleTooLarge, match="MiB of memory"):
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
