package sidecar

import (
	"os"
	"testing"

	"github.com/abate-go/abate/adapter/abateredis/trial"
	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/proxy/sharing"
)

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }

// everything is what abate-full has.
var everything = Clients{Sharing: sharing.Redis(trial.Start)}
