"""Bodies that deform: their data, where it comes from, and the kinetic energy that follows from it."""
