"""Counts of what a server did, in the text form that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict

_EDGES = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)  # seconds


class Metrics:
    """Requests by route and status, their seconds by route, parameters answered; one thread counts.

    >>> metrics = Metrics()
    >>> metrics.count("/v1/predict", 200, 0.003)
    >>> metrics.parameters["/v1/predict"] += 10
    >>> print(metrics.text().splitlines()[2])
    parasol_requests_total{route="/v1/predict",status="200"} 1
    """

    def __init__(self):
        self.requests: Counter[tuple[str, int]] = Counter()
        self.parameters: Counter[str] = Counter()
        self._seconds: dict[str, float] = defaultdict(float)
        self._histogram: dict[str, list[int]] = defaultdict(lambda: [0] * (len(_EDGES) + 1))

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        self.requests[route, status] += 1
        self._seconds[route] += seconds
        self._histogram[route][bisect_left(_EDGES, seconds)] += 1

    def text(self) -> str:
        """All counts, one on each line."""
        lines = _head("parasol_requests_total", "counter", "Requests by route and status.")
        for (route, status), n in sorted(self.requests.items()):
            lines.append(f'parasol_requests_total{{route="{route}",status="{status}"}} {n}')
        lines += _head("parasol_request_seconds", "histogram", "Seconds from the request to the end of its answer.")
        for route, counts in sorted(self._histogram.items()):
            total = 0
            for edge, n in zip([*map(str, _EDGES), "+Inf"], counts, strict=True):
                total += n
                lines.append(f'parasol_request_seconds_bucket{{route="{route}",le="{edge}"}} {total}')
            lines.append(f'parasol_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.9g}')
            lines.append(f'parasol_request_seconds_count{{route="{route}"}} {total}')
        lines += _head("parasol_parameters_total", "counter", "Parameter vectors answered.")
        lines += [f'parasol_parameters_total{{route="{route}"}} {n}' for route, n in sorted(self.parameters.items())]
        return "\n".join([*lines, ""])


def _head(name: str, kind: str, words: str) -> list[str]:
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]
