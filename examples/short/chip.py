"""
A chip of three materials
=========================

A chip with a heat source: three materials, cooling by air, and what the die's temperature is for any power and air flow.
"""

import parasol as ps

# a cross-section in millimetres: a board, a die on it, a copper spreader over both
x, y = ps.coordinates("x y")
temperature = ps.unknown("T", x, y)
power, cooling = ps.parameters(power=(0.5, 2.0), cooling=(0.01, 0.1))  # W/mm², W/(mm² K)

section = (
    ps.Box((0, 0), (20, 4))
    .named(top=y > 3.999)
    .regions(board=y < 1.6, die=ps.Box((8, 1.6), (12, 2.4)), spreader=ps.Box((5, 2.4), (15, 4)))
)
k = ps.by_region(board=0.002, die=0.15, spreader=0.4, otherwise=0.0008)  # W/(mm K); "otherwise" is moulding compound
heat = ps.by_region(die=power / 0.8, otherwise=0)

problem = ps.Problem(
    name="chip",
    domain=section,
    equation=ps.Eq(-ps.divergence(k * ps.gradient(temperature)), heat),
    boundary={"top": ps.NormalFlux(-cooling * temperature), "*": ps.NormalFlux(0)},  # T is above that of the air
    quantities={"die": ps.PointValue((10, 2)), "edge": ps.PointValue((5.1, 4)), "top": ps.Average("top")},
)

if __name__ == "__main__":
    model = ps.discretize(problem, ps.scatter(section, n_nodes=500), method="elements")
    surrogate = ps.learn(model=model, tolerance=1e-3, recipe="polynomial")
    for flow in (0.02, 0.08):
        answer = surrogate({"power": 1.0, "cooling": flow})
        die, edge = answer.quantities["die"], answer.quantities["edge"]
        print(f"cooling {flow} W/(mm² K): the die is {die:.1f} K above the air, the edge of the spreader {edge:.1f} K")
    # all the heat leaves through the top: cooling × 20 mm × mean temperature there = power × 4 mm
    mean = answer.quantities["top"]
    assert abs(0.08 * 20 * mean / 4.0 - 1) < 5e-3
