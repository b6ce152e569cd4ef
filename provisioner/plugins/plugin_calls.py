"""To load a plug-in and to run it: for a limited time, and with any end that it may come to.

It runs in a thread of its own, which is left to itself where it does not come back. This process does not ask that
plug-in again; it ends with the process, and those of a worker's requests end soon.
"""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import Any, NoReturn, TypeVar

from provisioner import errors
from provisioner.errors import PluginFailed, PratiqueError, Unreachable
from provisioner.plugins.entry_points import Plugin, shown

logger = logging.getLogger(__name__)
logger.addHandler(logging.NullHandler())  # on the command line the error itself is said

LOAD_SECONDS = 30.0
MAX_WORDS = 1000
MAX_RETRY_SECONDS = 3600.0
T = TypeVar("T")
# By plug-in, for as long as this process lives: what was loaded, and why one is not asked again.
_loaded: dict[Plugin, Any] = {}
_disabled: dict[Plugin, str] = {}


def load(plugin: Plugin, is_fit: Callable[[Any], bool], expected: str) -> Any:
    """What the entry point names, once a process. Raises PluginFailed, every time where it did once.

    `is_fit` says whether it is what the group asks for, and `expected` says so in words.
    """
    _check_enabled(plugin)
    if plugin in _loaded:
        return _loaded[plugin]
    point = EntryPoint(plugin.name, plugin.target, plugin.group)
    found: list[Any] = []
    end = _run_bounded(lambda: found.append(point.load()), LOAD_SECONDS)
    advice = "Fix or uninstall the package, then restart Pratique"
    if end is None:
        _disable(plugin, f"it was not loaded within {LOAD_SECONDS:.0f} s. {advice}")
    if isinstance(end, BaseException):
        missing = f": there is no module {shown(str(end.name))}" if isinstance(end, ModuleNotFoundError) else ""
        logger.error("a plug-in cannot be loaded", extra={"plugin": str(plugin), "error": _error_words(end)})
        _disable(plugin, f"it cannot be loaded ({_cause(end)}{missing}). {advice}")
    if not is_fit(found[0]):
        kind = shown(type(found[0]).__name__)
        _disable(plugin, f"{shown(plugin.target)} is of the type {kind}; expected {expected}. {advice}")
    _loaded[plugin] = found[0]
    return found[0]


def tried(plugin: Plugin, is_fit: Callable[[Any], bool], expected: str) -> Plugin:
    """The plug-in with what loading it says against it, if anything."""
    try:
        load(plugin, is_fit, expected)
    except PluginFailed:
        return replace(plugin, problem=plugin.problem or _disabled[plugin])
    return plugin


def call(
    plugin: Plugin, function: Callable[[], T], *, seconds: float, may_raise: tuple[type[PratiqueError], ...] = ()
) -> T:
    """What `function`, which runs the plug-in's code, returns.

    Errors of the kinds that it `may_raise` keep their kind, and their words after its name. Everything else that it
    raises is a PluginFailed without its words, which may quote what it was given; so is that it does not return within
    `seconds`, and it is not asked again in this process then.
    """
    _check_enabled(plugin)
    found: list[T] = []
    end = _run_bounded(lambda: found.append(function()), seconds)
    if end is None:
        _disable(plugin, f"it did not return within {seconds:.0f} s. Its authors have to fix it")
    if isinstance(end, may_raise):
        raise _with_plugin_name(plugin, end) from None
    if isinstance(end, BaseException):
        why = f": {_error_words(end)}" if isinstance(end, PluginFailed) else f" ({_cause(end)})"
        logger.error("a plug-in failed", extra={"plugin": str(plugin), "cause": why.strip(": ")})
        raise PluginFailed(f"{plugin} failed{why}. Its authors have to fix it") from None
    return found[0]


def _run_bounded(function: Callable[[], object], seconds: float) -> BaseException | bool | None:
    """Run `function`, in the context of the caller: what it raised, True where it returned, None where it did not."""
    ends: list[BaseException | bool] = [SystemExit()]
    is_over, context = threading.Event(), contextvars.copy_context()

    def run() -> None:
        try:
            context.run(function)
            ends.append(True)
        except BaseException as exc:  # noqa: BLE001 -- whatever it is, it ends this call and nothing else
            ends.append(exc)
        finally:
            is_over.set()

    threading.Thread(target=run, daemon=True, name="plug-in").start()
    return ends[-1] if is_over.wait(seconds) else None


def _with_plugin_name(plugin: Plugin, error: PratiqueError) -> PratiqueError:
    """The same error of ours, with the plug-in's name; of a kind of the plug-in's own the kind of ours that it is."""
    kind: Any = next(one for one in type(error).__mro__ if one.__module__ == errors.__name__)
    words = f"{plugin}: {_error_words(error)}"
    if issubclass(kind, Unreachable):
        asked: Any = getattr(error, "retry_after_seconds", 0.0)
        is_fit = isinstance(asked, int | float) and 0 <= asked <= MAX_RETRY_SECONDS
        return Unreachable(words, retry_after_seconds=asked if is_fit else 0.0)
    made: PratiqueError = kind(words)
    return made


def _error_words(error: BaseException) -> str:
    """What it was made with, where that is text; its own way to say it is code of the plug-in."""
    words = error.args[0] if error.args and isinstance(error.args[0], str) else ""
    return shown(words or type(error).__name__, MAX_WORDS)


def _cause(error: BaseException) -> str:
    """Its kind and where it was raised, without its words."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<"):
            place = f" at {file.rpartition('/')[2]}:{trace.tb_lineno}"
        trace = trace.tb_next
    return shown(f"{type(error).__name__}{place}")


def _check_enabled(plugin: Plugin) -> None:
    problem = plugin.problem or _disabled.get(plugin)
    if problem:
        raise PluginFailed(f"{plugin} is disabled: {problem}")


def _disable(plugin: Plugin, problem: str) -> NoReturn:
    """From now on, in this process."""
    logger.error("a plug-in is disabled", extra={"plugin": str(plugin), "problem": problem})
    _disabled[plugin] = problem
    raise PluginFailed(f"{plugin} is disabled: {problem}")
