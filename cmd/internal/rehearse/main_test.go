package rehearse

import (
	"os"
	"testing"

	"github.com/abate-go/abate/cmd/internal/clitest"
	"github.com/abate-go/abate/cmd/internal/viaproxy"
)

// everything is what abate-full has for drills without Kafka.
var everything = Clients{Via: viaproxy.Start}

func TestMain(m *testing.M) { os.Exit(clitest.Main(m)) }
