"""Checks of pods: what they run and read, where, as whom, and what they may do to their node."""
