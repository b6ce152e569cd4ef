"""The checks of a report by subject: each is one module, and one line in frame.py."""
