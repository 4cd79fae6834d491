// Package traces reads spans, as OTLP, Jaeger and Zipkin write them in JSON, and yields the calls that were really
// made: who calls whom, how often for each request, one after the other or at once, how long a service works itself,
// and retries that no file shows.
//
//   - A call is a client span; its callee is the service of the server span below it, or what its attributes name.
//   - A repeated try is a client span with http.request.resend_count, or one of several spans of one parent with the
//
// same
//
//	  callee and name, of which an earlier one failed and ended before the next began.
//	- Calls for each request are client spans without repeats, divided by the server spans of the caller.
package traces
