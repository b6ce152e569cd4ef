"""gunicorn's worker for the pages, made safe against slow and greedy clients (docs/decisions/0001-web-worker.md).

`heads` reads how long a request is, `sockets` sends answers, `shares` says who holds how much, `worker` joins them.
"""
