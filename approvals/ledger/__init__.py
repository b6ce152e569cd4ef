"""How requests change: each move with its audit row and its wake in one transaction, for services and steps alike."""
