"""docs/reference/bundledeployment.md and its neighbours for requests and reviews: each field, from the CRDs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from docs.generators import markdown

CRDS = Path(__file__).resolve().parents[2] / "deploy" / "crds"
# Bounds that a reader has to know, with the words for each.
BOUNDS = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "maxProperties": "at most {} entries",
    "pattern": "matches `{}`",
}

Schema = Mapping[str, Any]


def bundledeployment() -> str:
    return _page(
        "bundledeployments.yaml",
        "A BundleDeployment says which content shall run on the cluster. Each change of its content or options "
        "makes one "
        "[request](bundledeploymentrequest.md) that people and policies decide on. "
        "[Sources](../operating/sources.md) and [health](../operating/health.md) have pages of their own.",
    )


def bundledeploymentrequest() -> str:
    return _page(
        "bundledeploymentrequests.yaml",
        "Pratique writes one BundleDeploymentRequest for each request, so that `kubectl get bdr` and "
        "`kubectl wait --for=condition=Approved` work. Pratique never reads it back: an edit changes nothing "
        "and is undone.",
    )


def bundledeploymentreview() -> str:
    return _page(
        "bundledeploymentreviews.yaml",
        "A BundleDeploymentReview is one decision of one person on one [request](bundledeploymentrequest.md), made "
        "with kubectl. Pratique counts it or says why not. [Working with kubectl](../operating/kubectl.md#reviews) "
        "says what proves who made it.",
    )


def catalog() -> str:
    return _page(
        "catalogs.yaml",
        "A Catalog names a file-based catalog of OLM: packages, their channels and versions, and which version may "
        "follow which. Pratique reads it, follows its source, and shows what it offers to whoever may `get` it. "
        "[Catalogs](../operating/catalogs.md) has a page of its own.",
    )


def approvalrule() -> str:
    return _page(
        "approvalrules.yaml",
        "An ApprovalRule says whose approvals requests need in its cluster, beside the number that all need. "
        "[Approval rules](../operating/approval-rules.md) has recipes, and says who counts.",
    )


def changewindow() -> str:
    return _page(
        "changewindows.yaml",
        "A ChangeWindow says when approved requests of its cluster are applied. "
        "[Change windows](../operating/change-windows.md) has recipes, and says what waits.",
    )


def approvalpolicy() -> str:
    return _page(
        "approvalpolicies.yaml",
        "An ApprovalPolicy is a guard that holds requests of its cluster back, or a grant that approves them. "
        "[Policies](../operating/policies.md) has recipes, and says whose word counts.",
    )


def findingexception() -> str:
    return _page(
        "findingexceptions.yaml",
        "A FindingException accepts findings in its cluster until a day, so that guards ignore them. "
        "[Finding exceptions](../reviewing/finding-exceptions.md) says who confirms one, and what it never "
        "accepts.",
    )


def deputy() -> str:
    return _page(
        "deputies.yaml",
        "A Deputy says that somebody holds a ClusterRole for another person until a time, and owns the binding that "
        "gives it. [Deputies](../reviewing/deputies.md) says how to make one, and when their approvals count.",
    )


def externalcheck() -> str:
    return _page(
        "externalchecks.yaml",
        "An ExternalCheck names another system that has to pass requests of its cluster, or says something about them. "
        "[External checks](../reviewing/external-checks.md) has the events, the answers and an example.",
    )


def _page(file: str, introduction: str) -> str:
    crd = yaml.safe_load((CRDS / file).read_text("utf-8"))
    names, versions = crd["spec"]["names"], crd["spec"]["versions"]
    lines = markdown.heading_of_page(names["kind"], f"deploy/crds/{file}", introduction)
    lines += [
        f"Group `{crd['spec']['group']}`, scope {crd['spec']['scope']}, short names "
        + ", ".join(f"`{it}`" for it in names["shortNames"])
        + ".",
        "",
    ]
    for version in versions:
        lines += _version(version)
    return markdown.page(lines)


def _version(version: Mapping[str, Any]) -> Iterator[str]:
    schema = version["schema"]["openAPIV3Schema"]
    for part in ("spec", "status"):
        if part not in schema["properties"]:
            continue
        yield from [f"## {part} ({version['name']})", ""]
        rows = list(_fields(schema["properties"][part], part))
        yield from markdown.table(("field", "type", "default", "meaning"), rows)
        of_the_object = _validations(schema, "") if part == "spec" else ()
        yield from _rules([*of_the_object, *_validations(schema["properties"][part], part)])


def _fields(schema: Schema, path: str) -> Iterator[tuple[str, str, str, str]]:
    required = set(schema.get("required", ()))
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        default = markdown.code(json.dumps(field["default"])) if "default" in field else ""
        yield f"`{here}`", _type(field), default, _meaning(field, name in required)
        if field.get("type") == "array":
            yield from _fields(field.get("items", {}), f"{here}[]")
        else:
            yield from _fields(field, here)


def _type(field: Schema) -> str:
    kind = field.get("type", "any")
    if kind == "array":
        return f"list of {_type(field.get('items', {}))}"
    extra = field.get("additionalProperties")
    if kind == "object" and isinstance(extra, Mapping):
        return f"map of {_type(extra)}"
    return f"{kind} ({field['format']})" if "format" in field else str(kind)


def _meaning(field: Schema, is_required: bool) -> str:
    parts = ["**Required.**"] if is_required else []
    if words := " ".join(str(field.get("description", "")).split()):
        parts.append(words if words.endswith(".") else f"{words}.")
    limits = [f"one of {', '.join(f'`{it}`' for it in field['enum'])}"] if "enum" in field else []
    bounded = {**field.get("items", {}), **field} if field.get("type") == "array" else field
    limits += [_bound(key, bounded[key]) for key in BOUNDS if key in bounded]
    if limits:
        text = "; ".join(limits)
        parts.append(f"{text[0].upper()}{text[1:]}.")
    return " ".join(parts)


def _bound(key: str, value: object) -> str:
    return "not empty" if key in {"minLength", "minItems"} and value == 1 else BOUNDS[key].format(value)


def _validations(schema: Schema, path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path or "the object", str(rule.get("message") or rule["rule"])
    if not path:
        return
    for name, field in schema.get("properties", {}).items():
        yield from _validations(field, f"{path}.{name}")
    if "items" in schema:
        yield from _validations(schema["items"], f"{path}[]")


def _rules(found: list[tuple[str, str]]) -> Iterator[str]:
    if found:
        yield from ["The API server also checks:", ""]
        yield from [f"- {f'`{where}`' if '.' in where else where}: {markdown.cell(words)}" for where, words in found]
        yield ""
