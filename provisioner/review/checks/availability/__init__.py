"""Checks of what keeps running: pods that go or do not start, and ways to reach them that end."""
