// Package harm judges policies on random systems: does a policy that nobody tuned leave users worse off than no policy
// at all?
//
// Every [System] has a number, from which all about it follows: who calls whom, how fast, with what patience, and what
// goes wrong on that day, or that nothing does. It is written as a scenario file, and the judge runs that file, so that
// "abate sim" runs the same. Every [Policy] meets the same arrivals, service times and faults.
//
// Harm is the number of requests that were not answered in time: before, during and after the trouble. Users without
// patience are answered in time if they are answered before the run ends. The ratio of a policy is its harm divided by
// that without any policy, where both are raised by 3 requests or 0.05 % of all, whichever is more: a handful of
// requests is no scandal.
//
// Systems come in blocks of 20, one of each [Kind]. Even blocks are for tuning a policy, odd ones for judging it: a
// policy that is good where it was tuned only is not good.
//
// # What is not drawn
//
// The engine does not know these, and no system has them: deadlines that a service passes on beyond its first call
// (cancellation is passed on at any depth), partial hangs of single connections, bodies that clients send or read
// slowly, endpoints that a balancer takes out, and users who come back because they were not answered. A run has about
// 60,000 visits to services, so that what happens for ten minutes happens where there are few requests.
package harm
