"""What reports read of pods and volumes, wherever objects hide them."""
