// Package tracing makes the spans of a proxy and sends them to a collector: W3C Trace Context (context.go), the
// decision whether a call is recorded (sampler.go), a span and its attributes (span.go), OTLP in both of its forms
// (protobuf.go, json.go), the bounded queue with its sender (tracer.go, sender.go), and what configures it
// (settings.go, and environment.go for the OTEL_... variables).
//
// It is no OpenTelemetry SDK: one kind of signal, one exporter, nothing that plugs in. The SDK with its exporter would
// make the proxy's slim binary a third larger. What goes out is OTLP all the same: tests read it with the protocol's
// own package.
//
// Nothing here makes a request wait. A span that finds the queue full is dropped and counted, and a collector that does
// not answer is asked ever more seldom: telemetry must not make a storm of its own.
package tracing
