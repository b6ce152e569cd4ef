"""The REST API: /api/v1, OpenAPI at /api/v1/schema, errors as RFC 9457 problems.

`approvals.project` includes `urls`, names the classes in its settings, and uses `problems`; nothing else imports it.

Modules that other rooms use:

- `authentication`: who calls: by a person's token, an ID token of an issuer, or a proxy's word
- `problems`: one error shape: application/problem+json (RFC 9457), with our stable `code`
- `views`: the resources
"""

__all__ = [
    "authentication",
    "problems",
    "views",
]
