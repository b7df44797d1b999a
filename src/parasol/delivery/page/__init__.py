"""The explorer: a surrogate as one HTML page that computes, draws and bounds by itself."""
