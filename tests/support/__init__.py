"""What the tests of several folders share, by subject; what one folder alone needs stands in that folder."""
