package sharing_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/abate-go/abate/proxy"
	"github.com/abate-go/abate/proxy/sharing"
)

const file = `services: {payments: {maxRetries: 1}}
redis: {embedded: true}
`

func opened(t *testing.T, c proxy.Config) error {
	t.Helper()
	c.Policy, c.Log = filepath.Join(t.TempDir(), "policy.yaml"), slog.New(slog.DiscardHandler)
	if err := os.WriteFile(c.Policy, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := proxy.New(c)
	if err == nil {
		t.Cleanup(func() { _ = p.Shutdown(t.Context()) }) // it has no clients
	}
	return err
}

func TestAFileWithARedisIsRefusedWithoutAClientForIt(t *testing.T) {
	if err := opened(t, proxy.Config{}); !errors.Is(err, proxy.ErrNoRedis) || !strings.HasPrefix(err.Error(), "redis: ") {
		t.Errorf("error is %v, want %v after redis:", err, proxy.ErrNoRedis)
	}
}

func TestAnEmbeddedRedisIsRefusedWithoutOneToEmbed(t *testing.T) {
	if err := opened(t, proxy.Config{Sharing: sharing.Redis(nil)}); !errors.Is(err, proxy.ErrNoEmbeddedRedis) {
		t.Errorf("error is %v, want %v", err, proxy.ErrNoEmbeddedRedis)
	}
}

func TestAnEmbeddedRedisThatDoesNotStartIsAnError(t *testing.T) {
	broken := errors.New("no port is free")
	start := func() (string, func(), error) { return "", nil, broken }
	if err := opened(t, proxy.Config{Sharing: sharing.Redis(start)}); !errors.Is(err, broken) {
		t.Errorf("error is %v, want %v", err, broken)
	}
}
