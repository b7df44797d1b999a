"""The theorem examined: the network built, counted, compared with its bounds, tested, and how it grows."""
