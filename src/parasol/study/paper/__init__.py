"""The paper again: its three experiments with their tables, figures and a report, from one call."""
