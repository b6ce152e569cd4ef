"""What others did to objects that are ours, and how soon it may be restored."""
