"""The pages in docs/: generated ones are current, numbers and paths that the code cites exist, words are for people."""
