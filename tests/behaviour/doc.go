// Package behaviour proves that importers say what real programs do: each test makes configurations, has the importer
// read them, starts the real program with them in front of a backend that fails on command, and compares how often each
// request was tried, and for how long, with what the importer said.
//
// A product has one test file, which makes the configurations and starts the program. The rest is the same for all:
// [Case] is one request and what is expected of it, [Run] sends it and compares, package backend is what fails.
//
// Nothing in it depends on a quick machine. Tries are counted; limits of time are short only where the case is about
// them; durations are compared with a lower bound, which no slowness can break, and with a generous upper one.
package behaviour
