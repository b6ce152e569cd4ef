"""Generated pages are current, and say so where they are not."""

from __future__ import annotations

import ast
import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

from approvals.project import settings_table
from docs.generators import __main__ as generators
from docs.generators import errors, rest
from tests.support.folders import ROOT


def test_what_is_not_current_is_named_and_written_only_on_demand(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of three pages; `make lint` looks at all of them."""
    few = ("docs/architecture/layers.md", "docs/decisions/README.md", "docs/reference/settings.md")
    pages = {name: text_of for name, text_of in generators.pages().items() if name in few}
    monkeypatch.setattr(generators, "pages", lambda: pages)
    for page in pages:
        (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, tmp_path / page)
    settings = tmp_path / "docs/reference/settings.md"
    settings.write_text(settings.read_text("utf-8").replace("`12`", "`13`", 1), "utf-8")
    (tmp_path / "docs/decisions/README.md").unlink()

    assert generators.main(["--check"], root=tmp_path) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in said] == ["docs/decisions/README.md", "docs/reference/settings.md"]
    assert not (tmp_path / "docs/decisions/README.md").exists()

    assert generators.main([], root=tmp_path) == 0
    assert generators.main(["--check"], root=tmp_path) == 0
    assert settings.read_text("utf-8") == (ROOT / "docs/reference/settings.md").read_text("utf-8")


def test_the_page_of_settings_lists_exactly_the_settings() -> None:
    page = (ROOT / "docs/reference/settings.md").read_text("utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `PRATIQUE_")]
    assert rows == [f"| `PRATIQUE_{it.name}`" for it in settings_table.SETTINGS]


def test_the_page_of_the_rest_api_has_every_call() -> None:
    page = (ROOT / "docs/reference/rest.md").read_text("utf-8")
    calls = [(path, method) for path, methods in rest.description()["paths"].items() for method in methods]
    assert len(calls) > 20
    assert [(path, method) for path, method in calls if f"\n`{method.upper()} {path}`\n" not in page] == []


def test_a_code_without_a_meaning_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    errors.words.cache_clear()
    monkeypatch.setattr(errors, "codes_of_problems", lambda: {"never-heard-of"})
    with pytest.raises(errors.CodesDiffer, match="never-heard-of"):
        errors.words()
    errors.words.cache_clear()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("class A:\n    code = 'a-b'", ["a-b"], id="of a class"),
        pytest.param("f(problem_code='a-b', problem='x')", ["a-b"], id="an argument"),
        pytest.param("{'code': 'a-b', 'failed': 1}", ["a-b"], id="an entry of a record"),
        pytest.param("CODE = 'a-b'", ["a-b"], id="of a module"),
        pytest.param("f(problem_code='')", [], id="no problem"),
        pytest.param("code = name_of(x)", [], id="no text"),
    ],
)
def test_codes_are_found_however_they_are_given(source: str, expected: list[str]) -> None:
    assert list(errors.codes_in(ast.parse(source))) == expected


def test_every_code_says_what_to_do() -> None:
    for code, said in errors.words().items():
        assert said.meaning.endswith("."), code
        assert said.action.endswith("."), code


def test_each_code_stands_once_among_the_codes() -> None:
    """A code has one meaning. What the gate says beside it are reasons, which may share one."""
    rows = re.findall(r"^\| `([a-z-]+)` \|", errors.page(), re.MULTILINE)
    assert len(rows) > 60
    assert [code for code, count in Counter(rows).items() if count > 1] == []
    written = re.findall(r"^([a-z-]+):$", errors.WORDS.read_text("utf-8"), re.MULTILINE)
    assert written == sorted(set(written))
