//go:build unix

package pods_test

import (
	"os"
	"testing"
)

// TestMain runs a pod instead of the tests where the fleet asks for one.
func TestMain(m *testing.M) {
	if text := os.Getenv(podOrder); text != "" {
		servePod(text)
		return
	}
	os.Exit(m.Run())
}
