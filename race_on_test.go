//go:build race

package abate_test

const raceDetector = true
