"""The chat tools: each module here is one tool, a subclass of ChatTool which is found automatically."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from approvals import instruments
from approvals.chat.tool import ChatTool

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)
TOOLS: dict[str, ChatTool] = {tool.name: tool() for tool in ChatTool.__subclasses__()}
# A counter that appears with its first failure hides that failure from rate() and increase().
for _name in TOOLS:
    for _reason in ("unverified", "unreadable"):
        instruments.refused_callbacks.labels(_name, _reason)
