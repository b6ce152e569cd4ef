"""The kinds that the sandbox serves: their fields and types, and what discovery, OpenAPI and tables say of them."""
