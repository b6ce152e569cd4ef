"""One word, one meaning: the names of models, columns, URLs and classes against docs/glossary.md.

Whoever adds a word to them either explains it there or says below that it is plain English or a common technical term.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest
from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/glossary.md"
# Plain English, and terms that Kubernetes, Django or HTTP have given every reader already.
PLAIN = frozenset(
    re.findall(
        "[a-z]+",
        """
        about access active activity actor address after afterwards again agent allows answered api apitoken approve
        approved as ask asked asker askers at attempts author authors available awaits back because before began begun
        beyond body break broken bulk by byte callback change changed changes check claimed code command computed config
        confirm corrected count create created current data dead deaths decide default delete deleting deletion
        delivered dependencies deprecated description detail differing differs display document done due earlier edit
        editor end ended engine etag exchange expires export expression external facts failure failures fields files
        finished first followed for format found from front generation given glass gone group groups has hash headline
        healthy healthz held helm home icon id in install is key keys kind known kubeconfig kubernetes labels last leave
        length lines linked list log look looked may me message metrics milliseconds min mirrored mode more moved name
        names namespace new news no not nothing number observed of offers oidc on options origin others out over overdue
        override own password paused people person planned polls position possible previous problem problems progress
        prove proved provider purpose put query reached read readyz reason received refresh refused remove removed
        renewed repeated replaced replaces requested requirements resource rests result revoked rights save saved
        schemas search searched seconds section seen selected send server service show sign signin since skips slack
        sort started state states status stopped subject succeeded summary sure take tenant test tests text theme to
        tool tried type types uid unlink until unused url use used user username value values verb version via view
        viewed views voter waiting waives warnings was watched weight why woken words worked worst writer writers
        """,
    )
)
# Words that had no meaning of the field, or several: what they named has another name now.
FORBIDDEN = frozenset(
    re.findall(
        "[a-z]+",
        "ahead alike awaited doors fight fights helpers manager misc probing settling sides standing stirs utils",
    )
)
# A column and a field of the REST API since 0.1.0: another name would break programs that read it.
PUBLISHED = {"is_fight"}
# Public classes that several modules define, and why one name is right for them.
_ROW = "the value, and the row that records it"
_ERROR = "the error, and the gate's refusal that is named after it"
OFTEN = {
    "Command": "Django finds each command of the shell by this name",
    "Catalog": _ROW,
    "Content": _ROW,
    "Finding": _ROW,
    "GroupsTooOld": _ERROR,
    "HookRun": _ROW,
    "InventoryItem": _ROW,
    "NoLongerWished": _ERROR,
    "Proof": _ROW,
    "Report": _ROW,
    "Rollout": _ROW,
    "RolloutMember": _ROW,
}


def words_of(name: str) -> list[str]:
    """`KubernetesIdentity`, `worker_deaths` and `sign-in` as lower-case words."""
    return [word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)]


def explained() -> dict[str, str]:
    """The words of the page with their sentences, and the plain plurals of each."""
    rows = re.findall(r"^\| (?!word )([a-z-]+) \| (?!-)(.+) \|$", PAGE.read_text(), re.MULTILINE)
    found = {}
    for word, sentence in rows:
        assert word not in found, f"{word} stands twice in {PAGE.name}"
        found[word] = sentence
    return found


def is_explained(word: str, known: Iterable[str]) -> bool:
    forms = {word, word.removesuffix("s"), word.removesuffix("es"), re.sub("ies$", "y", word), f"sign-{word}"}
    return bool(forms & {*known})


def models() -> Iterator[str]:
    for model in apps.get_app_config("approvals").get_models():
        yield model.__name__


def columns() -> Iterator[str]:
    for model in apps.get_app_config("approvals").get_models():
        yield from (field.name for field in model._meta.get_fields())


def urls(patterns: Iterable[URLPattern | URLResolver] | None = None) -> Iterator[str]:
    for one in get_resolver().url_patterns if patterns is None else patterns:
        if isinstance(one, URLResolver):
            yield from urls(one.url_patterns)
        elif one.name and one.callback.__module__.startswith("approvals."):
            yield one.name


def modules() -> Iterator[tuple[str, Path]]:
    for room in ("approvals", "provisioner"):
        for path in sorted((ROOT / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"), path


def classes() -> dict[str, list[str]]:
    """The public classes of the service and of the library by name, with the modules that define them."""
    found = defaultdict(list)
    for module, path in modules():
        for name in re.findall(r"^class ([A-Za-z]\w*)", path.read_text(), re.MULTILINE):
            found[name].append(module)
    return found


@pytest.mark.parametrize("names", [models, columns, urls])
def test_every_word_of_ours_is_in_the_glossary(names: Callable[[], Iterable[str]]) -> None:
    known = explained()
    found = set(names())
    assert found
    unknown = {w for name in found for w in words_of(name) if w not in PLAIN and not is_explained(w, known)}
    assert unknown == set(), "explain these words in docs/glossary.md, or add them to PLAIN"


def test_no_name_holds_an_old_word() -> None:
    names = {*models(), *columns(), *urls(), *classes(), *(module for module, _ in modules())}
    found = {name for name in names - PUBLISHED if FORBIDDEN & set(words_of(name.rpartition(".")[2]))}
    assert found == set()


def test_what_may_keep_an_old_word_is_still_there() -> None:
    """So that the list ends with the names."""
    assert PUBLISHED - {*columns()} == set()


def test_a_class_name_means_one_thing() -> None:
    twice = {name: where for name, where in classes().items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in OFTEN} == {}
    assert OFTEN.keys() - twice.keys() == set(), "these need no reason any more"


def test_a_sentence_explains_each_word() -> None:
    assert [word for word, words in explained().items() if not re.fullmatch(r"[A-Z`].+\.", words)] == []
