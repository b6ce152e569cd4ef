"""Helm's engine in a process that has nothing else: files of charts and values come in by a pipe, texts go out.

It loads little of ours, since it is started for people who wait. `provisioner.render.helm` is its parent.
"""
