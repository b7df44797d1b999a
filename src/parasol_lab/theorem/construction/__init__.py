"""The theorem: a ReLU network for μ ↦ c(μ) built from the equation, its size and its error known before."""
