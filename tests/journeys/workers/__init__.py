"""Workers that die, wait or are attacked by what they prepare."""
