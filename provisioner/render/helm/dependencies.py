"""What a chart depends on and does not bring in charts/: in which versions, as its lock file says, and from where.

Nothing is fetched here. A chart is refused whose lock file is not that of its dependencies, as Helm refuses it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.errors import BadBundle, BadConfig, BundleTooLarge, InvalidRange
from provisioner.json_values import mapping
from provisioner.render.helm.chart import CHART
from provisioner.render.helm.packed_charts import checked_files
from provisioner.render.limits import YamlLimits, YamlMeter
from provisioner.render.yaml import load_documents
from provisioner.sentences import some
from provisioner.values import ObjectRef
from provisioner.versions import NUMBER, version_of

DEPENDENCY_AUTH = "dependencyAuth"
MAX_DEPENDENCIES = 64
MAX_VERSION, MAX_REPOSITORY = 128, 1024
FILE, REGISTRY, WEB = "file://", "oci://", ("https://", "http://")
REQUIREMENTS = "requirements.yaml"
UPDATE = "run `helm dependency update` in the folder of the chart, and commit what it writes"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}", re.ASCII)
_EXACT = re.compile(rf"v?{NUMBER}\.{NUMBER}\.{NUMBER}(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?", re.ASCII)
_SUBCHART = re.compile(r"charts/[^/]+/Chart\.yaml")


@dataclass(frozen=True, slots=True, order=True)
class Dependency:
    """A chart that another one needs, in exactly this version. `repository` is its address without a / at the end."""

    name: str
    version: str
    repository: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def path(self) -> str:
        """Where it lies in the chart that needs it, as `helm dependency build` would put it there."""
        return f"charts/{self.name}-{self.version}.tgz"


@dataclass(frozen=True, slots=True)
class DependencyAuth:
    """The Secret for dependencies at `host` (`host` or `host:port`), and for no other place."""

    host: str
    secret: ObjectRef


def wanted_dependency_auth(config: Mapping[str, Any], install_namespace: str) -> tuple[DependencyAuth, ...]:
    """What `config.dependencyAuth` names. Raises BadConfig."""
    listed = config.get(DEPENDENCY_AUTH) or []
    found = []
    for entry in listed if isinstance(listed, list) else [None]:
        secret = mapping(mapping(entry).get("secret"))
        host, name = mapping(entry).get("host"), secret.get("name")
        namespace = secret.get("namespace") or install_namespace
        is_known = mapping(entry).keys() <= {"host", "secret"} and secret.keys() <= {"name", "namespace"}
        is_text = isinstance(host, str) and isinstance(name, str) and isinstance(namespace, str)
        if not (is_known and is_text and host and name) or "/" in str(host):
            raise BadConfig(
                f"config.{DEPENDENCY_AUTH}: expected a list of {{host: registry.example.com, secret: {{name: …}}}}"
            )
        found.append(DependencyAuth(str(host), ObjectRef("", "v1", "Secret", str(namespace), str(name))))
    if len(found) > MAX_DEPENDENCIES:
        raise BadConfig(f"config.{DEPENDENCY_AUTH}: has {len(found)} entries; expected at most {MAX_DEPENDENCIES}")
    return tuple(found)


def missing_dependencies(files: Mapping[str, bytes]) -> tuple[Dependency, ...]:
    """What the chart of these files needs and lacks in its charts/, also what values switch off, as Helm takes it.

    Raises BadBundle where that cannot be told exactly, with what to do; InvalidManifest and BundleTooLarge.
    """
    meter = YamlMeter(YamlLimits(), takes_repeated=True)
    asked, is_first_form = _stated(files, meter)
    present = _present(files, meter) if asked else frozenset()
    missing = [number for number, entry in enumerate(asked) if _text(entry.get("name")) not in present]
    if not missing:
        return ()
    if len(asked) > MAX_DEPENDENCIES:
        raise BundleTooLarge(f"the chart has {len(asked)} dependencies; at most {MAX_DEPENDENCIES} are fetched")
    for number in missing:
        _check_repository(asked[number])
    names = ("requirements.lock", "Chart.lock") if is_first_form else ("Chart.lock",)
    name = next((name for name in names if name in files), "")
    if name:
        exact = _locked(asked, _read(files[name], name, meter), name, is_first_form=is_first_form)
    else:
        exact = asked
        ranges = [asked[number] for number in missing if not _EXACT.fullmatch(_text(asked[number].get("version")))]
        if ranges:
            words = some(
                [f"{_text(entry.get('name'))[:80]!a} in {_text(entry.get('version'))[:80]!a}" for entry in ranges]
            )
            raise BadBundle(
                f"the chart has no {names[0]}, and asks for {words}, which more than one version may fit: {UPDATE}"
            )
    found = dict.fromkeys(_dependency(exact[number]) for number in missing)
    if len({dependency.path for dependency in found}) < len(found):
        raise BadBundle("the chart needs two charts of the same name and version from two repositories; expected one")
    return tuple(found)


def check_packed(dependency: Dependency, data: bytes) -> None:
    """Raise BadBundle where an archive is not this chart, or needs charts that it does not bring: Helm fetches those of
    the chart itself only."""
    meter = YamlMeter(YamlLimits(), takes_repeated=True)
    folder = dependency.path.removesuffix(".tgz") + "/"
    inside = checked_files({dependency.path: data})
    files = {path.removeprefix(folder): content for path, content in inside.items()}
    if CHART not in files:
        raise BadBundle(f"its archive holds no {CHART} in its one folder")
    metadata = _read(files[CHART], CHART, meter)
    name, version = _text(metadata.get("name")), _text(metadata.get("version"))
    try:
        is_same = name == dependency.name and version_of(version) == version_of(dependency.version)
    except InvalidRange:
        is_same = False
    if not is_same:
        raise BadBundle(f"its archive holds {name[:80]!a} {version[:80]!a}; expected {dependency}")
    asked, _ = _stated(files, meter)
    if lacking := sorted({_text(entry.get("name")) for entry in asked} - _present(files, meter)):
        raise BadBundle(
            f"it needs {some([f'{each[:80]!a}' for each in lacking])}, which its archive lacks in charts/. Only what"
            " the chart itself needs is fetched, as Helm does; expected an archive as `helm package` makes it"
        )


def _stated(files: Mapping[str, bytes], meter: YamlMeter) -> tuple[list[Mapping[str, Any]], bool]:
    """The dependencies as they are written, and whether the chart has apiVersion v1. What is no list Helm refuses."""
    metadata = _read(files.get(CHART, b""), CHART, meter)
    is_first_form = metadata.get("apiVersion") == "v1"
    if is_first_form and REQUIREMENTS in files:
        metadata = _read(files[REQUIREMENTS], REQUIREMENTS, meter)
    listed = metadata.get("dependencies")
    is_sound = isinstance(listed, list) and all(isinstance(entry, Mapping) for entry in listed)
    return [mapping(entry) for entry in listed or []] if is_sound else [], is_first_form


def _present(files: Mapping[str, bytes], meter: YamlMeter) -> frozenset[str]:
    """The names of the charts that lie in charts/, packed or not."""
    brought = {path: data for path, data in files.items() if path.startswith("charts/")}
    try:
        found = checked_files(brought)
    except BadBundle as exc:
        raise (BundleTooLarge if isinstance(exc, BundleTooLarge) else BadBundle)(f"the chart: {exc}") from exc
    charts = (_read(data, path, meter) for path, data in found.items() if _SUBCHART.fullmatch(path))
    return frozenset(_text(chart.get("name")) for chart in charts)


def _check_repository(entry: Mapping[str, Any]) -> None:
    name, repository = _text(entry.get("name")), _text(entry.get("repository"))
    what = f"the chart's dependency {name[:80]!a}"
    if not repository:
        raise BadBundle(f"{what} is not in charts/, and has no repository to fetch it from; put it there")
    if repository.startswith(("@", "alias:")):
        raise BadBundle(
            f"{what} is of the repository {repository[:80]!a}, a name that only one machine knows; write its address, "
            f"https:// or oci://, into {CHART}, and {UPDATE}"
        )
    if not repository.startswith((FILE, REGISTRY, *WEB)) or len(repository) > MAX_REPOSITORY:
        raise BadBundle(f"{what} has the repository {repository[:80]!a}; expected https://, oci:// or file://")
    if repository.startswith(WEB) and ("?" in repository or "#" in repository):
        raise BadBundle(f"{what} has the repository {repository[:80]!a}; expected an address without ? and #")


def _locked(
    asked: list[Mapping[str, Any]], lock: Mapping[str, Any], name: str, *, is_first_form: bool
) -> list[Mapping[str, Any]]:
    """The dependencies in the versions of the lock file. Raises BadBundle where it is of other dependencies."""
    listed = lock.get("dependencies")
    exact = [mapping(entry) for entry in listed] if isinstance(listed, list) else []
    given = lock.get("digest")
    is_same = given == _digest([[_go(entry) for entry in part] for part in (asked, exact)])
    if is_first_form and not is_same:  # as Helm 2 made it
        is_same = given == _digest({"dependencies": [_go(entry) for entry in asked]})
    if not is_same or [_text(one.get("name")) for one in exact] != [_text(one.get("name")) for one in asked]:
        raise BadBundle(f"the chart's {name} is not of the dependencies that the chart has now: {UPDATE}")
    return exact


def _dependency(entry: Mapping[str, Any]) -> Dependency:
    _check_repository(entry)
    found = Dependency(*(_text(entry.get(key)) for key in ("name", "version", "repository")))
    if not _NAME.fullmatch(found.name):
        raise BadBundle(f"the chart has a dependency {found.name[:80]!a}; expected the name of a chart")
    if not _EXACT.fullmatch(found.version) or len(found.version) > MAX_VERSION:
        words = f"has the version {found.version[:80]!a}; expected one such as 1.2.3"
        raise BadBundle(f"the chart's dependency {found.name!a} {words}: {UPDATE}")
    return Dependency(found.name, found.version, found.repository.rstrip("/"))


def _go(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A dependency in the order and with the omissions of Helm's own type, since the digest is over that."""
    found: dict[str, Any] = {"name": _text(entry.get("name"))}
    for key in ("version", "repository", "condition", "tags", "enabled", "import-values", "alias"):
        value = entry.get(key)
        if key in ("version", "repository", "condition", "alias"):
            value = _text(value)
        if value or key == "repository":
            found[key] = _sorted(value)
    return found


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(item) for item in value] if isinstance(value, list) else value


def _digest(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    for sign in "<>&\u2028\u2029":  # which Go escapes
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, default=str)


def _read(data: bytes, name: str, meter: YamlMeter) -> Mapping[str, Any]:
    documents = [document.value for document in load_documents(data, name=name, meter=meter)]
    return mapping(documents[0] if len(documents) == 1 else None)
