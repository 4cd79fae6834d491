// Package validation holds the simulator against numbers that others published, or that follow from theorems and plain
// arithmetic: queues, retries, backoff, budgets, breakers, and storms of real systems.
//
// A row is one number, where it comes from, and what the simulator makes of it. Wherever the full model can express a
// row, it runs in the full model: a scenario file, [github.com/abate-go/abate/sim/engine], and the guards of
// production. Very large populations are run by [github.com/abate-go/abate/sim/population].
//
// # How a row is judged
//
// Nothing is compared by a percentage that somebody chose. With R runs on independent seeds, mean m and standard
// deviation s, a value fits if it is within 4·s/√R of m: a right model fails such a row once in about 16,000 times.
// Where the published number is itself the mean of runs, its own standard error is added in squares. Where it was given
// with a ±, or rounded to few digits, that much is allowed on top. Probabilities are judged by Wilson's interval with
// the same four deviations, and arithmetic must come out exactly in every run.
//
// # What is not here
//
// Erlang's A formula, in which callers lose patience after exponential times: an attempt timeout is a constant.
// Constant patience is here instead (M/M/c+D). Breakers that compare all calls of a client's life: no policy of ours
// does that. Decorrelated jitter where its cap matters: ours is drawn below the cap, by design. The
// table lists, with both numbers, what was tried and does not match.
//
// Three things are set here and not by a source. The two capacities of the garbage collector are read off the published
// plot, so only the shape that follows from them is compared. Adaptive budgets and hedges follow formulas of their own
// row. Storms are run at a fraction of their rate, which makes chance larger: next to a cliff some rates are too
// small, and those rows have the scale of their source, 1:50.
package validation
