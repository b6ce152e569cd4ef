"""docs/reference/settings.md: every setting, from the one table of them."""

from __future__ import annotations

from approvals.project import settings_table
from docs.generators import markdown

INTRODUCTION = (
    (
        "Every process reads its settings from environment variables when it starts. Change a value, then restart the "
        "process. A value that cannot be read stops the process with a message that names the variable."
    ),
    (
        "Lists are separated by commas. A switch is `true` or `false`. [Sizing](../operating/sizing.md) says "
        "which values "
        "belong to which load, and [installing](../operating/README.md) which ones you need at least."
    ),
)


def page() -> str:
    lines = markdown.heading_of_page("Settings", "approvals/project/settings_table.py", *INTRODUCTION)
    rows = (
        (markdown.code(f"{settings_table.PREFIX}{it.name}"), markdown.code(it.default), it.meaning)
        for it in settings_table.SETTINGS
    )
    return markdown.page([*lines, *markdown.table(("variable", "default", "meaning"), rows)])
