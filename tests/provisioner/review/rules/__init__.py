"""Tests of the rules in words, and of what the files say against what the code finds."""
