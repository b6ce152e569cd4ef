"""The checks of a report by subject: every `Check` of a module below is found by being there."""
