// Package postgres starts a real PostgreSQL for tests: of their own, on a free port of loopback, with nothing left
// behind.
package postgres
