"""The child process: renders charts twice each with Helm's engine, and answers, until its parent has no more of them.

Nothing here is trusted by the parent. The limits of the kernel hold before Helm is loaded; before anything of a chart
is read, the kernel takes away files, network and other processes. What a process takes to start is most of what a chart
takes to render, so one of them can render several; the parent says which (render.helm.engine).
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import io
import json
import os
import re
import resource
import select
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from provisioner import confinement
from provisioner.chart_engine import frames
from provisioner.chart_engine.limits import CPU_SECONDS, MAX_IDLE_SECONDS, MAX_KEPT_SECONDS, MAX_WORDS, MEMORY_BYTES
from provisioner.errors import BadBundle, BundleTooLarge

NO_MEMORY = 2  # as Go ends
# Says at which address the lookups of a job are answered.
Answering = Callable[[dict[str, Any]], contextlib.AbstractContextManager[str]]
JOBS, ANSWERS = 0, 1  # standard input and output
_PROBE = {
    "Chart.yaml": b"apiVersion: v2\nname: probe\nversion: 1.0.0\n",
    "templates/probe.yaml": b'{{ lookup "v1" "Probe" "" "probe" }}',
}
# All that a chart might leave to the next one would show here: names of templates, values, files, and what is served.
_CANARY = _PROBE | {
    "values.yaml": b"global: {}\nimage: {}\n",
    "file.txt": b"file",
    "templates/canary.yaml": b"""{{ define "canary" }}{{ .Values | toJson }} {{ .Chart | toJson }}{{ end }}\
{{ include "canary" . }} {{ .Release | toJson }} {{ .Capabilities | toJson }} {{ .Files.Get "file.txt" }}
{{ range $path, $_ := .Files.Glob "**" }}{{ $path }} {{ end }}{{ lookup "v1" "Probe" "" "probe" | toJson }}""",
}
_MOST_DESCRIPTORS = 64
_SCHEMA = "values.schema.json"
_KNOWN_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_NOT_IN_THE_CHART = "which is not in the chart; expected references with #"
# How Helm begins what it says of a file or an address that a schema names; the rest would tell what is there.
_LOADING = "failing loading"
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$schema"})
# Helm prints what such a template gives, and applies none of it.
_NOTES = "NOTES.txt"
# A comment of a template or of a text that one evaluates (tpl), or what is in an action; quoted text may hold braces.
_ACTION = re.compile(
    rb"""\{\{(?:-\s)?/\*.*?\*/|\{\{("""
    rb"""(?>[^"'`}]+|"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|`[^`]*`|\}(?!\})|["'`])*+)""",
    re.DOTALL,
)
# Functions that give another answer a second later; those of dates take what is no time for the time that it is.
_ASKS_THE_TIME = re.compile(rb"\b(?:now|ago|date|dateInZone|date_in_zone|htmlDate|htmlDateInZone|durationRound)\b")
# What Helm reads from files that are not there: for a zone that it does not find it takes UTC, and says nothing.
_ASKS_A_ZONE = re.compile(rb"\b(?:dateInZone|date_in_zone|htmlDateInZone)\b(?=([^}]*))")
_GIVES_UTC = re.compile(rb'(?:[^|()]|\((?:[^()]|\([^()]*\))*\))*?\s["`]UTC["`]\s*(?:[-|)]|$)')
_OURS = "pratique.recordedCapabilities"
_PREAMBLE = b'{{ include "' + _OURS.encode() + b'" . }}'
# Helm adds the given API versions to its own list. What a cluster does not serve must not be there, so each template
# can begin by cutting Helm's own off: `slice` keeps the type of the list, and with it its method Has.
_HELPER = (
    '{{- define "' + _OURS + '" -}}{{- if kindIs "map" . -}}{{- if hasKey . "Capabilities" -}}'
    '{{- if not (kindIs "map" .Capabilities) -}}{{- $_ := set . "Capabilities" (dict'
    ' "KubeVersion" (dict "Version" .Capabilities.KubeVersion.Version'
    ' "GitVersion" .Capabilities.KubeVersion.Version'
    ' "Major" .Capabilities.KubeVersion.Major "Minor" .Capabilities.KubeVersion.Minor)'
    ' "HelmVersion" .Capabilities.HelmVersion'
    ' "APIVersions" (slice .Capabilities.APIVersions %d)) -}}{{- end -}}'
    '{{- range .Subcharts -}}{{- include "' + _OURS + '" . -}}{{- end -}}{{- end -}}{{- end -}}{{- end -}}'
)


class ChartRefused(BadBundle):
    """A chart that is not rendered: the message says why, or else `server_words` are Helm's, which may quote values."""


def main(answering: Answering | None = None) -> None:
    """With `answering`, one chart alone is rendered, whose lookups are answered; else one after the other."""
    # The Go runtime reserves much more address space than it ever uses, so the limit is on what can be written to.
    confinement.limit_use({resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_DATA: MEMORY_BYTES})
    confinement.end_with_parent()
    # Where the code lies that is not loaded yet: Helm, and what of the standard library it loads late.
    spec = importlib.util.find_spec("helm_python")
    assert spec is not None
    assert spec.origin is not None
    has_network, has_files = (
        not confinement.take_network(),
        not confinement.take_files(readable=[Path(spec.origin).parent, Path(os.__file__).parent]),
    )
    try:
        job, files = frames.read_frame(_read_bytes) if answering else ({}, {})
        with answering(job) if answering else contextlib.nullcontext("") as address:
            # Have Helm do once all that needs a file or a socket: nothing can be opened afterwards.
            import helm_python  # noqa: PLC0415 -- only under the limits

            with helm_python.Chart.load_archive(_packed(_PROBE)) as chart, contextlib.suppress(helm_python.HelmError):
                _called(chart, "{}", "{}", address)
            with contextlib.suppress(helm_python.HelmError):
                helm_python.Chart.load(spec.origin)  # no chart: with its first file, Go opens what it waits with
            own = int(_probed("{{ len .Capabilities.APIVersions }}"))
            if confinement.take_system_calls():
                has_network = has_files = False
            left = {"network": has_network, "files": has_files}
            still = [what for what, is_left in left.items() if is_left]
            _write({"state": _state(), "version": helm_python.helm_sdk_version(), "left": still})
            while True:
                if not answering:
                    job, files = frames.read_frame(_read_bytes)
                answer = _answered(files, job | {"lookup_address": address, "own_apis": own})
                _write(answer)
                if answering or "error" in answer or time.process_time() > MAX_KEPT_SECONDS:
                    break
                _write({"state": _state()})
    except MemoryError:
        os._exit(NO_MEMORY)
    os._exit(0)  # Go's threads are not waited for


def _state() -> list[Any]:
    """What is the same before each chart, or this process is not used again."""
    import helm_python  # noqa: PLC0415 -- only under the limits

    cluster = {"kube_version": "v1.30.0", "api_versions": ["canary/v1"]}
    with helm_python.Chart.load_archive(_packed(_CANARY)) as chart:
        canary = [_called(chart, "{}", json.dumps(told), "") for told in ({}, cluster)]
    descriptors = []
    for number in range(_MOST_DESCRIPTORS):
        with contextlib.suppress(OSError):
            fcntl.fcntl(number, fcntl.F_GETFD)
            descriptors.append(number)
    return [canary, helm_python.open_handles_count(), descriptors]


def _answered(files: Mapping[str, bytes], job: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return _rendered(files, job)
    except BadBundle as exc:
        said = exc.server_words[:MAX_WORDS]
        return {"error": str(exc)[:MAX_WORDS], "said": said, "is_too_large": isinstance(exc, BundleTooLarge)}


def _read_bytes(size: int) -> bytes:
    """Exactly so many; ends this process where the parent has no more, or does not say anything."""
    found = bytearray()
    while len(found) < size:
        ready, _, _ = select.select([JOBS], [], [], MAX_IDLE_SECONDS)
        read = os.read(JOBS, size - len(found)) if ready else b""
        if not read:
            os._exit(0)
        found += read
    return bytes(found)


def _write(message: Mapping[str, Any]) -> None:
    left = memoryview(frames.packed_frame(message))
    while left:
        left = left[os.write(ANSWERS, left) :]


def _rendered(files: Mapping[str, bytes], job: Mapping[str, Any]) -> dict[str, Any]:
    check_schemas(files)
    _check_zones(files)
    import helm_python  # noqa: PLC0415 -- only under the limits

    try:
        with helm_python.Chart.load_archive(_packed(files)) as chart:
            _check_chart(chart.metadata, chart.dependencies, job)
            first = _once(chart, job)
            if asks_the_time(files, job["values"]):
                time.sleep(1.01 - time.time() % 1)  # until the next second of the clock
            exact = _outcome(_with_capabilities(files, job["own_apis"]), job) if job["kube_version"] else None
            # What came to the same text with the cluster's own APIs alone came to it twice, and reads no others.
            second = first if exact == first else _once(chart, job)
            crds = {crd["filename"]: crd["data"] for crd in chart.crds}
    except helm_python.HelmError as exc:
        raise _refused(str(exc)) from exc
    if exact is not None and exact != first:
        first, second = _cut(files, (first, second, exact), job)
    return {"templates": first, "again": {path: second.get(path, "") for path in _moving(first, second)}, "crds": crds}


def asks_the_time(files: Mapping[str, bytes], values: Mapping[str, Any]) -> bool:
    """Whether an action in one of these texts, which a template may evaluate, asks for the time."""
    texts = [data for path, data in files.items() if not _is_for_people(path)]
    pending: list[Any] = [values]
    while pending:
        value = pending.pop()
        if isinstance(value, str):
            texts.append(value.encode(errors="replace"))
        elif isinstance(value, dict | list):
            pending.extend(value.values() if isinstance(value, dict) else value)
    return any(_ASKS_THE_TIME.search(action[1] or b"") for text in texts for action in _ACTION.finditer(text))


def _moving(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The templates that did not come to the same text twice; whether that matters, their objects tell."""
    return sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))


def _cut(
    files: Mapping[str, bytes],
    found: tuple[dict[str, str], dict[str, str], dict[str, str] | str],
    job: Mapping[str, Any],
) -> tuple[dict[str, str], dict[str, str]]:
    """What the chart comes to, twice, with the cluster's own APIs alone; `found` is what it came to twice with those of
    Helm, and once with the cluster's alone, or Helm's words.

    The templates are shown a copy of Capabilities, and a copy is not the same in every use: printed as a whole, its
    version looks otherwise. So it counts only where the cut itself makes a difference, and the copy none. What moves
    by itself says nothing about either.
    """
    whole, again, exact = found
    moving = _moving(whole, again)
    copied = _outcome(_with_capabilities(files, 0), job)
    if _settled(exact, moving) == _settled(copied, moving):
        return whole, again
    if _settled(copied, moving) != _settled(whole, moving):
        raise ChartRefused(
            "it reads .Capabilities.APIVersions and prints .Capabilities.KubeVersion as a whole, which cannot be"
            " told apart here; let it print .Capabilities.KubeVersion.Version"
        )
    if isinstance(exact, str):
        raise _refused(exact)
    once_more = _outcome(_with_capabilities(files, job["own_apis"]), job) if moving else exact
    if isinstance(once_more, str):
        raise _refused(once_more)
    return exact, once_more


def _settled(found: dict[str, str] | str, moving: list[str]) -> dict[str, str] | str:
    return found if isinstance(found, str) else {path: text for path, text in found.items() if path not in moving}


def _outcome(files: Mapping[str, bytes], job: Mapping[str, Any]) -> dict[str, str] | str:
    """What is rendered, or Helm's words."""
    import helm_python  # noqa: PLC0415 -- only under the limits

    try:
        with helm_python.Chart.load_archive(_packed(files)) as chart:
            return _once(chart, job)
    except helm_python.HelmError as exc:
        return str(exc)


def _refused(words: str) -> ChartRefused:
    """The error with Helm's words, but for those about what is not in the chart."""
    if _LOADING in words:
        return ChartRefused(f"its schema refers to something, {_NOT_IN_THE_CHART}")
    return ChartRefused(server_words=words)


def _once(chart: Any, job: Mapping[str, Any]) -> dict[str, str]:
    options = {
        "name": job["release_name"],
        "namespace": job["namespace"],
        "is_install": not job["is_upgrade"],
        "is_upgrade": job["is_upgrade"],
        "revision": 2 if job["is_upgrade"] else 1,
    }
    if job["kube_version"]:
        # The library takes these two, but the method Chart.render does not offer them.
        options |= {"kube_version": job["kube_version"], "api_versions": job["api_versions"]}
    found: dict[str, str] = json.loads(
        _called(chart, json.dumps(job["values"]), json.dumps(options), job["lookup_address"])
    )
    return {path.partition("/")[2]: words for path, words in found.items() if not path.endswith(_NOTES)}


def _called(chart: Any, values: str, options: str, address: str) -> str:
    import helm_python  # noqa: PLC0415 -- only under the limits
    from helm_python import _native  # noqa: PLC0415 -- likewise

    if not address:
        return str(_native.call_string("helm_render", chart._raw(), values, options))
    with helm_python.Config(kube_apiserver=address, storage_driver="memory") as asking:
        return str(_native.call_string("helm_render_with_config", asking._raw(), chart._raw(), values, options))


def _check_chart(metadata: Mapping[str, Any], loaded: list[dict[str, Any]], job: Mapping[str, Any]) -> None:
    if metadata.get("type") == "library":
        raise ChartRefused("it is a library chart, which has nothing to install")
    present = {str(one.get("name")) for one in loaded}
    missing = sorted({str(dependency.get("name")) for dependency in metadata.get("dependencies") or []} - present)
    if missing:
        raise ChartRefused(
            f"charts/ lacks the dependencies {', '.join(missing[:10])}; run `helm dependency build` and ship it"
        )
    wanted = str(metadata.get("kubeVersion") or "")
    if wanted and job["kube_version"] and not _is_compatible(wanted, job["kube_version"]):
        raise ChartRefused(f"it needs Kubernetes {wanted}, but the cluster has {job['kube_version']}")


def _is_compatible(wanted: str, version: str) -> bool:
    """By Helm's own comparison; what a distribution adds to its version (-gke.1, +k3s1) does not count."""
    plain = version.partition("+")[0].partition("-")[0]
    return _probed("{{ " + f"semverCompare {json.dumps(wanted)} {json.dumps(plain)}" + " }}") == "true"


def _with_capabilities(files: Mapping[str, bytes], cut: int) -> dict[str, bytes]:
    found = {path: _PREAMBLE + data if _is_template(path) else data for path, data in files.items()}
    return found | {"templates/_pratique_capabilities.tpl": (_HELPER % cut).encode()}


def _probed(template: str) -> str:
    """What Helm makes of one template, in a chart that has nothing else."""
    import helm_python  # noqa: PLC0415 -- only under the limits

    with helm_python.Chart.load_archive(_packed(_PROBE | {"templates/probe.yaml": template.encode()})) as chart:
        return str(next(iter(chart.render().values())))


def _is_template(path: str) -> bool:
    """Whether Helm renders this file by itself: partials (`_helpers.tpl`) are only included by others."""
    parts = path.split("/")
    while len(parts) > 2 and parts[0] == "charts":
        parts = parts[2:]
    return len(parts) > 1 and parts[0] == "templates" and not parts[-1].startswith("_")


def _is_for_people(path: str) -> bool:
    return path.lower().endswith((".md", ".txt", ".gotmpl")) or path.rpartition("/")[2] in ("LICENSE", "OWNERS")


def _check_zones(files: Mapping[str, bytes]) -> None:
    """Any zone but UTC would be silently taken for UTC here, and not by Helm elsewhere."""
    for path, data in files.items():
        if not _is_for_people(path) and any(not _GIVES_UTC.match(used) for used in _ASKS_A_ZONE.findall(data)):
            raise ChartRefused(
                f'{path[:200]}: it gives dateInZone another time zone than "UTC"; no other is known here'
            )


def _packed(files: Mapping[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=0) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"chart/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return whole.getvalue()


def check_schemas(files: Mapping[str, bytes]) -> None:
    """Helm would fetch what a schema refers to, from any address and from our files."""
    for path, data in files.items():
        if path.rpartition("/")[2] != _SCHEMA:
            continue
        try:
            pending = [json.loads(data)]
        except (ValueError, RecursionError) as exc:
            raise ChartRefused(f"{path}: it is no JSON") from exc
        while pending:
            value = pending.pop()
            if isinstance(value, dict):
                pending.extend(value.values())
                for key in _REFERENCES & value.keys():
                    target = value[key]
                    if isinstance(target, str) and not target.startswith(("#", *_KNOWN_SCHEMAS)):
                        raise ChartRefused(f"{path}: it refers to {target[:200]!r}, {_NOT_IN_THE_CHART}")
            elif isinstance(value, list):
                pending.extend(value)


if __name__ == "__main__":
    main()
