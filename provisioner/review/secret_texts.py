"""Values of Secrets that the same content also writes into variables, arguments and commands of containers, and digests
of whole Secrets in the annotations of pods (`checksum/secret`), from which a weak value can be guessed.

Who may not get the Secret is not told them there either. Only what one content holds is compared, which whoever wrote
it knows: a content compared with the Secrets of another one would tell whether a guess is right (S38).
"""

from __future__ import annotations

import base64
import binascii
import copy
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from provisioner.json_values import items, mapping
from provisioner.review.base.facts import SECRET, FieldPath
from provisioner.review.base.record import plain
from provisioner.review.visibility.finding_views import describe_without_values
from provisioner.review.workloads.pod_specs import pod_specs
from provisioner.values import Content, Finding, JsonObject, ObjectIdentity, ObjectRef, Plan

# A value hides a text that equals it, a longer one also a text that holds it.
SHORTEST, SHORTEST_INSIDE = 4, 8
# Of more the longest: each is looked for in each text.
MAX_VALUES = 300
_DIGEST = re.compile(r"[0-9a-f]{32,128}", re.IGNORECASE)
_SWITCHES = frozenset({"true", "false", "none", "null"})
_PROBES = (("livenessProbe",), ("readinessProbe",), ("startupProbe",))
_HANDLERS = (("lifecycle", "postStart"), ("lifecycle", "preStop"), *_PROBES)
_LISTS = (("command",), ("args",), *((*place, "exec", "command") for place in _HANDLERS))
_Values = Mapping[str, set[ObjectRef]]


@dataclass(slots=True)
class SecretTexts:
    """Where texts stand in an object that hold values of `secrets`."""

    paths: list[FieldPath] = field(default_factory=list)
    secrets: set[ObjectRef] = field(default_factory=set)


def secret_texts(content: Content, plan: Plan) -> dict[ObjectIdentity, SecretTexts]:
    """The planned objects whose containers are given values of the content's Secrets."""
    known, found = _values_of(content, plan), defaultdict[ObjectIdentity, SecretTexts](SecretTexts)
    for ref, path, text in _texts(plan) if known else ():
        for value in _held(text, known):
            found[ref.identity].paths.append(path)
            found[ref.identity].secrets |= known[value]
    return dict(found)


def without_texts(obj: JsonObject, paths: Iterable[Sequence[str | int]], words: str) -> JsonObject:
    """A copy of `obj` with `words` at these paths."""
    shown = copy.deepcopy(obj)
    for *above, last in paths:
        holder: Any = shown
        for step in above:
            holder = holder[step]
        holder[last] = words
    return shown


def kept_apart(findings: Iterable[Finding], content: Content, plan: Plan) -> list[Finding]:
    """The findings; those that quote such a value name its Secrets as sources, and keep words with it for these."""
    known = _values_of(content, plan)
    told = {value for _, _, text in _texts(plan) for value in _held(text, known)} if known else set()
    if not told:
        return list(findings)
    quotable = {value: known[value] for value in told}
    kept = []
    for finding in findings:
        said = [finding.message, finding.server_words]
        values = plain([finding.evidence, finding.path, [note.params for note in finding.notes]])
        quoted = {value for text in (*said, *_strings(values)) for value in _held(text, quotable)}
        sources = tuple(sorted({*finding.sources, *(ref for value in quoted for ref in quotable[value])}))
        if not quoted:
            kept.append(finding)
        elif not any(_held(text, quotable) for text in (finding.message, *_strings(finding.path))):
            kept.append(replace(finding, sources=sources))
        else:
            words, message = "; ".join(filter(None, said)), describe_without_values(finding)
            kept.append(replace(finding, message=message, server_words=words, is_withheld=True, sources=sources))
    return kept


def _held(text: str, known: _Values) -> list[str]:
    inside = [value for value in known if len(value) >= SHORTEST_INSIDE and value in text]
    return [text, *inside] if len(text) < SHORTEST_INSIDE and text in known else inside


def _values_of(content: Content, plan: Plan) -> dict[str, set[ObjectRef]]:
    """The values of the Secrets of a content, as they are and in base64, and digests that may be of any of them."""
    found: dict[str, set[ObjectRef]] = defaultdict(set)
    for manifest in content.everything:
        if manifest.ref.group_kind == SECRET:
            data, texts = (mapping(manifest.body.get(key)).values() for key in ("data", "stringData"))
            for value in (*data, *map(_decoded, data), *texts):
                text = str(value).strip()
                if len(text) >= SHORTEST and text.lower() not in _SWITCHES:
                    found[text].add(manifest.ref)
    values = {text: found[text] for text in sorted(found, key=len, reverse=True)[:MAX_VALUES]}
    secrets = {manifest.ref for manifest in content.everything if manifest.ref.group_kind == SECRET}
    digests = [text for _, path, text in _texts(plan) if path[-2] == "annotations" and _DIGEST.fullmatch(text)]
    return values | dict.fromkeys(digests[:MAX_VALUES] if secrets else (), secrets)


def _decoded(value: Any) -> str:
    try:
        return base64.b64decode(str(value)).decode()
    except (binascii.Error, ValueError):
        return ""


def _texts(plan: Plan) -> Iterator[tuple[ObjectRef, FieldPath, str]]:
    for pod in pod_specs(tuple(planned.after for planned in plan.actions if planned.after is not None)):
        for key, value in pod.annotations.items():
            if isinstance(value, str):
                yield pod.ref, (*pod.path[:-1], "metadata", "annotations", key), value
        for container in pod.containers():
            for at, variable in enumerate(items(container.body.get("env"))):
                if isinstance(text := mapping(variable).get("value"), str):
                    yield pod.ref, (*container.path, "env", at, "value"), text
            for place in _LISTS:
                listed: Any = container.body
                for step in place:
                    listed = mapping(listed).get(step)
                for at, text in enumerate(items(listed)):
                    if isinstance(text, str):
                        yield pod.ref, (*container.path, *place, at), text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)
