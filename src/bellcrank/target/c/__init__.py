"""Plain C99 for controllers: one state, no allocation, no globals."""
