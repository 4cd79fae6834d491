// Package tidy has no code, only tests that hold the rules of this repository:
// which folder may import which, what a decision may reach, how long a function may
// be. A rule that no test holds is a wish.
//
// Every rule is a function over a tree of files. One test runs it on the
// repository; another runs it on small trees that break it, because a rule that
// cannot fail holds nothing. To change a rule, change its table: layers in
// arrows_test.go, drivers and harmless in clock_test.go, the limits and what is still
// over them in size_test.go, what decisions may do although it reaches the world in
// pure_test.go.
//
// Packages that are too large to be read as one have rooms, in rooms_test.go: files that belong together, of which the
// lower know nothing of the upper.
//
// That decisions are pure is held twice. The rules in clock_test.go read the text of a
// file: they are quick to understand, and hold for every system. Those in pure_test.go
// type-check all programs and ask who calls whom, through any function of ours:
//
//   - A call of an interface's method is a call of that method of every type of ours
//     that implements the interface, except ports, which users implement.
//   - A function that is mentioned is called, by whoever got it. What is in a variable
//     is every function that an assignment, an argument, a result or a literal anywhere
//     may have put there; a field is one variable, whatever it is a field of.
//   - What is not ours does only what its package, or its name, is known for.
//
// Where that is too careful, a call can be put on a list, with its reason; an entry that
// nothing needs is an error. They do not see what is told by a variable that a driver
// writes and a decision reads.
package tidy
