"""Where the code comes from: images without digest, other registries and repositories, moved tags, steps back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from provisioner.json_values import maps, value_at
from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, FieldPath, ReviewRule, StateFacts
from provisioner.review.workloads.pod_specs import CONTAINER_LISTS, Container, PodSpec, pod_specs
from provisioner.values import Finding, JsonObject, ObjectIdentity, ObjectRef, Section, Severity

_NO_DIGEST = ReviewRule("IMG-01", Section.IMAGES, Severity.NOTABLE)
_LATEST = ReviewRule("IMG-02", Section.IMAGES, Severity.DANGEROUS)
_OTHER_REGISTRY = ReviewRule("IMG-03", Section.IMAGES, Severity.DANGEROUS)
_OTHER_REPOSITORY = ReviewRule("IMG-04", Section.IMAGES, Severity.DANGEROUS)
_OTHER_DIGEST = ReviewRule("IMG-05", Section.IMAGES, Severity.DANGEROUS)
_BACK = ReviewRule("IMG-06", Section.IMAGES, Severity.NOTABLE)
_NOT_ALLOWED = ReviewRule("IMG-07", Section.IMAGES, Severity.DANGEROUS)
_HIDDEN = ReviewRule("IMG-08", Section.IMAGES, Severity.NOTABLE)
_RETIRED = ReviewRule("IMG-12", Section.IMAGES, Severity.BREAKING)
_UNREADABLE = ReviewRule("IMG-00", Section.IMAGES, Severity.UNKNOWN)

_RETIRED_REGISTRIES = frozenset({"k8s.gcr.io", "gcr.io/google-containers"})
_DEFAULT_REGISTRY = "docker.io"
_DOCKER_HUB = frozenset({_DEFAULT_REGISTRY, "index.docker.io", "registry-1.docker.io"})
_DIGEST = re.compile(r"[a-z0-9]+:[0-9a-f]{32,}")
_REPOSITORY = re.compile(r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_NUMBERS = re.compile(
    r"v?(\d{1,18})\.(\d{1,18})(?:\.(\d{1,18}))?(?![\d.])(?:[-._]?(alpha|beta|rc|pre|preview|dev|m)[-._]?(\d{0,18}))?"
)
_FIRST_YEAR = 1900
# An image in an argument or a variable: it has a host with a dot or port, a path, and a tag or digest.
_IMAGE_IN_TEXT = re.compile(
    r"(?<![\w./-])(?:[a-z0-9-]+(?:\.[a-z0-9-]+)+(?::\d+)?|localhost:\d+)/[a-z0-9._/-]+(?::\w[\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?"
)
_IMAGE_KEY = re.compile(r"(^RELATED_IMAGE|(^|[_-])IMAGE([_-]|$)|image$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image reference, the registry that is left out stated."""

    registry: str
    repository: str
    tag: str
    digest: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.repository}"


class _Place(NamedTuple):
    """What an image is of: in its object a `part`, container or volume, of this name."""

    identity: ObjectIdentity
    part: str
    name: str


def parse_image(reference: object) -> Image | None:
    """Return the parts as a container runtime takes them, None for what is no reference."""
    if not isinstance(reference, str):
        return None
    name, _, digest = reference.partition("@")
    if digest and not _DIGEST.fullmatch(digest):
        return None
    head, slash, rest = name.partition("/")
    is_host = bool(slash) and ("." in head or ":" in head or head == "localhost")
    registry, path = (head, rest) if is_host else (_DEFAULT_REGISTRY, name)
    registry = _DEFAULT_REGISTRY if registry in _DOCKER_HUB else registry
    path, colon, tag = path.partition(":")
    if registry == _DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    if not _REPOSITORY.fullmatch(path) or (colon and not _TAG.fullmatch(tag)):
        return None
    return Image(registry, path, tag, digest)


def judge_images(state: StateFacts) -> Iterator[Finding]:
    allowed = state.around.allowed_images
    for pod in pod_specs(state.objects):
        for container in pod.containers():
            path, reference = (*container.path, "image"), container.body.get("image")
            yield from _judge_image(container.ref, path, reference)
            yield from _judge_told_images(container)
            yield from _judge_origin(container.ref, path, reference, allowed)
            for told_path, name, told, is_whole in _find_told_images(container):
                if _is_image_name(name) and ("@" in told or is_whole):
                    yield from _judge_origin(container.ref, told_path, told, allowed)
        for _, path, reference in _find_volumes(pod):
            yield from _judge_image(pod.ref, path, reference)
            yield from _judge_origin(pod.ref, path, reference, allowed)


def _find_volumes(pod: PodSpec) -> Iterator[tuple[str, FieldPath, object]]:
    """Yield images that a pod mounts without running them: the name of the volume, the path and the reference."""
    for index, volume in enumerate(maps(pod.body.get("volumes"))):
        reference = value_at(volume, "image", "reference")
        if reference is not None:
            yield str(volume.get("name")), (*pod.path, "volumes", index, "image", "reference"), reference


def _judge_image(ref: ObjectRef, path: FieldPath, reference: object) -> Iterator[Finding]:
    """Findings are known again by the image, not by the place of the container in its list."""
    if reference is None:
        return
    image = parse_image(reference)
    params = {"image": str(reference)} | ({"repository": str(image)} if image else {})
    key = str(image or reference)  # another tag of the same image has the same weakness
    if image is None:
        yield _UNREADABLE.finding("no-reference", ref, where=path, key=key, **params)
        return
    if any(f"{image}/".startswith(f"{retired}/") for retired in _RETIRED_REGISTRIES):
        yield _RETIRED.finding("retired", ref, where=path, key=key, **params)
    if not image.digest:
        rule, variant = (_LATEST, "latest") if image.tag in {"", "latest"} else (_NO_DIGEST, "by-tag-only")
        yield rule.finding(variant, ref, where=path, key=key, **params)


def _judge_origin(ref: ObjectRef, path: FieldPath, reference: object, allowed: tuple[str, ...]) -> Iterator[Finding]:
    """Find an image from a place that is on no list, where there is a list."""
    image = parse_image(reference)
    if image is None or not allowed or any(f"{image}/".startswith(f"{place.rstrip('/')}/") for place in allowed):
        return
    params = {"image": reference, "repository": str(image), "allowed": allowed}
    yield _NOT_ALLOWED.finding("not-allowed", ref, where=path, key=str(image), **params)


def _judge_told_images(container: Container) -> Iterator[Finding]:
    """Find images that a program is told to run, by variable or argument."""
    for path, name, told, is_whole in _find_told_images(container):
        image = parse_image(told)
        is_meant = image is not None and _is_image_name(name) and (bool(image.tag) or is_whole)
        if image is not None and not image.digest and is_meant:
            yield _HIDDEN.finding("told-to-run", container.ref, where=path, key=told, image=told, setting=name)


def _is_image_name(name: str) -> bool:
    return bool(_IMAGE_KEY.search(name.split("=", 1)[0].lstrip("-")))


def _find_told_images(container: Container) -> Iterator[tuple[FieldPath, str, str, bool]]:
    """Yield (path, name of the setting, image, whether it is the whole value) of images in variables and arguments."""
    settings: list[tuple[FieldPath, str, str]] = []
    for index, entry in enumerate(maps(container.body.get("env"))):
        if isinstance(entry.get("value"), str):
            settings.append(((*container.path, "env", index), str(entry.get("name")), entry["value"]))
    for key in ("command", "args"):
        words = container.body.get(key)
        for index, word in enumerate(words if isinstance(words, list) else []):
            if isinstance(word, str) and word.startswith("-") and "=" in word:
                name, _, value = word.partition("=")
                settings.append(((*container.path, key, index), name, value))
    for path, name, text in settings:
        for match in _IMAGE_IN_TEXT.finditer(text):
            yield path, name, match.group(), match.group() == text


def compare_images(facts: Facts) -> Iterator[Finding]:
    """Find another image than before, container by container; and registries that were not used before."""
    old = {place: image for place, (_, _, image) in _find_images(facts.previous_state().objects).items()}
    if not old:
        return
    registries = {image.registry for image in old.values()}
    for place, (ref, path, image) in _find_images(facts.state().objects).items():
        before = old.get(place)
        if found := _compare_image(before, image, registries):
            rule, variant, params = found
            sides = {"before": _write_image(before), "after": _write_image(image)}
            key = [f"{place.part} {place.name}", *sides.values()]
            yield rule.finding(variant, ref, where=path, key=key, part=place.part, name=place.name, **sides, **params)


def _compare_image(
    before: Image | None, now: Image, registries: set[str]
) -> tuple[ReviewRule, str, dict[str, Any]] | None:
    """Return the rule, the variant and the values that say how an image differs; None where it goes forward."""
    if before is None:
        is_known = now.registry in registries
        return None if is_known else (_OTHER_REGISTRY, "new-registry", {"registry": now.registry})
    if now.registry != before.registry:
        return _OTHER_REGISTRY, "other-registry", {"registry": now.registry, "old_registry": before.registry}
    if now.repository != before.repository:
        return _OTHER_REPOSITORY, "other-repository", {"repository": str(now), "old_repository": str(before)}
    if now.tag == before.tag and now.tag and now.digest != before.digest and now.digest and before.digest:
        return _OTHER_DIGEST, "other-bytes", {"tag": now.tag, "repository": str(now)}
    old, new = _read_version(before.tag), _read_version(now.tag)
    # From years as versions to other ones nothing can be said.
    is_comparable = old and new and (int(old[0]) >= _FIRST_YEAR) == (int(new[0]) >= _FIRST_YEAR)
    return (_BACK, "goes-back", {"tag": now.tag, "old_tag": before.tag}) if is_comparable and new < old else None


def _read_version(tag: str) -> tuple[int | str, ...]:
    """Return the numbers of a tag and its place among releases, made to be compared; () for one without a version."""
    match = _NUMBERS.match(tag)
    if match is None:
        return ()
    numbers = tuple(int(part or 0) for part in match.groups()[:3])
    stage, count = match[4], int(match[5] or 0)
    return (*numbers, 0, stage, count) if stage else (*numbers, 1)


def _write_image(image: Image | None) -> str:
    if image is None:
        return ""
    tag = f":{image.tag}" if image.tag else ""
    return f"{image}{tag}{f'@{image.digest}' if image.digest else ''}"


def _find_images(objects: tuple[JsonObject, ...]) -> dict[_Place, tuple[ObjectRef, FieldPath, Image]]:
    found = {}
    for pod in pod_specs(objects):
        named: list[tuple[str, str, FieldPath, object]] = [
            ("container", container.name, (*container.path, "image"), container.body.get("image"))
            for container in pod.containers()
        ]
        named += [("volume", *volume) for volume in _find_volumes(pod)]
        for part, name, path, reference in named:
            if image := parse_image(reference):
                found[_Place(pod.ref.identity, part, name)] = (pod.ref, path, image)
    return found


_IMAGE_PATHS = (*(f"{{pod}}.{name}.*.image" for name in CONTAINER_LISTS), "{pod}.volumes.*.image.reference")
_FORWARD = "A tag or digest that goes forward is what an upgrade is; what will run stands above all findings"
_CLAIMS = (Claim("IMG-03", PODS, _IMAGE_PATHS, harmless=_FORWARD),)

CHECK = Check("images", claims=_CLAIMS, changes=compare_images, standing=judge_images)
