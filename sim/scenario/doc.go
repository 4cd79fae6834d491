// Package scenario is the file that a storm is rehearsed from: who calls whom, how fast they are, what goes wrong, and
// what should hold. Parse reads it strictly, in three steps: the shape of every value, then what no single value shows
// (calls in a circle, faults past the end, settings without effect), then, for a file without mistakes, its scale and
// the size of a run. Every mistake has its file:line:col and says what would be right; all of them are reported at
// once.
package scenario
