"""In which order an algorithm visits bodies: sweeps run at once, or rolled into loops over kinds of items."""
