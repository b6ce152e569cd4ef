"""The chat door: signed callbacks come in, short messages go out. A decision goes the same way as every other one.

A tool is one file and one line in `views.TOOLS`: it verifies, parses, and words messages; it never decides.

Modules that other rooms use:

- `incoming`: acting on deliveries: linked person, same checks, same service; the answer to the tool comes after
- `outgoing`: messages out: "needs you" and "decided", to an incoming webhook
"""

__all__ = [
    "incoming",
    "outgoing",
]
