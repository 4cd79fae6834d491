// Package collectortest tests abateotel end to end: with the real abatehttp.Transport between its two spans, and with
// the SDK's exporters sending to a real OTLP receiver over gRPC. It is a module of its own, so that importing abateotel
// moves nobody's version of gRPC.
package collectortest
