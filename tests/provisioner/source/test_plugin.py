"""Sources of other packages: what they fetch is looked at, and a broken one stops no other."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from provisioner.errors import (
    BadSource,
    BundleTooLarge,
    DigestMismatch,
    ForbiddenAddress,
    PluginFailed,
    SourceUnavailable,
    Unreachable,
)
from provisioner.plugins import PluginGroup
from provisioner.source import (
    Credentials,
    EgressPolicy,
    Fetched,
    LocalSource,
    PluginSource,
    fetch,
    plugin,
    plugin_kinds,
    source_plugins,
)
from provisioner.values import Archive, Pin
from tests.support.plugins import PluginPath

DIGEST = "sha256:" + "0" * 64
IMPORTS = f"""
import threading
from provisioner.errors import BadBundle, BadSource, ClusterError, SourceUnavailable, Unreachable
from provisioner.source import Archive, Fetched
from provisioner.values import Pin

DIGEST = {DIGEST!r}
FILES = (Archive("a.yaml", b"kind: A"),)

def raised(error):
    raise error

def fetch(source, *, egress, max_bytes):
    return """
SOUND = "Fetched(source.pin('the deck', DIGEST), FILES)"


def fetched(plugin_path: PluginPath, code: str, **given: Any) -> Fetched:
    plugin_path.add("cards", {PluginGroup.SOURCES: {"deck": "cards:fetch"}}, f"{IMPORTS}{code}")
    source = PluginSource("deck", {"suit": {"of": "cups"}}, "below")
    return fetch(source, **{"egress": EgressPolicy(), "max_bytes": 10, **given})


def test_what_a_plugin_fetches_is_pinned_where_the_spec_puts_it(plugin_path: PluginPath) -> None:
    found = fetched(plugin_path, SOUND)
    assert found == Fetched(Pin("deck", "the deck", DIGEST, "below"), (Archive("a.yaml", b"kind: A"),))


def test_a_plugin_cannot_put_its_files_elsewhere_or_in_another_name(plugin_path: PluginPath) -> None:
    found = fetched(plugin_path, "Fetched(Pin('image', 'the deck', DIGEST, '../..'), FILES)")
    assert found.pin == Pin("deck", "the deck", DIGEST, "below")


def test_no_credentials_reach_a_plugin(plugin_path: PluginPath) -> None:
    code = f"{SOUND}\n\ndef fetch(source, **given):\n    seen.update(given)\n    return {SOUND}\n\nseen = {{}}"
    fetched(plugin_path, code, credentials=Credentials("example.com", "ada", "Pl4nted"))
    import cards  # type: ignore[import-not-found] # a module that this test writes

    assert sorted(cards.seen) == ["egress", "max_bytes"]
    assert "Pl4nted" not in str(cards.seen)


def test_what_a_plugin_changes_of_its_parameters_stays_its_own(plugin_path: PluginPath) -> None:
    plugin_path.add(
        "cards", {PluginGroup.SOURCES: {"deck": "cards:fetch"}}, f"{IMPORTS}source.parameters['a'].clear() or {SOUND}"
    )
    parameters = {"a": {"b": 1}}
    fetch(PluginSource("deck", parameters), egress=EgressPolicy(), max_bytes=10)
    assert parameters == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        pytest.param("None", "it returned a NoneType; expected Fetched", id="nothing"),
        pytest.param("b'kind: A'", "it returned a bytes; expected Fetched", id="bare bytes"),
        pytest.param("Fetched(DIGEST, FILES)", "its pin is a str; expected Pin", id="no pin"),
        pytest.param("Fetched(source.pin('x', 'latest'), FILES)", "its pin has no digest", id="a tag for a digest"),
        pytest.param("Fetched(source.pin('x', DIGEST + '\\n'), FILES)", "its pin has no digest", id="a longer digest"),
        pytest.param("Fetched(source.pin('x', None), FILES)", "its pin has no digest", id="no digest"),
        pytest.param("Fetched(source.pin('', DIGEST), FILES)", "its pin has no reference", id="no reference"),
        pytest.param("Fetched(source.pin('x' * 3000, DIGEST), FILES)", "no reference", id="too long a reference"),
        pytest.param("Fetched(source.pin('\\x1b[2J', DIGEST), FILES)", "no reference", id="control characters"),
        pytest.param("Fetched(source.pin('x', DIGEST), ())", "its archives are not sound", id="no archive"),
        pytest.param("Fetched(source.pin('x', DIGEST), FILES * 500)", "its archives are not sound", id="too many"),
        pytest.param("Fetched(source.pin('x', DIGEST), [b'a'])", "its archives are not sound", id="no Archive"),
        pytest.param("Fetched(source.pin('x', DIGEST), [Archive('a', 'b')])", "not sound", id="text for bytes"),
        pytest.param("Fetched(source.pin('x', DIGEST), None)", "TypeError", id="archives that are none"),
        pytest.param("raised(SystemExit(0))", "SystemExit", id="ends the process"),
        pytest.param("raised(ClusterError('x'))", "ClusterError", id="an error of ours that it may not raise"),
        pytest.param("fetch(source, egress=egress, max_bytes=1)", "RecursionError", id="recursion"),
    ],
)
def test_nonsense_is_named_and_other_sources_go_on(
    code: str, words: str, plugin_path: PluginPath, tmp_path: Path
) -> None:
    with pytest.raises(PluginFailed, match=f"the source deck of the package cards 1 failed.*{words}"):
        fetched(plugin_path, code)
    (tmp_path / "a.yaml").write_text("kind: A")
    assert fetch(LocalSource(str(tmp_path / "a.yaml")), egress=EgressPolicy(), max_bytes=10).archives


def test_one_that_never_returns_is_left(plugin_path: PluginPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "FETCH_SECONDS", 0.2)
    with pytest.raises(PluginFailed, match="the source deck of the package cards 1 is disabled: it did not return"):
        fetched(plugin_path, "threading.Event().wait()")
    assert threading.active_count() < 100


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param("raised(BadSource('no deck'))", BadSource, id="bad source"),
        pytest.param("raised(SourceUnavailable('no deck'))", SourceUnavailable, id="not yet there"),
        pytest.param("raised(Unreachable('no deck'))", Unreachable, id="not reachable"),
    ],
)
def test_what_a_plugin_says_is_wrong_keeps_its_kind(code: str, error: type[Exception], plugin_path: PluginPath) -> None:
    with pytest.raises(error, match="^the source deck of the package cards 1: no deck$"):
        fetched(plugin_path, code)


def test_more_bytes_than_a_bundle_may_have_are_refused(plugin_path: PluginPath) -> None:
    with pytest.raises(BundleTooLarge, match="it fetched 7 bytes; the limit is 6"):
        fetched(plugin_path, SOUND, max_bytes=6)


def test_exactly_what_is_pinned_has_to_come(plugin_path: PluginPath) -> None:
    exact = "Fetched(source.pin('the deck', source.digest or DIGEST), FILES)"
    pin = Pin("deck", "the deck", "sha256:" + "1" * 64, "below")
    assert fetched(plugin_path, exact, pin=pin).pin == pin


def test_another_digest_than_the_pinned_is_refused(plugin_path: PluginPath) -> None:
    with pytest.raises(DigestMismatch):
        fetched(plugin_path, SOUND, pin=Pin("deck", "the deck", "sha256:" + "1" * 64))


def test_a_source_that_nobody_knows_is_refused() -> None:
    with pytest.raises(BadSource, match="no way to fetch the source 'bucket'"):
        fetch(PluginSource("bucket"), egress=EgressPolicy(), max_bytes=10)


def test_a_kind_of_ours_cannot_be_taken(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {PluginGroup.SOURCES: {"local": "cards:fetch"}}, f"{IMPORTS}{SOUND}")
    with pytest.raises(PluginFailed, match="Pratique has a source of this name itself"):
        fetch(PluginSource("local", {"path": "/etc"}), egress=EgressPolicy(), max_bytes=10)


def test_a_source_that_pip_installed_asks_only_addresses_that_are_allowed(tides: Path) -> None:
    assert (plugin_kinds(), [one.problem for one in source_plugins()]) == (["tide-gauge"], [""])
    source = PluginSource("tide-gauge", {"url": "https://127.0.0.1:1/tides.json"})
    with pytest.raises(ForbiddenAddress, match="^the source tide-gauge of the package pratique-tides 1.0.0: "):
        fetch(source, egress=EgressPolicy(), max_bytes=10)
