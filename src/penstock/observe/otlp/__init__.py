"""Export of metrics, traces and logs by OTLP, with the SDK of OpenTelemetry.

`telemetry.py` connects the parts; the others convert metrics, batches and log events.
"""
