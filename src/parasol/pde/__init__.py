"""WHAT is solved: parameters, fields, equations, problems, their discretisation and solution."""
