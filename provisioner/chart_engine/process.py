"""The child process: reads one chart, renders it twice with Helm's engine, answers, and ends.

Nothing here is trusted by the parent. The limits of the kernel hold before Helm is loaded; before anything of the
chart is read, the kernel takes away files, network and other processes.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import resource
import sys
import tarfile
import time
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from provisioner import confinement
from provisioner.errors import BadBundle, BundleTooLarge
from provisioner.render.helm import lookups
from provisioner.render.helm.limits import CPU_SECONDS, MAX_DEPTH, MAX_WORDS, MEMORY_BYTES
from provisioner.unpack import GZIP_MAGIC, UnpackLimits, UnpackMeter, unpack
from provisioner.values import Archive

NO_MEMORY = 2  # as Go ends
_SUBCHARTS, _PACKED, _PROVENANCE, _PASSED_OVER = "charts/", ".tgz", ".prov", ("_", ".")
_PROBE = {
    "Chart.yaml": b"apiVersion: v2\nname: probe\nversion: 1.0.0\n",
    "templates/probe.yaml": b'{{ lookup "v1" "Probe" "" "probe" }}',
}
_SCHEMA = "values.schema.json"
_KNOWN_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")
_NOT_IN_THE_CHART = "which is not in the chart; expected references with #"
# How Helm begins what it says of a file or an address that a schema names; the rest would tell what is there.
_LOADING = "failing loading"
_REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "$schema"})
# Helm prints what such a template gives, and applies none of it.
_NOTES = "NOTES.txt"
# Functions that give another answer a second later, in a template or in a text that one evaluates (tpl).
_ASKS_THE_TIME = re.compile(rb"\b(?:now|ago)\b")
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


def main() -> None:
    limits = [(resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, CPU_SECONDS)]
    # The Go runtime reserves much more address space than it ever uses, so the limit is on what can be written to.
    limits.append((resource.RLIMIT_DATA, MEMORY_BYTES))
    for number, most in limits:
        try:
            resource.setrlimit(number, (most, most))
        except (OSError, ValueError):
            if sys.platform == "linux":
                raise
    # Where the code lies that is not loaded yet: Helm, and what of the standard library it loads late.
    spec = importlib.util.find_spec("helm_python")
    assert spec is not None
    assert spec.origin is not None
    has_network, has_files = (
        not confinement.take_network(),
        not confinement.take_files(readable=[Path(spec.origin).parent, Path(os.__file__).parent]),
    )
    job = json.loads(sys.stdin.buffer.read())
    try:
        with _answered(job):
            # Have Helm do once all that needs a file or a socket: nothing can be opened afterwards.
            import helm_python  # noqa: PLC0415 -- only under the limits

            with helm_python.Chart.load_archive(_packed(_PROBE)) as chart, contextlib.suppress(helm_python.HelmError):
                _called(chart, "{}", "{}", job)
            if confinement.take_system_calls():
                has_network = has_files = False
            found = _rendered(job)
    except BadBundle as exc:
        said = exc.server_words[:MAX_WORDS]
        found = {"error": str(exc)[:MAX_WORDS], "said": said, "is_too_large": isinstance(exc, BundleTooLarge)}
    except MemoryError:
        os._exit(NO_MEMORY)
    left = {"network": has_network, "files": has_files}
    sys.stdout.buffer.write(json.dumps(found | {"left": [what for what, is_left in left.items() if is_left]}).encode())
    sys.stdout.buffer.flush()
    os._exit(0)  # Go's threads are not waited for


@contextmanager
def _answered(job: dict[str, Any]) -> Iterator[None]:
    """Say in the job where `lookup` is answered, if it is."""
    if job["lookups"] is None:
        yield
        return
    with lookups.answering(job["lookups"], job["api_versions"]) as address:
        job["lookup_address"] = address
        yield


def _rendered(job: Mapping[str, Any]) -> dict[str, Any]:
    files = checked_files({path: b64decode(data) for path, data in job["files"].items()})
    _check_zones(files)
    import helm_python  # noqa: PLC0415 -- only under the limits

    try:
        with helm_python.Chart.load_archive(_packed(files)) as chart:
            _check_chart(chart.metadata, chart.dependencies, job)
            first = _once(chart, job)
            if any(_ASKS_THE_TIME.search(data) for path, data in files.items() if not _is_for_people(path)):
                time.sleep(1.1)
            second = _once(chart, job)
            crds = {crd["filename"]: crd["data"] for crd in chart.crds}
    except helm_python.HelmError as exc:
        raise _refused(str(exc)) from exc
    if job["kube_version"]:
        first, second = _cut(files, first, second, job)
    return {"templates": first, "again": {path: second.get(path, "") for path in _moving(first, second)}, "crds": crds}


def _moving(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The templates that did not come to the same text twice; whether that matters, their objects tell."""
    return sorted(path for path in first.keys() | second.keys() if first.get(path) != second.get(path))


def _cut(
    files: Mapping[str, bytes], whole: dict[str, str], again: dict[str, str], job: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, str]]:
    """What the chart comes to, twice, with the cluster's own APIs alone; `whole` and `again` are with those of Helm.

    The templates are shown a copy of Capabilities, and a copy is not the same in every use: printed as a whole, its
    version looks otherwise. So it counts only where the cut itself makes a difference, and the copy none. What moves
    by itself says nothing about either.
    """
    moving = _moving(whole, again)
    own = int(_probed("{{ len .Capabilities.APIVersions }}"))
    exact, copied = (_outcome(_with_capabilities(files, size), job) for size in (own, 0))
    if _settled(exact, moving) == _settled(copied, moving):
        return whole, again
    if _settled(copied, moving) != _settled(whole, moving):
        raise ChartRefused(
            "it reads .Capabilities.APIVersions and prints .Capabilities.KubeVersion as a whole, which cannot be"
            " told apart here; let it print .Capabilities.KubeVersion.Version"
        )
    if isinstance(exact, str):
        raise _refused(exact)
    once_more = _outcome(_with_capabilities(files, own), job) if moving else exact
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
    found: dict[str, str] = json.loads(_called(chart, json.dumps(job["values"]), json.dumps(options), job))
    return {path.partition("/")[2]: words for path, words in found.items() if not path.endswith(_NOTES)}


def _called(chart: Any, values: str, options: str, job: Mapping[str, Any]) -> str:
    import helm_python  # noqa: PLC0415 -- only under the limits
    from helm_python import _native  # noqa: PLC0415 -- likewise

    if "lookup_address" not in job:
        return str(_native.call_string("helm_render", chart._raw(), values, options))
    with helm_python.Config(kube_apiserver=job["lookup_address"], storage_driver="memory") as asking:
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


def checked_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """All that Helm will read of a chart, each file under the one name that Helm's reader gives it, too.

    Raises BadBundle naming the file.
    """
    meter = UnpackMeter(UnpackLimits())
    found = _expanded(files, meter)
    for path in found:
        if meter.path_of(path) != path:
            raise ChartRefused(f"{path[:200]!r}: its name is not in its normal form")
    _check_schemas(found)
    return found


def _expanded(files: Mapping[str, bytes], meter: UnpackMeter, depth: int = 0) -> dict[str, bytes]:
    """The files of a chart, with folders in the place of the archives that Helm would unpack, at any depth.

    So all that is rendered has been looked at. What Helm passes over in charts/ is left out.
    """
    if depth > MAX_DEPTH:
        raise ChartRefused(f"its charts are nested deeper than {MAX_DEPTH}")
    found = {
        path: data for path, data in files.items() if not path.startswith(_SUBCHARTS) or path.endswith(_PROVENANCE)
    }
    subcharts: dict[str, dict[str, bytes]] = {}
    for path in files.keys() - found.keys():
        name, _, inner = path.removeprefix(_SUBCHARTS).partition("/")
        if inner and name.endswith(_PACKED):
            raise ChartRefused(f"{path[:200]!r} lies in a folder with the name of an archive")
        if inner and not name.startswith(_PASSED_OVER):
            subcharts.setdefault(name, {})[inner] = files[path]
    for path in sorted(files.keys() - found.keys()):
        name = path.removeprefix(_SUBCHARTS)
        if "/" in name or not name.endswith(_PACKED) or name.startswith(_PASSED_OVER):
            continue
        folder = name.removesuffix(_PACKED)
        if folder in subcharts:
            raise ChartRefused(f"{path[:200]!r} is an archive, and there is a folder of its name")
        subcharts[folder] = _unpacked(path, files[path], meter)
    for folder, inside in sorted(subcharts.items()):
        inner_files = _expanded(inside, meter, depth + 1)
        found |= {f"{_SUBCHARTS}{folder}/{inner}": data for inner, data in inner_files.items()}
    return found


def _unpacked(path: str, data: bytes, meter: UnpackMeter) -> dict[str, bytes]:
    """The files of a packed chart by their path in it, read by the same rules as what brought the chart itself."""
    if not data.startswith(GZIP_MAGIC):
        raise ChartRefused(f"{path[:200]!r} is no archive of a chart; expected tar.gz")
    files = unpack([Archive(path, data)], meter=meter).files
    roots = {name.partition("/")[0] for name in files}
    if len(roots) > 1 or roots & files.keys():
        raise ChartRefused(f"{path[:200]!r} holds {min(files)[:200]!r}, expected all its files in one folder")
    return {name.partition("/")[2]: content for name, content in files.items()}


def _check_schemas(files: Mapping[str, bytes]) -> None:
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


def _check_zones(files: Mapping[str, bytes]) -> None:
    """Any zone but UTC would be silently taken for UTC here, and not by Helm elsewhere."""
    for path, data in files.items():
        if not _is_for_people(path) and any(not _GIVES_UTC.match(used) for used in _ASKS_A_ZONE.findall(data)):
            raise ChartRefused(
                f'{path[:200]}: it gives dateInZone another time zone than "UTC"; no other is known here'
            )


def _packed(files: Mapping[str, bytes]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz", compresslevel=1) as archive:
        for path, data in sorted(files.items()):
            entry = tarfile.TarInfo(f"chart/{path}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return whole.getvalue()


if __name__ == "__main__":
    main()
