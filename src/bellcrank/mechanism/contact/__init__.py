"""Contact between shapes of bodies: where they touch, and what they are made of."""
