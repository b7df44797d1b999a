"""Counts of what a server did, in the text form that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

_EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


@dataclass(frozen=True, eq=False)
class Metrics:
    """Requests by route and status, their seconds by route, parameters answered; one thread counts.

    >>> metrics = Metrics()
    >>> metrics.count("/v1/predict", 200, 0.003)
    >>> metrics.answered("/v1/predict", 10)
    >>> print(metrics.text().splitlines()[2])
    parasol_requests_total{route="/v1/predict",status="200"} 1
    """

    requests: Counter[tuple[str, int]] = field(default_factory=Counter)
    seconds: dict[str, list[int]] = field(default_factory=dict)  # by route: how many fell between two edges
    totals: Counter[str] = field(default_factory=Counter)  # seconds by route
    parameters: Counter[str] = field(default_factory=Counter)

    def count(self, route: str, status: int, seconds: float) -> None:
        """Note one request."""
        self.requests[route, status] += 1
        self.seconds.setdefault(route, [0] * (len(_EDGES) + 1))[bisect_left(_EDGES, seconds)] += 1
        self.totals[route] += seconds  # type: ignore[assignment]

    def answered(self, route: str, n_parameters: int) -> None:
        """Note how many parameters a request had answered."""
        self.parameters[route] += n_parameters

    def text(self) -> str:
        """All counts, one per line."""
        lines = _head("parasol_requests_total", "counter", "Requests by route and status.")
        for (route, status), n in sorted(self.requests.items()):
            lines.append(f'parasol_requests_total{{route="{route}",status="{status}"}} {n}')
        lines += _head("parasol_request_seconds", "histogram", "Seconds from the request to the end of its answer.")
        for route, counts in sorted(self.seconds.items()):
            so_far = 0
            for edge, n in zip([*map(str, _EDGES), "+Inf"], counts, strict=True):
                so_far += n
                lines.append(f'parasol_request_seconds_bucket{{route="{route}",le="{edge}"}} {so_far}')
            lines.append(f'parasol_request_seconds_sum{{route="{route}"}} {self.totals[route]:.9g}')
            lines.append(f'parasol_request_seconds_count{{route="{route}"}} {so_far}')
        lines += _head("parasol_parameters_total", "counter", "Parameter vectors answered.")
        lines += [f'parasol_parameters_total{{route="{route}"}} {n}' for route, n in sorted(self.parameters.items())]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
