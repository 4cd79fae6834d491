// Package redis starts a real Redis for tests: of their own, on a free port of loopback, with nothing left behind.
package redis
