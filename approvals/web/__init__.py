"""The pages: browser requests in, templates out; views read and call services, and decide nothing.

`approvals.project` includes `urls` and uses `errors` and `rendering` for failures; nothing else imports this room.

Modules that other rooms use:

- `errors`: pages for what went wrong: what, why, what to do, and the id under which the log tells more
- `rendering`: templates to HTML
"""

__all__ = [
    "errors",
    "rendering",
]
