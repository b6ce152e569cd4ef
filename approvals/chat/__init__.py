"""The chat door: signed callbacks come in, short messages go out. A decision goes the same way as every other one.

A tool is one file in `tools`: it verifies, parses, and words messages; it never decides.
"""
