// Package core has the state machine of a guarded call, and what it shares with arriving requests: for authors of
// adapters and of other drivers. Programs use package abate.
package core
