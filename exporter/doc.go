// Package exporter writes the policy of a service in the formats of other programs: Envoy, Istio, Gateway API, Linkerd,
// gRPC service config, Spring (resilience4j), nginx and HAProxy.
//
// What a format cannot say is not said, and the loss report says so. The report is not kept beside the writers: what
// was written is read again by the importer of the format, and [Compare] says what came back the same, what came back
// otherwise, and what did not come back.
package exporter
