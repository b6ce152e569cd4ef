"""Rules that compare a value with its old value: whether a value that stays as it is always passes."""

from __future__ import annotations

from dataclasses import replace

from provisioner.schema.cel.ast import Node, NodeKind
from provisioner.schema.cel.normal_form import (
    AND,
    AT_MOST,
    DIFFERS,
    EQUALS,
    FALSE,
    IN,
    LESS,
    NOT,
    OR,
    STEP,
    TRUE,
    joined,
)
from provisioner.schema.cel.text import OLD, OLD_GIVEN
from provisioner.schema.reading import Schema, properties_of

SELF = "self"
_TERNARY = "_?_:_"
_OF_EQUALS = {EQUALS: TRUE, AT_MOST: TRUE, DIFFERS: FALSE, LESS: FALSE}
_OPTIONAL, _HAS_VALUE, _VALUES = "optional.of", "hasValue", frozenset({"value", "orValue"})


def spares_unchanged(meaning: Node, schema: Schema) -> bool:
    """Whether a rule, in its one form, is true wherever the old value and the new one are equal.

    `schema` says which fields are always there: to read one that may be missing is an error, which refuses the object,
    unless the rule asks for it by `has`.
    """
    tested = {node.name for node in meaning.walk() if node.is_test}
    reads = (node for node in meaning.walk() if node.kind is NodeKind.SELECT and not node.is_test)
    if any(node.name not in tested and not _is_there(_path(node), schema) for node in reads):
        return False
    return _simplified(meaning) == TRUE


def _path(node: Node | None) -> list[str]:
    """The fields that lead from the value to what a selection reads; nothing for one of something else."""
    names: list[str] = []
    while node is not None and node.kind is NodeKind.SELECT:
        names.insert(0, node.name)
        node = node.target
    return names if node is not None and node.name in {SELF, OLD, *_VALUES} else []


def _is_there(path: list[str], schema: Schema) -> bool:
    for name in path:
        if name not in (schema.get("required") or ()):
            return False
        schema = properties_of(schema).get(name, {})
    return bool(path)


def _simplified(node: Node) -> Node:
    """With the old value in the place of the new one, and without what is decided by that."""
    if node.kind is NodeKind.IDENT:
        return TRUE if node.name == OLD_GIVEN else replace(node, name=SELF if node.name == OLD else node.name)
    parts = tuple(map(_simplified, node.parts))
    target = _simplified(node.target) if node.target is not None else None
    made = replace(node, parts=parts, target=target)
    if node.kind is NodeKind.FOLD:  # all() of what is true of each is true
        return TRUE if parts[STEP] == Node(NodeKind.IDENT, node.name) and parts[1] == TRUE else _of_items(made)
    return _decided(made) if node.kind is NodeKind.CALL else made


def _decided(call: Node) -> Node:
    parts = call.parts
    if call.name in _OF_EQUALS and parts[0] == parts[1]:
        return _OF_EQUALS[call.name]
    if call.name == AND:
        return FALSE if FALSE in parts else joined(AND, parts)
    if call.name == OR:
        both = any(_not(part) in parts for part in parts)
        return TRUE if both or TRUE in parts else joined(OR, parts)
    if call.name == _TERNARY and parts[0] in (TRUE, FALSE):
        return parts[1] if parts[0] == TRUE else parts[2]
    if call.name == _TERNARY and parts[1] in (TRUE, parts[0]) and parts[2] in (TRUE, _not(parts[0])):
        return TRUE
    is_given = call.target is not None and call.target.name == _OPTIONAL
    if is_given and call.target is not None and call.name in _VALUES:
        return call.target.parts[0]
    return TRUE if is_given and call.name == _HAS_VALUE else call


def _not(node: Node) -> Node:
    return Node(NodeKind.CALL, NOT, parts=(node,))


def _of_items(fold: Node) -> Node:
    """all(x, x in the same list): each of its items is in it."""
    inside = Node(NodeKind.CALL, IN, parts=(Node(NodeKind.IDENT, fold.variable), fold.parts[0]))
    held = {Node(NodeKind.IDENT, fold.name), inside}
    step = fold.parts[STEP]
    return TRUE if step.name == AND and set(step.parts) == held and fold.parts[1] == TRUE else fold
