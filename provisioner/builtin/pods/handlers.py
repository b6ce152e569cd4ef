"""Probes and lifecycle hooks: what the kubelet runs or asks."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.builtin import forms
from provisioner.builtin.changes import FieldRefusal, Path, is_number, numbered, quoted
from provisioner.json_values import as_mapping, value_at

_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
LIFECYCLE = ("exec", "httpGet", "tcpSocket", "sleep")
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HEADER = re.compile(r"[-A-Za-z0-9]+")


def of_probe(name: str, probe: Any, path: Path) -> Iterator[FieldRefusal]:
    yield from of_handlers(as_mapping(probe), path, _HANDLERS)
    if name != "readinessProbe" and value_at(probe, "successThreshold") not in (None, 0, 1):
        yield FieldRefusal((*path, "successThreshold"), f"must be 1, and is {probe['successThreshold']}")
    if name == "readinessProbe" and value_at(probe, "terminationGracePeriodSeconds") is not None:
        yield FieldRefusal((*path, "terminationGracePeriodSeconds"), "must not be set for a readiness probe")
    for key in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold", "successThreshold"):
        value = value_at(probe, key)
        if is_number(value) and value < 0:
            yield FieldRefusal((*path, key), f"must be at least 0, and is {value}")


def of_handlers(handler: Mapping[str, Any], path: Path, kinds: tuple[str, ...]) -> Iterator[FieldRefusal]:
    found = [one for one in kinds if handler.get(one) is not None]
    if len(found) != 1:
        yield FieldRefusal(path, f"must have one of {', '.join(kinds)}, and has {' and '.join(found) or 'none'}")
    if "exec" in found and not value_at(handler, "exec", "command"):
        yield FieldRefusal((*path, "exec", "command"), "must not be empty")
    for place, header in numbered(value_at(handler, "httpGet", "httpHeaders")):
        name = str(header.get("name") or "")
        if not _HEADER.fullmatch(name):
            words = f"must be letters, digits and hyphens, and is {quoted(name)}"
            yield FieldRefusal((*path, "httpGet", "httpHeaders", place, "name"), words)
    for kind in ("httpGet", "tcpSocket", "grpc"):
        port = value_at(handler, kind, "port")
        is_name = isinstance(port, str) and kind != "grpc" and forms.is_port_name(port)
        if kind in found and not is_name and not (is_number(port) and 0 < port < 65536):
            yield FieldRefusal(
                (*path, kind, "port"), f"must be a number from 1 to 65535 or the name of a port, and is {quoted(port)}"
            )
