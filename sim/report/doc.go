// Package report turns what came of a study ([sim.Result]) into one HTML file for people: a verdict that can be read in
// one look, the storm of each variant chart by chart, and everything that was put in. The file holds its own drawings,
// styles and script, asks the network for nothing, is complete without scripts, follows the reader's light or dark
// setting, and prints. The same result gives the same bytes.
//
// Every curve is drawn once and serves twice: its coordinates are the values, in steps of 1/[resolution] of its axis,
// and the script reads them back from the drawing for the cursor. That is what keeps the file small.
package report
