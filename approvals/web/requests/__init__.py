"""The page of a request: what changes, what was found, who decides, and the form to decide."""
