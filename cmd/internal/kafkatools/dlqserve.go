package kafkatools

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
	"github.com/abate-go/abate/adapter/abatekafka/dlq/page"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/internal/metrics"
	"github.com/abate-go/abate/internal/series"
	"github.com/abate-go/abate/proxy/identity"
)

const serveUsage = `Usage: abate dlq serve [FLAGS]

Serves the dead letters as a page for the browser: groups, dead letters with their headers and
traces, replays with their progress, deleting and restoring, notes, the audit; and all that as JSON.
A replay goes on when the page is closed. When this program ends, its replay is cancelled and can be
resumed.

  --listen ADDR       where (default 127.0.0.1:15010). An address that other machines can reach
                      needs --token-file
  --token-file FILE   the page asks for a token of this file, which has a name and a token on each
                      line; the audit records the name. It is read again when it changes
  --serve-cert FILE, --serve-key FILE   serve with TLS
  --host NAMES        host names of the page, separated by commas, if a proxy of your own passes
                      them on; without tokens other names are refused
  --hide-values       show no keys, values and header values, and refuse conditions about them

/metrics is for Prometheus, /healthz for health checks; neither needs a token.

  abate dlq serve --brokers kafka-1:9092 --topic payments-dlq
`

// dlqServe is "abate dlq serve".
func dlqServe(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	s := &dlqServer{}
	a := dlqAction{name: "serve", usage: serveUsage, define: func(_ *dlqFlags, set *flag.FlagSet) { s.define(set) },
		run: func(ctx context.Context, _ *dlqFlags, d *dlq.Desk, stdout, stderr io.Writer) int {
			return s.run(ctx, d, stdout, stderr)
		}}
	if _, err := parseDLQ(&a, args); err == nil { // before anybody connects
		if err := s.check(); err != nil {
			return serveProblem(stderr, err)
		}
	}
	return a.command(ctx, args, stdout, stderr)
}

// serveProblem prints errors and returns the exit code for them.
func serveProblem(stderr io.Writer, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(stderr, "abate dlq serve: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return 2
}

// dlqServer is what the words of "abate dlq serve" say besides those about the brokers.
type dlqServer struct {
	listen, tokens, certificate, key, hosts string
	hideValues                              bool
}

func (s *dlqServer) define(set *flag.FlagSet) {
	set.StringVar(&s.listen, "listen", "127.0.0.1:15010", "")
	set.StringVar(&s.tokens, "token-file", "", "")
	set.StringVar(&s.certificate, "serve-cert", "", "")
	set.StringVar(&s.key, "serve-key", "", "")
	set.StringVar(&s.hosts, "host", "", "")
	set.BoolVar(&s.hideValues, "hide-values", false, "")
}

// check finds everything that is wrong.
func (s *dlqServer) check() error {
	var wrong []error
	if !cli.IsAddress(s.listen) {
		wrong = append(
			wrong, fmt.Errorf("--listen %q is not an address: write host:port, for example 127.0.0.1:15010", s.listen))
	} else if s.tokens == "" && !s.onLoopback() {
		wrong = append(
			wrong, fmt.Errorf("--listen %s can be reached from other machines: everybody there could read and replay dead "+
				"letters; add --token-file, or listen on 127.0.0.1", s.listen))
	}
	if (s.certificate == "") != (s.key == "") {
		wrong = append(wrong, errors.New("--serve-cert and --serve-key need each other"))
	}
	return errors.Join(wrong...)
}

func (s *dlqServer) onLoopback() bool {
	host, _, _ := net.SplitHostPort(s.listen)
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}

// run serves a desk until ctx is done. A replay that runs then is cancelled; it can be resumed.
func (s *dlqServer) run(ctx context.Context, desk *dlq.Desk, stdout, stderr io.Writer) int {
	config := page.Config{
		Desk: desk, HideValues: s.hideValues, Hosts: s.names(), Logger: slog.New(slog.NewTextHandler(stderr, nil)),
	}
	if s.tokens != "" {
		known := &tokenFile{path: s.tokens}
		if err := known.read(); err != nil {
			return serveProblem(stderr, err)
		}
		config.Authenticate = known.caller
	}
	p, err := page.New(config)
	if err != nil {
		return serveProblem(stderr, err)
	}
	defer p.Close()
	l, err := s.open()
	if err != nil {
		return serveProblem(stderr, err)
	}
	server := &http.Server{Handler: dlqPages(p, desk.Topic()), ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(config.Logger.Handler(), slog.LevelWarn)}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	fmt.Fprintf(stdout, "abate dlq: %s on %s://%s\n", desk.Topic(), s.scheme(), l.Addr())
	select {
	case err := <-served:
		return serveProblem(stderr, err)
	case <-ctx.Done():
	}
	p.Close() // first: what asks for the replay's end gets an answer still
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if server.Shutdown(limited) != nil {
		server.Close() // an export that somebody does not take
	}
	return 0
}

func (s *dlqServer) open() (net.Listener, error) {
	var config *tls.Config
	if s.certificate != "" {
		pair, err := tls.LoadX509KeyPair(s.certificate, s.key)
		if err != nil {
			return nil, fmt.Errorf("--serve-cert %s and --serve-key %s: %w", s.certificate, s.key, err)
		}
		config = &tls.Config{
			Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		}
	}
	l, err := net.Listen("tcp", s.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %s", s.listen, cli.ListenProblem(err))
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return l, nil
}

func (s *dlqServer) scheme() string {
	if s.certificate != "" {
		return "https"
	}
	return "http"
}

// names are those that the page may be asked for by. Where everybody needs a token, which no other site has, the name
// reveals nothing.
func (s *dlqServer) names() []string {
	if s.tokens != "" {
		return []string{"*"}
	}
	return strings.FieldsFunc(s.hosts, func(c rune) bool { return c == ',' || c == ' ' })
}

// dlqPages adds what machines look at: /healthz and /metrics, which have no letters.
func dlqPages(p *page.Page, topic string) http.Handler {
	counts, registry := metrics.New(), new(series.Registry)
	counts.WatchReplay(topic, func() metrics.Replay {
		at, there := p.Progress()
		return metrics.Replay{Running: there && !at.Phase.Ended(), Chosen: at.Chosen, Sent: at.Sent, Failed: at.Failed,
			Skipped: at.Skipped, Back: at.Back, Batch: at.Batch,
			Handled: at.Handled, Waiting: at.Waiting, ETASeconds: at.ETASeconds}
	})
	_ = registry.Register(counts) // the registry is empty: it cannot fail
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("GET /metrics", series.Handler(registry))
	mux.Handle("/", p)
	return mux
}

// tokenFile are the tokens of a file, read again when it changes. What was good last stays while it is not.
type tokenFile struct {
	path string

	mu     sync.Mutex
	looked time.Time
	seen   os.FileInfo
	tokens *identity.Tokens
}

// read reads the file if it has changed. mu is held, or nobody else is there yet.
func (f *tokenFile) read() error {
	now, err := os.Stat(f.path)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	if f.seen != nil && os.SameFile(f.seen, now) && f.seen.ModTime().Equal(now.ModTime()) && f.seen.Size() == now.Size() {
		return nil
	}
	body, err := os.ReadFile(f.path)
	if err != nil {
		return fmt.Errorf("--token-file: %w", err)
	}
	tokens, err := identity.ParseTokens(f.path, body)
	if err != nil {
		return err
	}
	f.seen, f.tokens = now, tokens
	return nil
}

func (f *tokenFile) caller(r *http.Request) (name string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) > time.Second {
		f.looked = now
		if err := f.read(); err != nil {
			slog.Warn("the tokens stay as they were", "error", err)
		}
	}
	return f.tokens.Caller([]byte(r.Header.Get("Authorization")))
}
