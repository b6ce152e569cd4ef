"""A report for people: HTML, terminal, pictures, headline.

- `evidence`: a finding's evidence as words, lines and tables
- `excerpts`: the lines of roles that rights come from
- `headline`: the few sentences on top
- `html`: one page that needs nothing else
- `lines`: the lines that a finding is about
- `permission_text`: permissions for a terminal and as JSON
- `terminal`: 80 columns
- `unjudged`: what no rule judges, in few lines
"""

__all__ = [
    "evidence",
    "excerpts",
    "headline",
    "html",
    "lines",
    "permission_text",
    "terminal",
    "unjudged",
]
