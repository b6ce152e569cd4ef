"""`python -m tests.support.runner RING`: run a ring of the tests to an end that can be believed, whatever the machine is like.

A run has a deadline and names what it did not run; a failed test gets a second trial, alone; what was left running or
lying is named. A room of its own, so that the tests of the product know nothing of it.
"""
