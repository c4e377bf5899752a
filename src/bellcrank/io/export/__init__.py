"""Machines as code for other programs: C."""
