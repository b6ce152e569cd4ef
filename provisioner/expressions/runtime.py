"""CEL's own library, in the child process only: expressions compiled and evaluated, each answer a value."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, struct_pb2, timestamp_pb2

from provisioner.expressions.functions import declarations
from provisioner.expressions.limits import MAX_TEXT
from provisioner.expressions.questions import ExpressionAnswer, ExpressionOutcome, Language, Library

SIMPLE_TYPES = {
    "string": cel.Type.STRING,
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "bytes": cel.Type.BYTES,
    "duration": cel.Type.DURATION,
    "timestamp": cel.Type.TIMESTAMP,
}
MESSAGES = "schema."
# As in Kubernetes, numbers of two kinds are ordered, which CEL's own checker refuses: its operators are declared anew.
ORDERS = {"_<_": "less", "_<=_": "less_equals", "_>_": "greater", "_>=_": "greater_equals"}
NUMBERS = (cel.Type.INT, cel.Type.UINT, cel.Type.DOUBLE)
OTHERS_ORDERED = (cel.Type.BOOL, cel.Type.STRING, cel.Type.BYTES, cel.Type.TIMESTAMP, cel.Type.DURATION)
WITHOUT_ORDERS = json.dumps({"stdlib": {"exclude_functions": [{"name": name} for name in ORDERS]}})
_IMPORTED = (duration_pb2, struct_pb2, timestamp_pb2)
TRUE, FALSE = (ExpressionAnswer(ExpressionOutcome.VALUE, value, "bool") for value in (True, False))
_RAISED = (RuntimeError, ValueError, TypeError, OverflowError)  # TypeError: a text that is no Unicode


class Values:
    """Variables, which CEL reads once for all expressions of a language that are evaluated on them."""

    def __init__(self, data: Mapping[str, Any]):
        self._data = dict(data)
        self._known: dict[Language, Any] = {}

    def of(self, language: Language) -> Any:
        if language not in self._known:
            self._known[language] = _environment(language).Activation(self._data)
        return self._known[language]


def answer(language: Language, text: str, values: Values | None, *, wants_program: bool) -> ExpressionAnswer:
    """Compile `text` and evaluate it on `values`, if there are any. Raises MemoryError and RecursionError."""
    try:
        expression = _compiled(language, text)
    except _RAISED as exc:
        return ExpressionAnswer(ExpressionOutcome.NOT_COMPILED, words=str(exc))
    if values is None:
        program = expression.serialize() if wants_program else b""
        return ExpressionAnswer(
            ExpressionOutcome.COMPILED, type=expression.return_type().name().lower(), program=program
        )
    try:
        return _answer_of(expression.eval(values.of(language)))
    except _RAISED as exc:
        return ExpressionAnswer(ExpressionOutcome.FAILED, words=str(exc))


def _answer_of(found: Any) -> ExpressionAnswer:
    kind = found.type()
    if kind == cel.Type.BOOL:
        return TRUE if found.value() else FALSE
    if kind == cel.Type.ERROR:
        return ExpressionAnswer(ExpressionOutcome.FAILED, words=str(found.value()))
    name = kind.name().lower()
    if name != "string":
        return ExpressionAnswer(ExpressionOutcome.VALUE, type=name)
    value = found.value()
    return ExpressionAnswer(ExpressionOutcome.VALUE, value if len(value) <= MAX_TEXT else None, name)


@lru_cache(maxsize=4096)  # some 10 KiB each; what the policies and rules of a cluster ask has to fit
def _compiled(language: Language, text: str) -> Any:
    return _environment(language).compile(text)


@lru_cache(maxsize=64)
def _environment(language: Language) -> Any:
    variables = {name: _type(written) for name, written in language.variables}
    pairs = [*itertools.product(NUMBERS, NUMBERS), *zip(OTHERS_ORDERED, OTHERS_ORDERED, strict=True)]
    config, orders = cel.NewEnvConfigFromYaml(WITHOUT_ORDERS), []
    for name, word in ORDERS.items():
        overloads = [cel.Overload(f"{word}_{a.name()}_{b.name()}".lower(), cel.Type.BOOL, [a, b]) for a, b in pairs]
        orders.append(cel.FunctionDecl(name, overloads))
    if language.library is Library.NONE:
        return cel.NewEnv(config=config, variables=variables, functions=orders)
    functions = [*orders, *declarations()]
    if language.library is Library.RULE_TYPES:
        extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
        pool = _pool(language.descriptors)
        return cel.NewEnv(
            config=config, descriptor_pool=pool, variables=variables, extensions=extensions, functions=functions
        )
    extensions = [
        ext_strings.ExtStrings(),
        ext_math.ExtMath(),
        ext_optional.ExtOptional(),
        ext_bindings.ExtBindings(),
        ext_encoders.ExtEncoders(),
    ]
    return cel.NewEnv(config=config, variables=variables, extensions=extensions, functions=functions)


def _type(written: str) -> Any:
    if written.startswith("list<"):
        return cel.Type.List(_type(written[5:-1]))
    if written.startswith("map<string,"):
        return cel.Type.Map(cel.Type.STRING, _type(written[11:-1]))
    if written.startswith(MESSAGES):
        return cel.Type(written)
    return SIMPLE_TYPES.get(written, cel.Type.DYN)


def _pool(descriptors: bytes) -> Any:
    found = descriptor_pool.DescriptorPool()
    for known in _IMPORTED:
        found.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    if descriptors:
        found.Add(descriptor_pb2.FileDescriptorProto.FromString(descriptors))
    return found
