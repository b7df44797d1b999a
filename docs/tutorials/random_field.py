"""
random_field
=========================

Text.
"""
