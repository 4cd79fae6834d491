// Package postgrestest has no code, only tests of abatesql against a real PostgreSQL that they start themselves, and
// with it a driver that the library's own module should not depend on.
package postgrestest
