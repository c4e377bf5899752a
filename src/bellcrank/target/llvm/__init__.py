"""Native code for the CPU through LLVM: one state, or one SIMD lane per state."""
