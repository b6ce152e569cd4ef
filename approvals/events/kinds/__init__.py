"""The kinds of notification targets, one file each."""
