//go:build race

package abatehttp_test

const raceDetector = true
