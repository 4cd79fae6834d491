//go:build race

package abateotel_test

const raceDetector = true
