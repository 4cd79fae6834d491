// Package comeback decides when refused callers are asked to come again.
//
// Why: callers that are given the same time come back at the same time. A service that can do 200 requests a second and
// answers 2,000 callers "in two seconds" has made its own next overload. A little jitter does not help: Retry-After
// counts in whole seconds.
//
// A [Line] lets them come one after the other, at the pace at which they can be taken: the first as soon as there is a
// place, each further one a moment later. So few wait no longer than they must, and many come at the rate that the
// service can do. Nobody is asked to stay away for longer than a bound: when the line is longer than that, those who
// find no place in it are given a random time within the bound, which is the least crowded that they can come in.
//
// [Lines] are the same for each of many keys.
//
// Who does not come back has had a place for nothing: those behind it wait a moment longer than they would have to. A
// caller that is asked to wait and asks again at once is given another, later place each time; the bound is what
// protects it from itself.
//
// A Booking costs one compare-and-swap, or for a key a lock that 1/64 of them share. Nothing is allocated. Lines take 9
// KB.
package comeback
