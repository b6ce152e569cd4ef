"""The pages: browser requests in, templates out; views read and call services, and decide nothing.

`approvals.project` includes `urls` and uses `errors` and `rendering` for failures; nothing else imports this room.
"""
