"""A meter provider and what a scrape of it would get; import it after the exporter was found."""

from __future__ import annotations

from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry, generate_latest


class Scraped(MeterProvider):
    """A meter provider with a Prometheus registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        reader = PrometheusMetricReader(scope_info_enabled=False, registry=self.registry)
        super().__init__([reader], shutdown_on_exit=False)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def text(self) -> str:
        return generate_latest(self.registry).decode()
