"""
Domains of every kind
=====================

Domains of every kind answer the same questions, and nodes follow them.
"""

import numpy as np

import parasol as ps

domains = {
    "box": ps.Box((0, 0), (2, 1)),
    "disc": ps.Disc((0, 0), 1.0),
    "star": ps.Star("1 + 0.3*cos(5*theta)"),
    "polygon": ps.Polygon([(0, 0), (2, 0), (2, 1), (1, 1), (1, 2), (0, 2)]),
    "curve": ps.Curve([(1, 0), (0.6, 0.9), (-0.8, 0.5), (-0.7, -0.6), (0.3, -0.8)]),
    "implicit": ps.Implicit("x**4 + y**4 - 1", bounds=((-1.2, -1.2), (1.2, 1.2))),
    "with a hole": ps.Box((-1, -1), (1, 1)) - ps.Disc((0.2, 0.1), 0.4).named("hole"),
    "ball with a bite": ps.Ball((0, 0, 0), 1.0) - ps.Ball((1, 0, 0), 0.6),
}
for name, domain in domains.items():
    nodes = ps.scatter(domain, n_nodes=800)
    q = ps.space.quality(nodes)
    depth = -domain.distance(nodes.interior)
    print(
        f"{name:18} {nodes.n_interior:4} + {nodes.n_boundary:4} nodes, separation {q.separation:.2f} h, holes {q.fill_distance:.2f} h"
    )
    assert nodes.n_nodes == 800
    assert np.all(depth > 0)
    assert np.allclose(domain.distance(nodes.boundary), 0, atol=1e-9)
