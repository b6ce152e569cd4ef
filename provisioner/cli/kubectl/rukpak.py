"""RukPak's objects, and those of the proposal that ours come from, as BundleDeployments of ours. PURE.

Sources of the shapes: RukPak's api/v1alpha1 and api/v1alpha2, its issue 703 and its pull request 743. Whatever is not
carried over is said, and so is what a person has to complete: nothing is guessed that would install other content.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from provisioner.api_groups import OWN_GROUP
from provisioner.cli.arguments import Usage
from provisioner.errors import PratiqueError
from provisioner.escaping import visible
from provisioner.render import load_all

OURS, THEIRS = f"{OWN_GROUP}/v1alpha2", f"{OWN_GROUP}/v1alpha1"
MAX_NAME = 52
KINDS = ("image", "git", "http", "configMap")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_HEX = re.compile(r"[0-9a-f]{7,39}")
_DIGEST = re.compile(r"@(?P<digest>\S*)$")
_WHOLE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_FORMATS = {
    "plain": "plain",
    "plain+v0": "plain",
    "helm": "helm",
    "helm+v3": "helm",
    "registry": "registry-v1",
    "registry+v1": "registry-v1",
    "registry-v1": "registry-v1",
}
# What they looked like, nobody knows any more: the tag 1.10 is 1.1 by then, and a Secret named n is false.
_IN_QUOTES = "; write numbers, and words such as n and yes, in quotes"
_NOT_KEPT = ("kubectl.kubernetes.io/last-applied-configuration",)
# RukPak's own fields that have no counterpart, with what is so instead.
_WITHOUT = {
    "insecureSkipTLSVerify": "certificates are always verified",
    "insecureSkipVerify": "certificates and host keys are always verified",
    "certificateData": "Pratique reads the authority from ca.crt in the Secret of auth.secret",
}
# Fields of our spec that somebody may have written already; they stay as they are.
_KEPT = (
    "adoptHelmRelease",
    "collisionProtection",
    "optionalKinds",
    "drift",
    "constraints",
    "onFailure",
    "deletionPolicy",
    "healthChecks",
    "progressDeadlineMinutes",
    "revisionHistoryLimit",
)
Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Where:
    """What RukPak did not ask for; "" where nothing is given."""

    install_namespace: str = ""
    service_account: str = ""


@dataclass(slots=True)
class Converted:
    """`left_out` was not carried over, `to_complete` has to be filled in before an API server takes the object."""

    body: dict[str, Any] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    to_complete: list[str] = field(default_factory=list)


def converted(document: object, where: Where) -> Converted:
    """One document of a file as our BundleDeployment. Raises Usage, naming the place, for what is not known."""
    if not isinstance(document, Mapping):
        raise Usage("expected an object with apiVersion and kind")
    api, kind = str(document.get("apiVersion") or ""), str(document.get("kind") or "")
    if api not in (OURS, THEIRS):
        raise Usage(f"{kind or 'an object'} of {api or 'no apiVersion'}: expected {THEIRS} or {OURS}")
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        raise Usage(f"{kind}: expected spec, an object")
    made = Converted()
    wanted = {
        (THEIRS, "BundleDeployment"): _deployment,
        (THEIRS, "Bundle"): _bundle,
        (OURS, "BundleDeployment"): _later,
    }.get((api, kind))
    if wanted is None:
        raise Usage(f"kind {kind or '(none)'} of {api}: expected a BundleDeployment, or a Bundle of {THEIRS}")
    body = wanted(spec, made)
    for place, given, option in (
        ("installNamespace", where.install_namespace, "--install-namespace"),
        ("serviceAccountName", where.service_account, "--service-account"),
    ):
        if not (given or body.get(place)):
            raise Usage(f"spec.{place} is missing, which RukPak did not ask for: give it with {option}")
        body[place] = given or body[place]
    meta = _mapping(document, "metadata", "")
    name = _read_text(meta, "name", "metadata")
    if len(name) > MAX_NAME:
        raise Usage(f"metadata.name: {name} has {len(name)} characters; Pratique takes {MAX_NAME} at most")
    kept: dict[str, Any] = {"name": name}
    for part in ("labels", "annotations"):
        found = {key: text for key, text in _texts(meta, part).items() if key not in _NOT_KEPT}
        kept |= {part: found} if found else {}
    for part in ("finalizers", "ownerReferences"):
        if meta.get(part):
            made.left_out.append(f"metadata.{part}: they belong to the object as it was")
    made.body = {"apiVersion": OURS, "kind": "BundleDeployment", "metadata": kept, "spec": body}
    return made


# The three shapes


def _deployment(spec: Record, made: Converted) -> dict[str, Any]:
    """RukPak's v1alpha1: a template of the Bundle that it makes."""
    template = _mapping(spec, "template", "spec")
    inner = _mapping(template, "spec", "spec.template")
    if template.get("metadata"):
        made.left_out.append("spec.template.metadata: there is no Bundle object that could carry it")
    body = _content(inner, "spec.template.spec", made)
    body |= _config(spec.get("config"), body["format"], made)
    _say_rest(inner, "spec.template.spec", ("provisionerClassName", "source"), made)
    _say_rest(spec, "spec", ("provisionerClassName", "template", "config"), made)
    return body


def _bundle(spec: Record, made: Converted) -> dict[str, Any]:
    """RukPak only unpacks a Bundle that nothing points at."""
    body = {"paused": True, **_content(spec, "spec", made)}
    made.left_out.append("a Bundle alone installs nothing, so the BundleDeployment is paused: set spec.paused to false")
    _say_rest(spec, "spec", ("provisionerClassName", "source"), made)
    return body


def _later(spec: Record, made: Converted) -> dict[str, Any]:
    """v1alpha2: RukPak's own with one source, the proposal's with several, or ours already."""
    known = ["provisionerClassName", "format", "config", "paused", "installNamespace", "defaultNamespace"]
    known += ["defaultnamespace", "serviceAccountName", "serviceAccount", "source", "sources", *_KEPT]
    if "sources" in spec:
        sources = [_proposed(source, f"spec.sources[{at}]", made) for at, source in enumerate(_list(spec, "sources"))]
        chosen = _format(_optional(spec, "format", "spec") or "plain", "spec.format")
        body: dict[str, Any] = {"format": chosen, "sources": sources}
    else:
        body = _content(spec, "spec", made)
    body |= {name: spec[name] for name in _KEPT if name in spec}
    body |= _config(spec.get("config"), body["format"], made)
    if spec.get("paused") is not None:
        if not isinstance(spec["paused"], bool):
            raise Usage(f"spec.paused: {spec['paused']!r}; expected true or false")
        body["paused"] = spec["paused"]
    namespace = _first(spec, ("installNamespace", "defaultNamespace", "defaultnamespace"), "spec")
    named = spec.get("serviceAccount")
    account = _optional(spec, "serviceAccountName", "spec") or (
        _optional(named, "name", "spec.serviceAccount")
        if isinstance(named, Mapping)
        else _optional(spec, "serviceAccount", "spec")
    )
    body |= {name: text for name, text in (("installNamespace", namespace), ("serviceAccountName", account)) if text}
    _say_rest(spec, "spec", known, made)
    return body


def _content(spec: Record, at: str, made: Converted) -> dict[str, Any]:
    """Format and sources of what has one source with a type."""
    chosen = _format(_class(spec, at), f"{at}.provisionerClassName")
    source = _mapping(spec, "source", at)
    kind = _optional(source, "type", f"{at}.source")
    if kind == "configMaps":
        return {"format": chosen, "sources": _config_maps(source, f"{at}.source", made)}
    if kind not in ("image", "git", "http"):
        words = {
            "upload": "its content was uploaded, and is not in the object: push it to a registry or a git repository",
            "local": "its content is a ConfigMap: name it as a source of kind configMap",
        }
        raise Usage(f"{at}.source.type: {kind!r}; {words.get(kind, 'expected image, git, http or configMaps')}")
    body = _mapping(source, kind, f"{at}.source")
    _say_rest(source, f"{at}.source", ("type", kind), made)
    return {"format": chosen, "sources": [{"kind": kind, kind: _BODIES[kind](body, f"{at}.source.{kind}", made)}]}


def _proposed(source: object, at: str, made: Converted) -> dict[str, Any]:
    """One of `sources`: with kind or without, the destination beside or inside it."""
    if not isinstance(source, Mapping):
        raise Usage(f"{at}: expected an object")
    given = [kind for kind in KINDS if source.get(kind) is not None]
    kind = _optional(source, "kind", at) or (given[0] if len(given) == 1 else "")
    if kind not in KINDS or given != [kind]:
        raise Usage(f"{at}: expected exactly one of {', '.join(KINDS)}, the one that kind names")
    body = _mapping(source, kind, at)
    destination = _optional(source, "destination", at) or _optional(body, "destination", f"{at}.{kind}")
    inner = {name: value for name, value in body.items() if name != "destination"}
    shown = {"kind": kind, kind: _PROPOSED[kind](inner, f"{at}.{kind}", made)}
    _say_rest(source, at, ("kind", kind, "destination"), made)
    return {**shown, "destination": destination} if destination else shown


# Sources


def _image(body: Record, at: str, made: Converted) -> dict[str, Any]:
    ref = _read_text(body, "ref", at)
    digest = _DIGEST.search(ref)
    if digest and not _WHOLE_DIGEST.fullmatch(digest["digest"]):
        made.to_complete.append(f"{at}.ref: {ref} has no whole digest (sha256: and 64 characters)")
    if "." not in ref.partition("/")[0] and ":" not in ref.partition("/")[0]:
        made.to_complete.append(f"{at}.ref: {ref} names no registry; write it whole, such as docker.io/{ref}")
    secret = _first(body, ("pullSecret", "imagePullSecretName"), at)
    _say_rest(body, at, ("ref", "pullSecret", "imagePullSecretName", "auth"), made)
    return {"ref": ref, **_auth(body.get("auth") or ({"secret": {"name": secret}} if secret else None), at, made)}


def _git(body: Record, at: str, made: Converted) -> dict[str, Any]:
    """RukPak reads ./manifests where no directory is named."""
    return {**_proposed_git(body, at, made), "directory": _folder(_optional(body, "directory", at) or "manifests")}


def _proposed_git(body: Record, at: str, made: Converted) -> dict[str, Any]:
    _say_rest(body, at, ("repository", "directory", "ref", "auth"), made)
    made_body = {"repository": _read_text(body, "repository", at), "ref": _git_ref(body.get("ref"), f"{at}.ref", made)}
    folder = _folder(_optional(body, "directory", at))
    return {**made_body, **({"directory": folder} if folder else {}), **_auth(body.get("auth"), at, made)}


def _git_ref(ref: object, at: str, made: Converted) -> dict[str, str]:
    """A text means a commit if it looks like one, else a branch: which of both nobody says."""
    if isinstance(ref, Mapping):
        given = {name: _read_text(ref, name, at) for name in ("commit", "branch", "tag") if _is_given(ref, name)}
        if len(given) != 1 or len(ref) != len(given):
            raise Usage(f"{at}: expected exactly one of commit, branch and tag")
    elif isinstance(ref, str) and ref:
        is_commit = bool(_COMMIT.fullmatch(ref) or _HEX.fullmatch(ref))
        given = {"commit" if is_commit else "branch": ref}
        if not is_commit:
            made.left_out.append(f"{at}: {ref} is taken for a branch; if it is a tag, write ref: {{tag: {ref}}}")
    else:
        raise Usage(f"{at}: expected a commit, a branch or a tag")
    if "commit" in given and not _COMMIT.fullmatch(given["commit"]):
        made.to_complete.append(f"{at}: {given['commit']} is no whole commit; write all 40 characters (git rev-parse)")
    return given


def _http(body: Record, at: str, made: Converted) -> dict[str, Any]:
    _say_rest(body, at, ("url", "checksum", "auth"), made)
    checksum = _optional(body, "checksum", at)
    if checksum and not _WHOLE_DIGEST.fullmatch(checksum):
        made.to_complete.append(f"{at}.checksum: {checksum} is no whole one (sha256: and 64 characters)")
    kept = {"checksum": checksum} if checksum else {}
    return {"url": _read_text(body, "url", at), **kept, **_auth(body.get("auth"), at, made)}


def _config_map(body: Record, at: str, made: Converted) -> dict[str, Any]:
    _say_rest(body, at, ("name", "namespace"), made)
    namespace = _optional(body, "namespace", at)
    return {"name": _read_text(body, "name", at), **({"namespace": namespace} if namespace else {})}


def _config_maps(source: Record, at: str, made: Converted) -> list[dict[str, Any]]:
    found = []
    for number, entry in enumerate(_list(source, "configMaps", at)):
        here = f"{at}.configMaps[{number}]"
        if not isinstance(entry, Mapping):
            raise Usage(f"{here}: expected an object")
        name = _read_text(_mapping(entry, "configMap", here), "name", f"{here}.configMap")
        path = _folder(_optional(entry, "path", here))
        found.append({"kind": "configMap", "configMap": {"name": name}, **({"destination": path} if path else {})})
        made.left_out.append(f"{here}: RukPak read ConfigMap {name} in its own namespace; Pratique in installNamespace")
    if not found:
        raise Usage(f"{at}.configMaps: expected at least one")
    return found


_BODIES = {"image": _image, "git": _git, "http": _http}
_PROPOSED = {"image": _image, "git": _proposed_git, "http": _http, "configMap": _config_map}


def _auth(auth: object, at: str, made: Converted) -> dict[str, Any]:
    """The Secret: named in `secret`, or, as in the proposal's example, in `auth` itself."""
    if not auth:
        return {}
    if not isinstance(auth, Mapping):
        raise Usage(f"{at}.auth: expected an object")
    inner = auth.get("secret")
    secret = inner if isinstance(inner, Mapping) else auth
    if not _is_given(secret, "name"):
        if auth.get("insecureSkipVerify") is not None:
            _say_rest(auth, f"{at}.auth", ("secret",), made)
            return {}
        raise Usage(f"{at}.auth: expected secret.name")
    _say_rest(auth, f"{at}.auth", ("secret",) if secret is inner else ("name", "namespace"), made)
    where = f"{at}.auth.secret" if secret is inner else f"{at}.auth"
    kept = {name: _read_text(secret, name, where) for name in ("name", "namespace") if _is_given(secret, name)}
    if "namespace" not in kept:
        words = f"RukPak read Secret {kept['name']} in its own namespace; Pratique reads it in installNamespace"
        made.left_out.append(f"{at}.auth: {words}: copy it there")
    return {"auth": {"secret": kept}}


# Everything else


def _config(config: object, chosen: str, made: Converted) -> dict[str, Any]:
    """RukPak's values of a chart are a text of YAML, ours an object."""
    if not config:
        return {}
    if not isinstance(config, Mapping):
        raise Usage("spec.config: expected an object")
    values = config.get("values")
    if chosen != "helm" or not isinstance(values, str):
        return {"config": dict(config)}
    try:
        documents = load_all(values, name="spec.config.values")
    except PratiqueError as exc:
        raise Usage(str(exc)) from exc
    if len(documents) > 1 or not all(isinstance(document, Mapping) for document in documents):
        raise Usage("spec.config.values: expected one object in YAML")
    _say_rest(config, "spec.config", ("values",), made)
    return {"config": {"values": documents[0]}} if documents else {}


def _class(spec: Record, at: str) -> str:
    """`plain` of core-rukpak-io-plain, and of core.rukpak.io/plain as it was spelt before."""
    name = _read_text(spec, "provisionerClassName", at)
    for prefix in ("core-rukpak-io-", f"{OWN_GROUP}/"):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    raise Usage(f"{at}.provisionerClassName: {name!r} is not one of RukPak's, so nobody here knows its format")


def _format(name: str, at: str) -> str:
    if name not in _FORMATS:
        raise Usage(f"{at}: {name!r}; expected one of {', '.join(_FORMATS)}")
    return _FORMATS[name]


def _folder(path: str) -> str:
    """Without the dot and slashes around it."""
    folder = str(PurePosixPath(path.strip("/")))
    return "" if folder == "." else folder


def _mapping(parent: Record, name: str, at: str) -> Record:
    found = parent.get(name)
    if not isinstance(found, Mapping):
        raise Usage(f"{f'{at}.' if at else ''}{name}: expected an object")
    return found


def _list(parent: Record, name: str, at: str = "spec") -> list[Any]:
    found = parent.get(name)
    if not isinstance(found, list) or not found:
        raise Usage(f"{at}.{name}: expected a list with at least one item")
    return found


def _read_text(parent: Record, name: str, at: str) -> str:
    found = parent.get(name)
    if not isinstance(found, str) or not found:
        raise Usage(f"{at}.{name}: expected a text{_IN_QUOTES if _is_given(parent, name) else ''}")
    return found


def _is_given(parent: Record, name: str) -> bool:
    """Also where it is `n`, which YAML of Kubernetes reads as false."""
    return parent.get(name) is not None and parent[name] != ""


def _optional(parent: Record, name: str, at: str) -> str:
    return _read_text(parent, name, at) if _is_given(parent, name) else ""


def _first(parent: Record, names: Iterable[str], at: str) -> str:
    return next((_read_text(parent, name, at) for name in names if _is_given(parent, name)), "")


def _texts(meta: Record, part: str) -> dict[str, str]:
    """Labels or annotations; numbers would be others by the time they are written."""
    found = meta.get(part) or {}
    if not isinstance(found, Mapping) or not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise Usage(f"metadata.{part}: expected texts{_IN_QUOTES}")
    return dict(found)


def _say_rest(body: Record, at: str, known: Any, made: Converted) -> None:
    for name in body:
        if name not in known:
            why = _WITHOUT.get(name, "Pratique has no such field")
            made.left_out.append(f"{at}.{name}: {why}")


CONVERTED, TO_COMPLETE = 0, 1
CONVERT_HELP = "rewrite RukPak's BundleDeployments and Bundles as BundleDeployments of Pratique"
CONVERT_EPILOG = """\
FILE has one or more objects, as YAML or JSON. These kinds are converted:
  core.rukpak.io/v1alpha1 BundleDeployment and Bundle (RukPak up to 0.16)
  core.rukpak.io/v1alpha2 BundleDeployment (RukPak 0.17 and later)
  core.rukpak.io/v1alpha2 BundleDeployment, as proposed in RukPak issue 703
BundleDeployments of Pratique are not changed. No cluster is contacted, and
nothing is applied. Standard error lists what could not be converted.

exit status
  0  everything is converted
  1  converted, but you must complete it: standard error says where
  2  something in FILE is unknown, or an error; nothing is printed
"""


def add_convert(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="file to read; - for standard input")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml", help="default: %(default)s")
    parser.add_argument(
        "--install-namespace", metavar="NS", default="", help="install namespace, if the object names none"
    )
    parser.add_argument(
        "--service-account",
        metavar="NAME",
        default="",
        help="ServiceAccount in that namespace, if the object names none",
    )


def convert(options: argparse.Namespace) -> int:
    """Prints all objects of the file, or nothing."""
    name = "standard input" if options.file == "-" else options.file
    made = []
    text = sys.stdin.buffer.read() if options.file == "-" else Path(options.file).read_bytes()
    documents: list[Any] = []
    for document in load_all(text, name=name):
        # Lists, as kubectl prints them, are taken apart.
        is_list = isinstance(document, dict) and str(document.get("kind") or "").endswith("List")
        items = (document.get("items") or []) if is_list else [document]
        if not isinstance(items, list):
            raise Usage(f"{name}: items of the {document['kind']}: expected a list")
        documents += items
    for number, document in enumerate(documents, start=1):
        try:
            made.append(converted(document, Where(options.install_namespace, options.service_account)))
        except Usage as exc:
            raise Usage(f"{name}, object {number}: {exc}") from exc
    if not made:
        raise Usage(f"{name}: no object in it")
    for result in made:
        about = result.body["metadata"]["name"]
        for kind, notes in (("not carried over", result.left_out), ("to complete", result.to_complete)):
            for note in notes:
                print(visible(f"{about}: {kind}: {note}"), file=sys.stderr)
    bodies = [result.body for result in made]
    if options.output == "yaml":
        sys.stdout.write(yaml.safe_dump_all(bodies, sort_keys=False))
    else:
        whole = bodies[0] if len(bodies) == 1 else {"apiVersion": "v1", "kind": "List", "items": bodies}
        sys.stdout.write(json.dumps(whole, indent=2) + "\n")
    return TO_COMPLETE if any(result.to_complete for result in made) else CONVERTED
