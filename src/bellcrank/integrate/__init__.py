"""Methods of integration as programs: coefficients, fixed steps, error control, implicit stages."""
