// Package lint judges a form of package topology: how many attempts one request can become, and what is wrong with the
// retries, limits and breakers that its layers set.
//
// Amplification is the bound over the graph of calls. Run is all rules; the table of them is in Rules, and each has a
// page under docs/lint.
//
// Two numbers are kept apart everywhere. What is proved follows from what the files say: a value that nobody knows
// counts as the least that it can be. The worst case takes every such value as the worst that it can be, so nothing can
// exceed it. Where all is known, they are the same.
//
// The package only computes: it reads no file, no clock and no network.
package lint
