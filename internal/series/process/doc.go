// Package process shows what the Go runtime and the kernel know of this process, under the names that the client
// library of Prometheus has given to it: go_ and process_.
package process
