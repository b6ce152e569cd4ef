"""A plug-in that is broken in any way is named and disabled; whoever asked goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from provisioner import regexes
from provisioner.errors import BadBundle, BadSource, PluginFailed, TryLater, Unreachable
from provisioner.plugins import Plugin, PluginGroup, call, installed, load, plugin_calls, tried
from tests.support.plugins import PluginPath

FORMATS = PluginGroup.FORMATS
PLUGIN = Plugin(FORMATS, "tarot", "cards 1", "cards:read")
FUNCTION = "a function"
SECONDS = 120.0


class Odd(BaseException):
    """None of Python's own and none of ours."""


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.fixture(autouse=True)
def _no_memory_of_other_tests(plugin_path: PluginPath) -> None:
    """`plugin_path` forgets what failed here."""


def raising(error: BaseException) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


def recursing() -> None:
    recursing()


def called(function: Callable[[], Any], **given: Any) -> Any:
    return call(PLUGIN, function, **{"seconds": SECONDS, **given})


def of_package(plugin_path: PluginPath, code: str, target: str = "cards:read") -> Plugin:
    plugin_path.add("cards", {FORMATS: {"tarot": target}}, code)
    (plugin,) = installed(FORMATS, ())
    return plugin


def loaded(plugin: Plugin) -> Any:
    return load(plugin, callable, FUNCTION)


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ValueError("the password is Pl4nted"), id="an Exception"),
        pytest.param(SystemExit("Pl4nted"), id="SystemExit"),
        pytest.param(KeyboardInterrupt(), id="KeyboardInterrupt"),
        pytest.param(GeneratorExit(), id="GeneratorExit"),
        pytest.param(MemoryError(), id="MemoryError"),
        pytest.param(Odd("Pl4nted"), id="a BaseException of its own"),
        pytest.param(Unspeakable(), id="one that cannot be said"),
        pytest.param(BadSource("Pl4nted"), id="an error of ours that it may not raise"),
    ],
)
def test_whatever_a_plugin_raises_names_it_and_keeps_its_words_out(error: BaseException) -> None:
    with pytest.raises(PluginFailed) as caught:
        called(raising(error), may_raise=(BadBundle,))
    assert str(caught.value).startswith("the format tarot of the package cards 1 failed (")
    assert f"{type(error).__name__} at test_plugin_calls.py:" in str(caught.value)
    assert "Pl4nted" not in str(caught.value)


def test_endless_recursion_is_named() -> None:
    with pytest.raises(PluginFailed, match=r"RecursionError at test_plugin_calls\.py"):
        called(recursing)


def test_one_that_failed_is_asked_again() -> None:
    with pytest.raises(PluginFailed):
        called(raising(ValueError()))
    assert called(lambda: "better") == "better"


def test_one_that_never_returns_is_left_and_not_asked_again() -> None:
    with pytest.raises(PluginFailed, match=r"is disabled: it did not return within 0 s"):
        called(threading.Event().wait, seconds=0.2)
    asked: list[int] = []
    with pytest.raises(PluginFailed, match="did not return"):
        called(lambda: asked.append(1))
    assert asked == []
    other = Plugin(FORMATS, "rummy", "cards 1", "cards:deal")
    assert call(other, lambda: "unharmed", seconds=SECONDS) == "unharmed"


def test_what_a_plugin_may_raise_keeps_its_kind_and_gets_its_name() -> None:
    with pytest.raises(BadBundle, match="^the format tarot of the package cards 1: a card is missing$"):
        called(raising(BadBundle("a card is missing")), may_raise=(BadBundle, TryLater))
    with pytest.raises(Unreachable) as caught:
        called(raising(Unreachable("busy", retry_after_seconds=7)), may_raise=(BadBundle, TryLater))
    assert caught.value.retry_after_seconds == 7


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), 1e9, "soon"])
def test_a_senseless_time_to_wait_counts_as_none(seconds: Any) -> None:
    with pytest.raises(Unreachable) as caught:
        called(raising(Unreachable("busy", retry_after_seconds=seconds)), may_raise=(TryLater,))
    assert caught.value.retry_after_seconds == 0.0


def test_a_kind_of_its_own_becomes_the_kind_of_ours_that_it_is() -> None:
    class NoCard(BadBundle):
        code = "no-card"

    with pytest.raises(BadBundle) as caught:
        called(raising(NoCard("x\n" * 5000)), may_raise=(BadBundle,))
    assert (type(caught.value), caught.value.code) == (BadBundle, "bad-bundle")
    assert len(str(caught.value)) < 5000
    assert str(caught.value).isprintable()


def test_a_plugin_runs_within_the_limits_of_who_asks() -> None:
    @regexes.limited(0.0)
    def ask() -> object:
        return called(regexes._left.get)

    assert ask() is not None


@pytest.mark.parametrize(
    ("code", "target", "words"),
    [
        pytest.param("", "nowhere:read", "ModuleNotFoundError.*there is no module nowhere", id="no such module"),
        pytest.param("import boto9", "cards:read", "there is no module boto9", id="something that it needs is missing"),
        pytest.param("", "cards:read", "AttributeError", id="no such attribute"),
        pytest.param("1/0", "cards:read", r"ZeroDivisionError at cards\.py:1", id="raises while loading"),
        pytest.param("raise SystemExit(0)", "cards:read", r"SystemExit at cards\.py:1", id="ends the process"),
        pytest.param("raise GeneratorExit", "cards:read", r"GeneratorExit at cards\.py:1", id="no Exception"),
        pytest.param("def f(): f()\nf()", "cards:read", r"RecursionError at cards\.py", id="recursion"),
        pytest.param("read =", "cards:read", "SyntaxError", id="no Python"),
        pytest.param("read = {}", "cards:read", "is of the type dict; expected a function", id="not callable"),
        pytest.param("read = len", "cards read!", "cannot be loaded", id="a target that is none"),
    ],
)
def test_what_cannot_be_loaded_is_disabled_with_its_cause(
    code: str, target: str, words: str, plugin_path: PluginPath
) -> None:
    plugin = of_package(plugin_path, code, target)
    with pytest.raises(PluginFailed, match=f"the format tarot of the package cards 1 is disabled: .*{words}") as first:
        loaded(plugin)
    with pytest.raises(PluginFailed) as second:
        loaded(plugin)
    assert str(first.value) == str(second.value)
    assert len(str(first.value)) < 500


def test_one_that_is_not_loaded_in_time_is_disabled(plugin_path: PluginPath, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_calls, "LOAD_SECONDS", 0.3)
    # A name that no other test loads: Python's lock on it is held for as long as this process lives.
    plugin_path.add("sloth", {FORMATS: {"tarot": "sloth:read"}}, "import threading\nthreading.Event().wait()")
    (plugin,) = installed(FORMATS, ())
    with pytest.raises(PluginFailed, match="it was not loaded within"):
        loaded(plugin)


def test_it_is_loaded_once(plugin_path: PluginPath) -> None:
    code = "import sys\nsys.modules['cards'].__dict__.setdefault('count', []).append(1)\ndef read(): return count"
    plugin = of_package(plugin_path, code)
    assert loaded(plugin) is loaded(plugin)
    assert loaded(plugin)() == [1]


def test_trying_answers_with_the_problem(plugin_path: PluginPath) -> None:
    assert "ZeroDivisionError" in tried(of_package(plugin_path, "1/0"), callable, FUNCTION).problem


def test_a_problem_of_the_name_is_said_without_loading(plugin_path: PluginPath) -> None:
    plugin_path.add("cards", {FORMATS: {"plain": "cards:read"}}, "raise AssertionError('loaded')")
    (plugin,) = installed(FORMATS, ("plain",))
    assert tried(plugin, callable, FUNCTION) == plugin
    with pytest.raises(PluginFailed, match="Pratique has a format of this name itself"):
        loaded(plugin)
