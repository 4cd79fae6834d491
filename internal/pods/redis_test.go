//go:build unix

package pods_test

import (
	"context"
	"io"
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatenet"
	"github.com/abate-go/abate/internal/needs"
)

// openRedis is a pod's pool of connections to Redis.
func openRedis(o order, seen *tally) (query, error) {
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		seen.dialled()
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			seen.refused(err)
		}
		return conn, err
	}
	options := &redis.Options{Addr: o.Address, PoolSize: pool, Protocol: 2, DisableIdentity: true, Dialer: dial}
	if o.Guarded {
		guard, err := abate.New("redis", abate.ConnectionPolicy())
		if err != nil {
			return nil, err
		}
		options.Dialer = (&abatenet.Dialer{Guard: guard, Dial: dial}).DialContext
		options.MaxRetries, options.DialerRetries = -1, 1 // the guard decides what is tried again
	}
	redis.SetLogger(silence{})
	client := redis.NewClient(options)
	return func(ctx context.Context) error { return client.Get(ctx, "greeting").Err() }, nil
}

// silence is a logger: that connections cannot be opened is what is counted here.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// startRedis starts a Redis that keeps nothing.
func startRedis(t testing.TB) *process {
	t.Helper()
	program, folder := needs.Program(t, "redis-server"), t.TempDir()
	p := newProcess(t, syscall.SIGKILL)
	p.command = func() *exec.Cmd {
		cmd := exec.Command(program, "--port", strconv.Itoa(p.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder)
		cmd.SysProcAttr = diesWithUs()
		return cmd
	}
	p.up = func() bool {
		conn, err := net.Dial("tcp", p.address())
		if err != nil {
			return false
		}
		defer conn.Close()
		if _, err = io.WriteString(conn, "SET greeting hello\r\n"); err == nil {
			_, err = io.ReadFull(conn, make([]byte, len("+OK\r\n")))
		}
		return err == nil
	}
	p.start()
	return p
}

func TestPodsComeBackGentlyToRedis(t *testing.T) {
	s := startRedis(t)
	thePlan(t).compare(t, s, order{Kind: "redis", Address: s.address()})
}
