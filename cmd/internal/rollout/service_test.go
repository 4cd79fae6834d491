//go:build unix

package rollout_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/abate-go/abate/internal/loopback"
)

// journalOf is the variable that makes the test binary a service. Its value is the file in which it writes down each
// POST that it has done.
const journalOf = "ABATE_ROLLOUT_JOURNAL"

const (
	pieces = 25                    // of a stream
	pause  = 20 * time.Millisecond // between two of them
)

// serve is the life of a service, which ends as services do: on SIGTERM it takes no new requests, and finishes those
// that it has.
func serve(journal string) int {
	file, err := os.OpenFile(journal, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		panic(err)
	}
	l, err := loopback.Listen()
	if err != nil {
		panic(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var running sync.WaitGroup
	s := &http.Server{Protocols: new(http.Protocols), ReadHeaderTimeout: time.Minute}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		running.Add(1)
		defer running.Done()
		answer(w, r, file)
	})
	fmt.Printf("listening on %s\n", l.Addr())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err := <-ended:
		panic(err)
	case <-ctx.Done():
	}
	if err := s.Shutdown(context.Background()); err != nil {
		panic(err)
	}
	running.Wait() // Shutdown knows little of HTTP/2 without TLS
	return 0
}

// answer says what the request said, at once, or, of a stream, piece after piece.
func answer(w http.ResponseWriter, r *http.Request, journal io.Writer) {
	rpc := r.Header.Get("Content-Type") == "application/grpc"
	if rpc {
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status")
	}
	switch r.URL.Path {
	case "/rollout/Stream":
		flow := http.NewResponseController(w)
		_ = flow.EnableFullDuplex() // HTTP/2 always is
		if _, err := io.Copy(&flusher{w, flow}, r.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	case "/long":
		flow := http.NewResponseController(w)
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for i := range pieces {
			fmt.Fprintln(w, i)
			if flow.Flush() != nil {
				return
			}
			<-tick.C
		}
	default:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPost {
			if _, err := journal.Write([]byte(r.Header.Get("X-Id") + "\n")); err != nil {
				panic(err)
			}
		}
		_, _ = w.Write(body) // the client counts what it gets
	}
	if rpc {
		w.Header().Set("Grpc-Status", "0")
	}
}

// flusher passes on at once what is written.
type flusher struct {
	w    io.Writer
	flow *http.ResponseController
}

func (f *flusher) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if err == nil {
		err = f.flow.Flush()
	}
	return n, err
}
