// Package tidy has no code, only tests that hold the rules of this repository:
// which folder may import which, where a clock may be read, how long a function
// may be. A rule that no test holds is a wish.
//
// Every rule is a function over a tree of files. One test runs it on the
// repository; another runs it on small trees that break it, because a rule that
// cannot fail holds nothing. To change a rule, change its table: layers in
// arrows_test.go, drivers and harmless in clock_test.go, the limits in size_test.go.
package tidy
