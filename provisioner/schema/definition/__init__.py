"""CustomResourceDefinitions: read into one form, and judged as the API server judges them."""
