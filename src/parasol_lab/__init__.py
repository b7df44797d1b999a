"""The paper's experiments, its theorem and the benchmarks: what parasol was made from and is measured by, with its public names only."""
