"""The REST door: /api/v1, OpenAPI at /api/v1/schema, errors as RFC 9457 problems."""
