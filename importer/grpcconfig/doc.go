// Package grpcconfig reads gRPC service configs: JSON that says per method how often a call is tried and for how long,
// and the dialect of it that Google's generated clients read.
//
// What grpc-go accepts and does was measured; see tests/behaviour. A config with one mistake is refused as a whole, and
// then nothing is repeated.
package grpcconfig
