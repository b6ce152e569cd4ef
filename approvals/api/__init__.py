"""The REST API: /api/v1, OpenAPI at /api/v1/schema, errors as RFC 9457 problems.

`approvals.project` includes `urls`, names the classes in its settings, and uses `problems`; nothing else imports it.
"""
