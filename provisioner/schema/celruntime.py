"""CEL's own runtime: expressions compiled and evaluated, each answer a value that never passes by mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cel_expr_python import cel
from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

from provisioner.schema.cel import OLD, OLD_GIVEN, TOKENS, UNUSABLE, NotCompiled, Result, optional_old
from provisioner.schema.celfunctions import declarations

KUBERNETES_ONLY = re.compile(
    r"\b(format|jsonpatch|lists)\s*\.|\.\s*(lastIndexOf|indexOf|validate|slice|distinct|flatten|sort|sortBy|reverse)\s*\("
)
TWO_VARIABLES = re.compile(r"\.\s*(all|exists|existsOne|exists_one|transform\w+)\s*\(\s*\w+\s*,\s*\w+\s*,")
CODE = re.compile(r"^[A-Z_]+: ")
CODE_TAIL = re.compile(r" \[[A-Z_]+\]$")
NO_FIELDS = re.compile(r"expression of type '([^']*)' cannot be the operand of a select operation")
MAX_EXPRESSION_CHARS = 50_000
SIMPLE_TYPES = {
    "string": cel.Type.STRING,
    "bool": cel.Type.BOOL,
    "int": cel.Type.INT,
    "double": cel.Type.DOUBLE,
    "bytes": cel.Type.BYTES,
    "duration": cel.Type.DURATION,
    "timestamp": cel.Type.TIMESTAMP,
}


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled expression over `self` and `oldSelf`; `result_type` is its CEL type in words."""

    expression: Any
    result_type: str
    serialized: bytes

    def run(self, own: Any, old: Any, *, has_old: bool) -> Result:
        """Evaluate with these values, already in CEL's form (see celvalues)."""
        try:
            known = {} if old is UNUSABLE else {OLD: old}
            found = self.expression.eval(data={"self": own, OLD_GIVEN: has_old, **known})
            if found.type() == cel.Type.ERROR:
                return Result(problem=_spoken(str(found.value())))
            return Result(found.value())
        except (RuntimeError, ValueError, TypeError, OverflowError) as exc:
            return Result(problem=_spoken(str(exc)))


def compiled(text: str, signature: str, *, has_optional_old: bool = False) -> Program:
    """What `cel.program` promises, which keeps the programs."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise NotCompiled(f"longer than {MAX_EXPRESSION_CHARS} characters")
    source = _with_optional_old(text) if has_optional_old else text
    environment = _environment(signature, has_optional_old)
    try:
        expression = environment.compile(source)
        return Program(expression, str(expression.return_type()).lower(), expression.serialize())
    except (RuntimeError, ValueError, TypeError) as exc:  # TypeError: a text that is no Unicode
        raise NotCompiled(_stripped(str(exc)), is_beyond_us=_is_beyond_us(text)) from exc


@lru_cache(maxsize=512)
def _environment(signature: str, has_optional_old: bool) -> Any:
    own = _type(signature)
    old = cel.Type.DYN if has_optional_old else own
    return cel.NewEnv(
        variables={"self": own, OLD: old, OLD_GIVEN: cel.Type.BOOL},
        extensions=[
            ext_strings.ExtStrings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
            ext_encoders.ExtEncoders(),
        ],
        functions=declarations(),
    )


def _type(signature: str) -> Any:
    if signature.startswith("list<"):
        return cel.Type.List(_type(signature[5:-1]))
    if signature.startswith("map<string,"):
        return cel.Type.Map(cel.Type.STRING, _type(signature[11:-1]))
    return SIMPLE_TYPES.get(signature, cel.Type.DYN)


def environment_of_rules(variables: Mapping[str, Any], descriptors: Any) -> Any:
    """What rules of custom resources are compiled in, with these variables: nothing that the API server has not."""
    extensions = [ext_strings.ExtStrings(), ext_optional.ExtOptional()]
    return cel.NewEnv(descriptor_pool=descriptors, variables=variables, extensions=extensions, functions=declarations())


def _with_optional_old(text: str) -> str:
    return "".join(optional_old(OLD) if token == OLD else token for token in TOKENS.findall(text))


def _is_beyond_us(text: str) -> bool:
    """Whether the expression uses named formats, JSON patch keys, functions of lists or macros with two variables."""
    code = "".join('""' if token[:1] in ("'", '"') else token for token in TOKENS.findall(text))
    return KUBERNETES_ONLY.search(code) is not None or TWO_VARIABLES.search(code) is not None


def _stripped(text: str) -> str:
    plain = CODE_TAIL.sub("", CODE.sub("", text))
    return NO_FIELDS.sub(r"type '\1' does not support field selection", plain)


def _spoken(text: str) -> str:
    """The runtime's complaint in the words of Kubernetes' own CEL, where the two are known to mean the same."""
    plain = _stripped(text)
    if found := re.fullmatch(r'Key not found in map : "(.*)"', plain, re.DOTALL):
        return f"no such key: {found[1]}"
    if found := re.fullmatch(r"Index error: index=(-?[0-9]+) size=[0-9]+", plain):
        return f"index out of bounds: {found[1]}"
    if plain.startswith("No matching overloads found"):
        return "no such overload"
    return {"divide by zero": "division by zero", "modulus by zero": "modulus by zero"}.get(plain, plain)
