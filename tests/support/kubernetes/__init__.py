"""API servers for tests, the real one and the sandbox, with the same users; and how to wait for what they do."""
