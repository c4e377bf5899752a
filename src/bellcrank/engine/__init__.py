"""Trace, schedule, compile. This layer knows nothing of mechanics."""
