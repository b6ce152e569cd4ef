"""One custom resource on its way into the API server: pruned, defaulted and validated as the server does it."""
