// Package outages compares pools under abate.ConnectionPolicy with the same pools without us, on a real PostgreSQL and
// a real Redis, side by side in the same run: what a client loses while its server restarts, takes no writes, or is as
// well as ever, and how often it knocks meanwhile. make storms runs it.
package outages
