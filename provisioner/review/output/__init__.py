"""A report for people: HTML, terminal, pictures, headline.

- `entries`: findings told by cause
- `evidence`: a finding's evidence as words, lines and tables
- `excerpts`: the lines of roles that rights come from
- `headline`: the few sentences on top
- `html`: one page that needs nothing else
- `lines`: the lines that a finding is about
- `own_words`: a report for who may see all that it is made of
- `permission_text`: permissions for a terminal and as JSON
- `terminal`: 80 columns
- `unjudged`: what no rule judges, in few lines
- `workloads`: what will run, in words
"""

__all__ = [
    "entries",
    "evidence",
    "excerpts",
    "headline",
    "html",
    "lines",
    "own_words",
    "permission_text",
    "terminal",
    "unjudged",
    "workloads",
]
