"""CEL expressions of schemas: their text, their types and cost, and how they are compiled and run.

- `ast`: parsed expressions
- `rule_check`: whether the API server takes a rule
- `runtime`: rules compiled and run
- `text`: tokens and literals
- `type_check`: types of expressions
- `values`: objects as CEL sees them
"""

__all__ = [
    "ast",
    "rule_check",
    "runtime",
    "text",
    "type_check",
    "values",
]
