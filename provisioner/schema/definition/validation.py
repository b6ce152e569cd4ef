"""Whether the API server takes a CRD, new or as an update, and whether its defaults fit its schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from provisioner.schema.admission.embedded import embedded_errors
from provisioner.schema.admission.pruning import TYPE_META, prune, prune_value
from provisioner.schema.admission.rules import rule_errors
from provisioner.schema.admission.validation import validate
from provisioner.schema.cel.rule_check import RuleCheck
from provisioner.schema.cel.values import has_cel_type
from provisioner.schema.definition.crd import Crd
from provisioner.schema.definition.reduction import thinned
from provisioner.schema.definition.spec import (
    approval_errors,
    bad_ca_error,
    conversion_errors,
    has_invalid_ca,
    name_errors,
    version_errors,
)
from provisioner.schema.definition.structural import (
    JUNCTORS,
    TYPES,
    KeywordRules,
    keyword_errors,
    list_key_errors,
    set_item_errors,
    structural_errors,
)
from provisioner.schema.fields import (
    DEEPEST,
    NO_PATH,
    OMITTED,
    FieldError,
    Schema,
    child,
    copied,
    forbidden,
    index,
    invalid,
    is_same,
    is_too_deep,
    key,
    properties_of,
    required,
    same_json,
    schema_of,
)
from provisioner.schema.forms import form_errors
from provisioner.values import JsonObject, object_in

EMBEDDED, RULES = "x-kubernetes-embedded-resource", "x-kubernetes-validations"
INT_OR_STRING = "x-kubernetes-int-or-string"
UNTYPED = "rule compiler initialization error: failed to convert to declType for CEL validation rules"


def default_errors(schema: Schema, path: str, *, needs_pruned: bool = True) -> list[FieldError]:
    """The defaults that do not fit: with unknown fields (where `needs_pruned`), or invalid by their own schema.

    Defaults of a resource's own apiVersion, kind and metadata are judged by the keywords, not here.
    """
    found: list[FieldError] = []
    for at, node in _with_defaults(schema, path):
        value = copied(node["default"])
        place = child(at, "default")
        if needs_pruned and not same_json(_pruned(node), value):
            found.append(invalid(place, value, "must not have unknown fields"))
            continue
        errors = embedded_errors({**node, EMBEDDED: True} if at == path else node, value)
        misfits = [] if errors else validate(_unconverted(node), value)
        found += [
            FieldError(child(place, misfit.path) if _is_inside(misfit.path) else place, misfit.message)
            for misfit in misfits
        ]
        errors = errors if errors or misfits else _rule_errors(node, value)
        for error in errors:
            path_below = error.path if error.path.startswith("[") else f".{error.path}"
            found.append(FieldError(place + path_below if _is_inside(error.path) else place, error.message))
    return found


def _rule_errors(node: Schema, value: object) -> list[FieldError]:
    """A default is a new value, and one that took the place of its like: the API server runs the rules for both."""
    if node.get(RULES) and not has_cel_type(node):
        kind = str(node.get("type") or "")
        return [invalid("", kind, UNTYPED)]
    found = [*rule_errors(node, value, None, None), *rule_errors(node, value, value, None)]
    return list(dict.fromkeys(found))


def has_unpruned_default(schema: Schema) -> bool:
    """Whether a default has fields that its own schema would drop."""
    return any(not same_json(_pruned(node), copied(node["default"])) for _, node in _with_defaults(schema, ""))


def _unconverted(schema: Any) -> Any:
    """A schema as the API server holds it against defaults: there int-or-string says nothing of the type."""
    if isinstance(schema, Mapping):
        return {name: _unconverted(entry) for name, entry in schema.items() if name != INT_OR_STRING}
    return [_unconverted(entry) for entry in schema] if isinstance(schema, list) else schema


def _is_inside(path: str) -> bool:
    return path not in (NO_PATH, "")


def _pruned(node: Schema) -> object:
    if node.get(EMBEDDED) is True:
        return prune(node, node["default"])[0]
    return prune_value(node, node["default"])


def _with_defaults(schema: Schema, path: str) -> list[tuple[str, Schema]]:
    found: list[tuple[str, Schema]] = []
    waiting = [(path, schema, True)]
    while waiting:
        at, node, is_root = waiting.pop()
        if node.get("default") is not None:
            found.append((at, node))
        items = schema_of(node.get("items"))
        if items is not None:
            waiting.append((child(at, "items"), items, False))
        is_resource = is_root or node.get(EMBEDDED) is True
        for name, below in properties_of(node).items():
            if isinstance(below, Mapping) and not (is_resource and name in TYPE_META):
                waiting.append((key(child(at, "properties"), name), below, False))
    return found


IMMUTABLE = "field is immutable"
MISSING_STORED = (
    "missing from spec.versions; {0} was previously a storage version, and must remain in spec.versions until a "
    "storage migration ensures no data remains persisted in {0} and removes {0} from status.storedVersions"
)
ROOT_KEYWORDS = frozenset(
    {
        "description",
        "type",
        "format",
        "title",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "maxLength",
        "minLength",
        "pattern",
        "maxItems",
        "minItems",
        "uniqueItems",
        "multipleOf",
        "required",
        "items",
        "properties",
        "externalDocs",
        "example",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-validations",
    }
)


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is asked of a CRD. An update need not mend what the old one already had wrong; versions whose schema
    is `unchanged` are not looked at again.
    """

    keywords: KeywordRules = field(default_factory=KeywordRules)
    needs_schema: bool = True
    needs_structure: bool = True
    needs_pruned_defaults: bool = True
    needs_known_review_version: bool = True
    unchanged: frozenset[str] = frozenset()


def validate_crd(crd: JsonObject) -> list[FieldError]:
    """Why the API server would not create this CRD; empty if it would. Raises InvalidManifest for what is no object."""
    object_in(crd, "the CRD")
    if is_too_deep(crd):
        return [_too_deep()]
    unread = form_errors(crd)
    if unread:
        return unread
    read = Crd(crd)
    wanted = f"{read.names.get('plural') or ''}.{read.group}"
    found: list[FieldError] = []
    if read.name != wanted:
        found.append(invalid("metadata.name", read.name, 'must be spec.names.plural+"."+spec.group'))
    found += _spec_errors(read, _Rules())
    found += approval_errors(read, None)
    if read.preserves_unknown:
        found.append(_preserve_error())
    return found


def accepts_update(old_crd: JsonObject, new_crd: JsonObject) -> list[FieldError]:
    """Why the API server would not take `new_crd` in place of `old_crd`; empty if it would.

    `old_crd` is what the cluster holds, with its status where known: without one it counts as established, with its
    storage version as the only stored one. What the old CRD already had wrong is not held against the new one.
    Raises InvalidManifest where one of the two is no object.
    """
    object_in(old_crd, "the old CRD")
    object_in(new_crd, "the new CRD")
    if is_too_deep(old_crd) or is_too_deep(new_crd):
        return [_too_deep()]
    unread = form_errors(new_crd) or form_errors(old_crd)
    if unread:
        return unread
    return update_errors(Crd(old_crd), Crd(new_crd))


def update_errors(old: Crd, new: Crd) -> list[FieldError]:
    """The same of two CRDs that are known not to be nested too deep."""
    found = [] if is_same(old.spec, new.spec) else _spec_errors(new, _Rules(unchanged=_unchanged(old, new)))
    if found:  # most CRDs are sound: what the old one had wrong is looked for only where the new one is not
        schemas = [version.schema for version in old.versions if version.schema is not None]
        reviewed = old.conversion.get("conversionReviewVersions") or []
        keywords = KeywordRules(
            needs_valid_types=not _any(schemas, lambda it: bool(it.get("type")) and it["type"] not in TYPES),
            needs_atomic_sets=not _any(schemas, lambda it: bool(set_item_errors(it, ""))),
            needs_sound_keys=not _any(schemas, lambda it: bool(list_key_errors(it, ""))),
        )
        found = _spec_errors(
            new,
            _Rules(
                keywords=keywords,
                needs_schema=all(version.schema is not None for version in old.versions),
                needs_structure=not any(structural_errors(schema, "") for schema in schemas),
                needs_pruned_defaults=not any(has_unpruned_default(schema) for schema in schemas),
                needs_known_review_version=not reviewed or bool({"v1", "v1beta1"} & set(reviewed)),
                unchanged=_unchanged(old, new),
            ),
        )
    if old.is_established:
        found += _immutable("spec.scope", old.scope, new.scope)
        found += _immutable("spec.names.kind", old.names.get("kind"), new.names.get("kind"))
    found += _immutable("spec.group", old.group, new.group)
    found += _immutable("spec.names.plural", old.names.get("plural"), new.names.get("plural"))
    if old.is_established and has_invalid_ca(new) and not has_invalid_ca(old):
        found.append(bad_ca_error(new))
    known = {version.name for version in new.versions}
    found += [
        invalid(index("status.storedVersions", place), name, MISSING_STORED.format(name))
        for place, name in enumerate(old.stored_versions)
        if name not in known
    ]
    found += approval_errors(new, old)
    if new.preserves_unknown and not old.preserves_unknown:
        found.append(_preserve_error())
    return found


def _too_deep() -> FieldError:
    return invalid("spec", OMITTED, f"nested deeper than {DEEPEST} levels: not judged")


def _preserve_error() -> FieldError:
    advice = "set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
    return invalid("spec.preserveUnknownFields", True, f"cannot set to true, {advice}")


def _immutable(path: str, old: object, new: object) -> list[FieldError]:
    return [] if old == new else [invalid(path, new, IMMUTABLE)]


def _unchanged(old: Crd, new: Crd) -> frozenset[str]:
    pairs = ((old.version(version.name), version) for version in new.versions)
    return frozenset(now.name for was, now in pairs if was is not None and is_same(was.schema, now.schema))


def _spec_errors(crd: Crd, rules: _Rules) -> list[FieldError]:
    found = name_errors(crd)
    for place, version in enumerate(crd.versions):
        path = child(index("spec.versions", place), "schema.openAPIV3Schema")
        if version.schema is None and rules.needs_schema:
            found.append(required(path))
        elif version.schema is None and version.is_served and not crd.preserves_unknown:
            found.append(required(path, "because otherwise all fields are pruned"))
    found += version_errors(crd)
    thin = {id(schema): thinned(schema) for schema in _schemas(crd)}
    has_defaults = _any(thin.values(), lambda it: it.get("default") is not None)
    if has_defaults and crd.preserves_unknown:
        detail = "must be false in order to use defaults in the schema"
        found.append(invalid("spec.preserveUnknownFields", True, detail))
    is_structural = rules.needs_structure or not crd.preserves_unknown or has_defaults or _has_extensions(crd)
    shared = crd.shared_schema
    if shared is not None:
        has_status = any(version.has_status for version in crd.versions)
        is_unchanged = all(version.name in rules.unchanged for version in crd.versions)
        check = _SchemaCheck(rules, is_structural, has_status, is_unchanged)
        found += check.run(shared, thin[id(shared)], "spec.validation.openAPIV3Schema")
    else:
        for place, version in enumerate(crd.versions):
            if version.schema is not None:
                path = child(index("spec.versions", place), "schema.openAPIV3Schema")
                check = _SchemaCheck(rules, is_structural, version.has_status, version.name in rules.unchanged)
                found += check.run(version.schema, thin[id(version.schema)], path)
    return found + conversion_errors(crd, needs_known_version=rules.needs_known_review_version)


def _schemas(crd: Crd) -> list[Schema]:
    return [version.schema for version in crd.versions if version.schema is not None]


def _has_extensions(crd: Crd) -> bool:
    names = (
        "embedded-resource",
        "preserve-unknown-fields",
        "int-or-string",
        "list-map-keys",
        "list-type",
        "validations",
    )
    return _any(_schemas(crd), lambda it: any(it.get(f"x-kubernetes-{name}") for name in names))


@dataclass(frozen=True, slots=True)
class _SchemaCheck:
    """All checks on one schema, in the server's order: rules are compiled only where the schema itself is sound."""

    rules: _Rules
    is_structural: bool
    has_status: bool
    is_unchanged: bool

    def run(self, whole: Schema, schema: Schema, path: str) -> list[FieldError]:
        """`schema` is `whole`, thinned."""
        if self.is_unchanged:
            return []
        found = _root_errors(whole, path) if self.has_status else []
        if schema.get("nullable"):
            found.append(forbidden(child(path, "nullable"), "nullable cannot be true at the root"))
        shape: list[FieldError] = []
        if self.is_structural:
            shape = structural_errors(schema, path) or default_errors(
                schema, path, needs_pruned=self.rules.needs_pruned_defaults
            )
        keywords = keyword_errors(schema, path, self.rules.keywords)
        found += shape + [error for error in keywords if error not in shape]
        if self.is_structural and not shape and not keywords:
            found += RuleCheck().run(schema, path)
        return found


def _root_errors(schema: Schema, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if schema.get("type") and schema["type"] != "object":
        words = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        found.append(invalid(child(path, "type"), schema["type"], words))
    # An empty list or object says something, too.
    said = {name for name, value in schema.items() if value is not None and value is not False and value != ""}
    beyond = sorted(said - ROOT_KEYWORDS)
    if beyond:
        words = "fields are allowed at the root of the schema if the status subresource is enabled"
        found.append(invalid(path, {name: schema[name] for name in beyond}, f"only some {words}"))
    return found


def _any(schemas: Iterable[Schema], test: Callable[[Schema], bool]) -> bool:
    """Whether `test` holds for a node of one of the schemas, junctors included."""
    waiting: list[Any] = list(schemas)
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Mapping):
            continue
        if test(node):
            return True
        waiting += [node.get("items"), node.get("not"), node.get("additionalProperties"), *properties_of(node).values()]
        for junctor in JUNCTORS:
            branches = node.get(junctor)
            waiting += branches if isinstance(branches, list) else []
    return False
