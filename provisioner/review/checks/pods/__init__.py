"""Checks of pods: what they may do to their node, their images, and what they read."""
