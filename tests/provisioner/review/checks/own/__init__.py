"""Ways in which a bundle gets or hands out power over Pratique."""
