"""Pages that are written from the code, so that they cannot say anything else. One module for each page or pair.

`python -m docs.generators` writes them; with `--check` it only says which are not current (exit status 1).
`make docs` does the first, `make lint` the second. To add a page, write a module with a function that returns its
text, and one line in `pages` of `docs/generators/__main__.py`.
"""
