//go:build race

package abateadmin_test

const raceDetector = true
