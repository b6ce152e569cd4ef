"""Where the code comes from: images without digest, other registries and repositories, moved tags, steps back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from provisioner.review.base.claims import PODS, Claim
from provisioner.review.base.facts import Check, Facts, ReviewRule, StateFacts, mapping, maps
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


def parse(reference: str) -> Image | None:
    """The parts as a container runtime takes them, None for what is no reference."""
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


def _standing(state: StateFacts) -> Iterator[Finding]:
    for pod in pod_specs(state.objects):
        for container in pod.containers():
            named = (container.ref, (*container.path, "image"), container.body.get("image"))
            yield from _of_image(*named)
            yield from _of_settings(container)
            told = ((container.ref, path, text) for path, text in _told(container))
            for place in (named, *told):
                yield from _of_origin(*place, state.around.allowed_images)
        for _, path, reference in _of_volumes(pod):
            yield from _of_image(pod.ref, path, reference)
            yield from _of_origin(pod.ref, path, reference, state.around.allowed_images)


def _of_volumes(pod: PodSpec) -> Iterator[tuple[str, tuple[str | int, ...], object]]:
    """Images that a pod mounts without running them: the name of the volume, the path and the reference."""
    for index, volume in enumerate(maps(pod.body.get("volumes"))):
        reference = mapping(volume.get("image")).get("reference")
        if reference is not None:
            yield str(volume.get("name")), (*pod.path, "volumes", index, "image", "reference"), reference


def _of_image(ref: ObjectRef, path: tuple[str | int, ...], reference: object) -> Iterator[Finding]:
    """Findings are known again by the image, not by the place of the container in its list."""
    if reference is None:
        return
    image = parse(reference) if isinstance(reference, str) else None
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


def _of_origin(
    ref: ObjectRef, path: tuple[str | int, ...], reference: object, allowed: tuple[str, ...]
) -> Iterator[Finding]:
    """An image from a place that is on no list, where there is a list."""
    image = parse(reference) if isinstance(reference, str) else None
    if image is None or not allowed or any(f"{image}/".startswith(f"{one.rstrip('/')}/") for one in allowed):
        return
    params = {"image": reference, "repository": str(image), "allowed": allowed}
    yield _NOT_ALLOWED.finding("not-allowed", ref, where=path, key=str(image), **params)


def _told(container: Container) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The path and the reference of each image that a program is told to run."""
    for path, name, text in _settings(container):
        for match in _IMAGE_IN_TEXT.finditer(text):
            if _IMAGE_KEY.search(name.split("=", 1)[0].lstrip("-")) and ("@" in match.group() or match.group() == text):
                yield path, match.group()


def _of_settings(container: Container) -> Iterator[Finding]:
    """Images that a program is told to run, by variable or argument."""
    for path, name, text in _settings(container):
        for match in _IMAGE_IN_TEXT.finditer(text):
            is_named_so = bool(_IMAGE_KEY.search(name.split("=", 1)[0].lstrip("-")))
            image = parse(match.group())
            if image is None or image.digest or not (is_named_so and (image.tag or match.group() == text)):
                continue
            of, told = container.ref, match.group()
            yield _HIDDEN.finding("told-to-run", of, where=path, key=told, image=told, setting=name)


def _settings(container: Container) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """(path, name, text) of each variable and argument with a literal value."""
    for index, entry in enumerate(maps(container.body.get("env"))):
        if isinstance(entry.get("value"), str):
            yield (*container.path, "env", index), str(entry.get("name")), entry["value"]
    for key in ("command", "args"):
        words = container.body.get(key)
        for index, word in enumerate(words if isinstance(words, list) else []):
            if isinstance(word, str) and word.startswith("-") and "=" in word:
                name, _, value = word.partition("=")
                yield (*container.path, key, index), name, value


def _changes(facts: Facts) -> Iterator[Finding]:
    """What is another image than before, container by container; and registries that were not used before."""
    old = _images(facts.previous_state().objects)
    if not old:
        return
    known = {image.registry for image in old.values()}
    for place, (ref, path, image) in _places(facts.state().objects).items():
        before = old.get(place)
        if found := _difference(before, image, known):
            rule, variant, params = found
            of = {"part": place.part, "name": place.name, "before": _text(before), "after": _text(image)}
            key = [f"{place.part} {place.name}", _text(before), _text(image)]
            yield rule.finding(variant, ref, where=path, key=key, **of, **params)


def _difference(before: Image | None, now: Image, known: set[str]) -> tuple[ReviewRule, str, dict[str, str]] | None:
    if before is None:
        return (_OTHER_REGISTRY, "new-registry", {"registry": now.registry}) if now.registry not in known else None
    if now.registry != before.registry:
        return _OTHER_REGISTRY, "other-registry", {"registry": now.registry, "old_registry": before.registry}
    if now.repository != before.repository:
        return _OTHER_REPOSITORY, "other-repository", {"repository": str(now), "old_repository": str(before)}
    if now.tag == before.tag and now.tag and now.digest != before.digest and now.digest and before.digest:
        return _OTHER_DIGEST, "other-bytes", {"tag": now.tag, "repository": str(now)}
    if _is_step_back(_version(before.tag), _version(now.tag)):
        return _BACK, "goes-back", {"tag": now.tag, "old_tag": before.tag}
    return None


def _version(tag: str) -> tuple[int | str, ...]:
    """The numbers of a tag and its place among releases, made to be compared; () for one that has no version."""
    match = _NUMBERS.match(tag)
    if match is None:
        return ()
    numbers = tuple(int(part or 0) for part in match.groups()[:3])
    stage, count = match[4], int(match[5] or 0)
    return (*numbers, 0, stage, count) if stage else (*numbers, 1)


def _is_step_back(before: tuple[int | str, ...], now: tuple[int | str, ...]) -> bool:
    """Whether the version is lower; from years as versions to other ones nothing can be said."""
    if not before or not now:
        return False
    is_year = [int(one[0]) >= _FIRST_YEAR for one in (before, now)]
    return is_year[0] == is_year[1] and now < before


def _text(image: Image | None) -> str:
    if image is None:
        return ""
    tag = f":{image.tag}" if image.tag else ""
    return f"{image}{tag}{f'@{image.digest}' if image.digest else ''}"


class _Place(NamedTuple):
    """What an image is of: in its object a `part`, container or volume, of this name."""

    identity: ObjectIdentity
    part: str
    name: str


def _places(objects: tuple[JsonObject, ...]) -> dict[_Place, tuple[ObjectRef, tuple[str | int, ...], Image]]:
    found = {}
    for pod in pod_specs(objects):
        of = [("container", one.name, (*one.path, "image"), one.body.get("image")) for one in pod.containers()]
        of += [("volume", *volume) for volume in _of_volumes(pod)]
        for part, name, path, reference in of:
            image = parse(reference) if isinstance(reference, str) else None
            if image is not None:
                found[_Place(pod.ref.identity, part, name)] = (pod.ref, path, image)
    return found


def _images(objects: tuple[JsonObject, ...]) -> Mapping[_Place, Image]:
    return {key: image for key, (_, _, image) in _places(objects).items()}


_PATHS = (*(f"{{pod}}.{name}.*.image" for name in CONTAINER_LISTS), "{pod}.volumes.*.image.reference")
_FORWARD = "A tag or digest that goes forward is what an upgrade is; what will run stands above all findings"
_CLAIMS = (Claim("IMG-03", PODS, _PATHS, harmless=_FORWARD),)

CHECK = Check("images", claims=_CLAIMS, changes=_changes, standing=_standing)
