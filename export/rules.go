// Package export writes what other programs need of a policy file.
package export
