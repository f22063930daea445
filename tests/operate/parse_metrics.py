"""Reads OpenMetrics text from standard input with the parser of Prometheus' own client, which is strict, and prints each
sample with its value as JSON: {"name{label=\"value\"}": 1.0, …}."""

import json
import sys

from prometheus_client.openmetrics.parser import text_string_to_metric_families

samples = {}
for family in text_string_to_metric_families(sys.stdin.read()):
    for sample in family.samples:
        labels = ",".join(f'{name}="{value}"' for name, value in sorted(sample.labels.items()))
        key = f"{sample.name}{{{labels}}}" if labels else sample.name
        assert key not in samples, f"{key} is there twice"
        samples[key] = sample.value
json.dump(samples, sys.stdout)
