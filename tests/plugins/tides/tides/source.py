"""The source `tide-gauge`: `parameters.url` is where the gauge publishes its table as JSON."""

from __future__ import annotations

from provisioner.errors import BadSource
from provisioner.source import Archive, EgressPolicy, Fetched, PluginSource, SourceClient


def fetch(source: PluginSource, *, egress: EgressPolicy, max_bytes: int) -> Fetched:
    url = source.parameters.get("url")
    if not isinstance(url, str):
        raise BadSource("parameters.url is missing; expected the address of a gauge")
    with SourceClient(egress) as client:
        reply = client.get(url, max_bytes=max_bytes)
    if reply.status != 200:
        raise BadSource(f"the gauge answered {reply.status}; expected 200")
    return Fetched(source.pin(url, reply.digest), (Archive("tides.json", reply.body),))
