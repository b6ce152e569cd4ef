"""`python -m provisioner.sandbox`: a sandbox until SIGTERM or Ctrl-C."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from pathlib import Path
from queue import SimpleQueue

from provisioner.sandbox.sandbox import ADMIN, Sandbox, SandboxUser


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True, help="folder of objects, tokens and certificate")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--kubeconfig", type=Path, required=True, help="written here; one context a user")
    parser.add_argument("--users", type=Path, help="JSON: [{name, token, groups, uid}], beside admin")
    options = parser.parse_args()
    listed = json.loads(options.users.read_text()) if options.users else []
    users = [
        SandboxUser(user["name"], user.get("token", ""), tuple(user.get("groups", ())), user.get("uid", ""))
        for user in listed
    ]
    sandbox = Sandbox(options.state, options.port, (ADMIN, *users))
    options.kubeconfig.touch(mode=0o600)
    options.kubeconfig.chmod(0o600)
    options.kubeconfig.write_text(sandbox.kubeconfig())
    # Not an Event: a handler that sets it while this thread is about to wait for it waits for its lock, for ever.
    stopping: SimpleQueue[int] = SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: stopping.put(number))
    sandbox.start()
    sys.stdout.write(f"Ready: {sandbox.url}\n")
    sys.stdout.flush()
    stopping.get()
    sandbox.stop()


if __name__ == "__main__":
    main()
