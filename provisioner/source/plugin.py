"""Sources of other packages: the plug-in fetches, and what it returns is looked at before it is believed."""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import replace
from typing import Any

from provisioner.errors import BadBundle, BadSource, BundleTooLarge, PluginFailed, TryLater, Unreachable
from provisioner.plugins import Plugin, PluginGroup, call, installed, load, tried
from provisioner.source.egress import EgressPolicy
from provisioner.source.kinds import RESERVED_KINDS
from provisioner.source.source_type import Fetched, PluginSource
from provisioner.values import Archive, Pin

# More than a source of ours may take (EgressPolicy.timeout_seconds), so that it is the client that says what was slow.
FETCH_SECONDS = 150.0
MAX_REFERENCE = 2000
MAX_ARCHIVES = 128
DIGEST = re.compile(r"sha256:[0-9a-f]{64}|[0-9a-f]{40}")
FUNCTION = "a function of a PluginSource"


def kinds() -> list[str]:
    """What spec.sources[].kind may name beside our own kinds. Nothing is loaded."""
    return sorted({plugin.name for plugin in _plugins()})


def source_plugins() -> list[Plugin]:
    """The sources of other packages, loaded, each with its problem if it is disabled."""
    return [tried(plugin, callable, FUNCTION) for plugin in _plugins()]


def fetch(source: PluginSource, *, egress: EgressPolicy, max_bytes: int) -> Fetched:
    """What the plug-in of this kind fetches; it is given no credentials.

    Raises PluginFailed, and what a plug-in may raise: BadSource, BadBundle and TryLater.
    """
    plugin = next((plugin for plugin in _plugins() if plugin.name == source.kind), None)
    if plugin is None:
        raise BadSource(f"there is no way to fetch the source {source.kind!r}; expected the name of a plug-in")
    function = load(plugin, callable, FUNCTION)
    given = replace(source, parameters=deepcopy(dict(source.parameters)))

    def run() -> Fetched:
        return _sound(function(given, egress=egress, max_bytes=max_bytes), source, max_bytes)

    may_raise = (BadSource, BadBundle, Unreachable, TryLater)
    return call(plugin, run, seconds=FETCH_SECONDS, may_raise=may_raise)


def _plugins() -> list[Plugin]:
    return installed(PluginGroup.SOURCES, RESERVED_KINDS)


def _sound(fetched: Any, source: PluginSource, max_bytes: int) -> Fetched:
    """What a plug-in returned, if it is what a source returns; its files go where the spec puts them."""
    if not isinstance(fetched, Fetched):
        raise PluginFailed(f"it returned a {type(fetched).__name__}; expected Fetched")
    archives = tuple(fetched.archives)
    are_sound = all(
        isinstance(archive, Archive) and isinstance(archive.name, str) and type(archive.data) is bytes
        for archive in archives
    )
    if not 1 <= len(archives) <= MAX_ARCHIVES or not are_sound:
        raise PluginFailed(f"its archives are not sound; expected 1 to {MAX_ARCHIVES} Archive, with a name and bytes")
    size = sum(len(archive.data) for archive in archives)
    if size > max_bytes:
        raise BundleTooLarge(f"it fetched {size} bytes; the limit is {max_bytes} (max_bytes, PRATIQUE_MAX_BUNDLE_MIB)")
    pin = fetched.pin
    if not isinstance(pin, Pin):
        raise PluginFailed(f"its pin is a {type(pin).__name__}; expected Pin")
    if not (isinstance(pin.digest, str) and DIGEST.fullmatch(pin.digest)):
        raise PluginFailed("its pin has no digest; expected sha256:<64 hex digits> or a commit of 40")
    reference = pin.reference
    if not (isinstance(reference, str) and reference.isprintable() and 1 <= len(reference) <= MAX_REFERENCE):
        raise PluginFailed(f"its pin has no reference; expected 1 to {MAX_REFERENCE} characters that can be printed")
    return Fetched(source.pin(*(reference, pin.digest)), archives)
