"""Questions about a machine that are answered by computing with it."""
