"""CEL expressions of schemas: their text, their types and cost, and how they are compiled and run."""
