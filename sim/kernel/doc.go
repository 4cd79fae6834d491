// Package kernel is what every simulated model stands on: the queue of coming
// events and the streams of random numbers. It knows no model. Time is virtual,
// in nanoseconds since the start of a run, and nothing here depends on the
// machine: the same pushes and the same seed give the same bits everywhere.
package kernel
