"""TO OTHERS: results as files that other programs read."""
