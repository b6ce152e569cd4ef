"""What a request changes, object by object and line by line: the page of changes.

- `views`: the pages and fragments
- `wishes`: what an address asks for
- `planned`: the objects of a plan by phase, filtered. Pure
- `folding`: which lines are shown, and which are left out until somebody asks for them. Pure
- `pairing`: which lines and words stand for each other. Pure
- `highlighting`: a line as HTML, its YAML in colours
- `placing`: at which lines findings stand. Pure
- `drawing`: an object's lines as rows of a table
- `shown`: what one viewer may see of an object
"""

__all__ = [
    "planned",
    "shown",
    "views",
]
