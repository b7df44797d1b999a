"""What was found about a theorem's network, in words for a terminal."""

from __future__ import annotations

from parasol.report import Facts
from parasol_lab.theorem.growth import CURVES


def theorem_rows(facts: Facts) -> list[tuple[str, str]]:
    """What was found, for a table of names and words."""
    network, test, constants = facts["network"], facts["test"], facts["constants"]
    layers = "1 layer" if network["depth"] == 1 else f"{network['depth']} layers"
    exact = network["depth"] == 1 and facts["system"]["exact"]
    asked = "none: c is affine in mu" if exact else f"{facts['accuracy']:.1e} of the largest ||c||"
    rows = [
        (
            "problem",
            f"{facts['problem']}, {facts['n_nodes']} nodes, {facts['n_modes']} modes of {facts['n_snapshots']} solves",
        ),
        ("system", f"{facts['system']['form']}"),
    ]
    if facts["chain"] is not None:
        rows.append(
            (
                "proven over the box",
                f"alpha {constants['alpha']:.4g}, beta {constants['beta']:.3g}, gamma {constants['gamma']:.4g}, "
                f"alpha/beta {constants['kappa']:.3g}",
            )
        )
    rows += [
        (
            "network",
            f"{network['construction']}: {layers}, {network['n_weights']:,} weights, built in {network['build_seconds']:.1f} s",
        ),
        ("error allowed", asked),
    ]
    if not exact:
        rows.append(("error proven over the box", _proven(network)))
    rows += [
        (
            "largest error measured",
            f"{test['error']:.1e} by a search from {test['n_random']} random parameters ({test['random_error']:.1e}) and "
            f"{test['n_corners']} corners",
        ),
        ("one answer takes", f"{network['seconds_per_query'] * 1e3:.3g} ms"),
    ]
    if facts["smallest_accuracy"] is not None:
        rows.append(("smallest error in float64", f"{facts['smallest_accuracy']:.1e}"))
    return rows


def _proven(network: Facts) -> str:
    """The bound, and what it is made of."""
    if network["construction"] == "chebyshev":
        return (
            f"{network['proven']:.2e}: {network['n_terms']} terms {network['polynomial_error']:.2e}, on {network['n_cells']} cells, "
            f"squares {network['network_error']:.2e}"
        )
    digits = (
        ""
        if network["resolved"]
        else f"; {network['levels']} levels are more than float64 resolves, so in exact arithmetic"
    )
    return f"{network['proven']:.2e}{digits}"


def comparison_rows(facts: Facts) -> list[tuple[str, str]]:
    """Bounds, counts and networks side by side."""
    rows = []
    for row in facts["rows"]:
        error = "" if row["error"] is None else f", error {row['error']:.1e}"
        if row["kind"] == "refused":
            continue
        depth = "" if row["depth"] is None else f"L {row['depth']:,}, "
        rows.append((row["name"], f"{depth}M {row['n_weights']:.4g}{error}"))
    return rows


def saving_rows(facts: Facts) -> list[tuple[str, str]]:
    """What each idea saves."""
    return [
        (
            row["name"],
            f"{row['rows']} rows, kappa {row['kappa']:.4g}: L {row['depth']:,}, M {row['n_weights']:.3g}, "
            f"{row['levels']} levels{'' if row['representable'] else ' (beyond float64)'}; the paper's bound {row['bound_theorem']:.2g}",
        )
        for row in facts["savings"]
    ]


def growth_rows(facts: Facts) -> list[tuple[str, str]]:
    """The fitted exponents."""
    growth = facts["growth"]
    if growth is None:
        return []
    exponents = (("d", growth["exponent_of_modes"]), ("log(1/eps)", growth["exponent_of_log"]))
    fitted = {name: [f"M ~ {of}^{by[name]:.2f}" for of, by in exponents if by[name] is not None] for name in CURVES}
    return [(words, ", ".join(fitted[name])) for name, words in CURVES.items()]
