"""All files that Helm will read of a chart, those of packed subcharts included, each under the one name that it has."""

from __future__ import annotations

from collections.abc import Mapping

from provisioner.errors import BadBundle
from provisioner.render.helm.limits import MAX_CHART_BYTES, MAX_DEPTH
from provisioner.unpack import GZIP_MAGIC, UnpackLimits, UnpackMeter, unpack
from provisioner.values import Archive

_SUBCHARTS, _PACKED, _PROVENANCE, _PASSED_OVER = "charts/", ".tgz", ".prov", ("_", ".")


def checked_files(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """All that Helm will read of a chart, each file under the one name that Helm's reader gives it, too.

    Raises BadBundle naming the file.
    """
    meter = UnpackMeter(UnpackLimits(max_bytes=MAX_CHART_BYTES))
    found = _expanded(files, meter)
    for path in found:
        if meter.path_of(path) != path:
            raise BadBundle(f"{path[:200]!r}: its name is not in its normal form")
    return found


def _expanded(files: Mapping[str, bytes], meter: UnpackMeter, depth: int = 0) -> dict[str, bytes]:
    """The files of a chart, with folders in the place of the archives that Helm would unpack, at any depth.

    So all that is rendered has been looked at. What Helm passes over in charts/ is left out.
    """
    if depth > MAX_DEPTH:
        raise BadBundle(f"its charts are nested deeper than {MAX_DEPTH}")
    found = {
        path: data for path, data in files.items() if not path.startswith(_SUBCHARTS) or path.endswith(_PROVENANCE)
    }
    subcharts: dict[str, dict[str, bytes]] = {}
    for path in files.keys() - found.keys():
        name, _, inner = path.removeprefix(_SUBCHARTS).partition("/")
        if inner and name.endswith(_PACKED):
            raise BadBundle(f"{path[:200]!r} lies in a folder with the name of an archive")
        if inner and not name.startswith(_PASSED_OVER):
            subcharts.setdefault(name, {})[inner] = files[path]
    for path in sorted(files.keys() - found.keys()):
        name = path.removeprefix(_SUBCHARTS)
        if "/" in name or not name.endswith(_PACKED) or name.startswith(_PASSED_OVER):
            continue
        folder = name.removesuffix(_PACKED)
        if folder in subcharts:
            raise BadBundle(f"{path[:200]!r} is an archive, and there is a folder of its name")
        subcharts[folder] = _unpacked(path, files[path], meter)
    for folder, inside in sorted(subcharts.items()):
        inner_files = _expanded(inside, meter, depth + 1)
        found |= {f"{_SUBCHARTS}{folder}/{inner}": data for inner, data in inner_files.items()}
    return found


def _unpacked(path: str, data: bytes, meter: UnpackMeter) -> dict[str, bytes]:
    """The files of a packed chart by their path in it, read by the same rules as what brought the chart itself."""
    if not data.startswith(GZIP_MAGIC):
        raise BadBundle(f"{path[:200]!r} is no archive of a chart; expected tar.gz")
    files = unpack([Archive(path, data)], meter=meter).files
    roots = {name.partition("/")[0] for name in files}
    if len(roots) > 1 or roots & files.keys():
        raise BadBundle(f"{path[:200]!r} holds {min(files)[:200]!r}, expected all its files in one folder")
    return {name.partition("/")[2]: content for name, content in files.items()}
