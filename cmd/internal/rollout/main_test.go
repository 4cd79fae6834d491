//go:build unix

package rollout_test

import (
	"os"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

// TestMain runs a service instead of the tests where a pod asks for one.
func TestMain(m *testing.M) {
	if journal := os.Getenv(journalOf); journal != "" {
		os.Exit(serve(journal))
	}
	os.Exit(clitest.Main(m))
}
