"""Loops: constraints on arrays, plans of which speeds depend on which, closing, null spaces."""
