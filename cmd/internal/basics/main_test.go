package basics

import (
	"maps"
	"os"
	"testing"

	"github.com/abate-go/abate/cmd/internal/address"
	"github.com/abate-go/abate/cmd/internal/clients"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/cmd/internal/kafkatools"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

// everything is what abate-full has.
var everything = Clients{Probers: allProbers()}

func allProbers() map[string]address.Prober {
	all := clients.Probers()
	maps.Copy(all, kafkatools.Probers())
	return all
}

// built is the path of the slim binary, built as a user builds it.
func built(t *testing.T) string {
	t.Helper()
	return clitest.Built(t, "abate-proxy")
}
