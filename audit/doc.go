// Package audit finds what the retries that a team already has do in an outage: it reads files, joins what they say
// into one graph of calls, judges it by the rules of package lint, plays the outage in the simulator, and writes what
// came out for people and for pipelines.
package audit
