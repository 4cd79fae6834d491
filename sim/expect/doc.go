// Package expect is the language in which a scenario says what should hold, and the statistics that decide whether it
// does. An expectation is one line of text:
//
//	recovery < 10s in 99% of runs
//	goodput(after) > 95%
//	collapse < 1%
//	latency(p99, after) < 800ms
//	attempts(payment-db, during) < 11,000/s
//
// It reads: measure, in brackets what it is about, a comparison (< <= > >=), a value, and in how many of the runs it
// must hold (90% when the text does not say). [Measures] lists what can be measured.
//
// A simulator runs many runs, asks each expectation of each run ([Expectation.Holds]), and judges the count
// ([Expectation.Judge]): PASS only when the whole 95% interval of the share of runs is on the right side, FAIL only
// when it is wholly on the other side, UNDECIDED between. Everything here is a pure function; values may be shared by
// goroutines that do not change them.
package expect
