package page

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/abate-go/abate/adapter/abatekafka/dlq"
)

// Config says what is shown, and to whom.
type Config struct {
	// Desk is the dead-letter topic. It stays the caller's: close it after the Page.
	Desk *dlq.Desk
	// Hosts are names under which the page may be asked for, without port, besides localhost and the addresses of
	// loopback. "*" allows every name, for pages that Authenticate protects.
	Hosts []string
	// Authenticate reports who asks, for the audit. Nil lets everybody in, and the audit names the Desk's own user.
	Authenticate func(*http.Request) (name string, ok bool)
	// HideValues shows no keys, values and header values, and refuses expressions about them.
	HideValues bool
	// Replay has the settings that a replay gets besides what its form says: Guard, Watch. Other fields are ignored.
	Replay dlq.Replay
	// Logger gets what went wrong and what replays did. nil means slog.Default().
	Logger *slog.Logger
}

// maxScans is how many requests read the topic at a time.
const maxScans = 4

// Page is the handler. It is safe for concurrent use.
type Page struct {
	config Config
	mux    *http.ServeMux
	cross  *http.CrossOriginProtection
	scans  chan struct{}
	job    job
}

// New makes the page. It fails if there is no desk, or if everybody could reach it by any name.
func New(c Config) (*Page, error) {
	if c.Desk == nil {
		return nil, errors.New("page: Desk is nil: open one with dlq.Open")
	}
	for _, host := range c.Hosts {
		if host == "*" && c.Authenticate == nil {
			return nil, errors.New(`page: Hosts has "*" and Authenticate is nil: every web site that somebody opens could use ` +
				`the page; name the hosts, or ask for a token`)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	p := &Page{config: c, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(),
		scans: make(chan struct{}, maxScans)}
	p.job.ctx, p.job.stop = context.WithCancel(context.Background())
	p.routes()
	return p, nil
}

func (p *Page) routes() {
	p.mux.HandleFunc("GET /{$}", serveHTML)
	for pattern, handle := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /api/desk": p.desk, "GET /api/groups": p.groups, "GET /api/letters": p.letters,
		"GET /api/letters/{partition}/{offset}":       p.letter,
		"GET /api/letters/{partition}/{offset}/value": p.value, "GET /api/export": p.export, "GET /api/replay": p.replays,
		"GET /api/actions":      p.actions,
		"POST /api/replay/plan": p.plan, "POST /api/replay": p.replay, "POST /api/replay/cancel": p.cancel,
		"POST /api/delete": p.delete, "POST /api/restore": p.restore, "POST /api/note": p.note,
	} {
		p.mux.Handle(pattern, p.answering(handle))
	}
	p.mux.Handle("/api/", p.answering(func(http.ResponseWriter, *http.Request) error {
		return refuse(http.StatusNotFound, "there is no such request: the package comment of dlq/page lists all")
	}))
}

// ServeHTTP answers one request.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	secure(w.Header())
	if err := p.admit(r); err != nil {
		p.fail(w, r, err)
		return
	}
	p.mux.ServeHTTP(w, r)
}

// Close cancels a replay that runs here, and returns when it has ended. The replay can be resumed. Later replays are
// refused.
func (p *Page) Close() { p.job.close() }

// Progress is the replay that runs here or ran last, false if there was none.
func (p *Page) Progress() (dlq.Progress, bool) {
	progress, _, _, ok := p.job.read()
	return progress, ok
}

// answering makes a handler of a function that may fail.
func (p *Page) answering(handle func(http.ResponseWriter, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r, err := p.known(r)
		if err == nil {
			err = handle(w, r)
		}
		if err != nil {
			p.fail(w, r, err)
		}
	})
}

// scan waits for a place among those that read the topic.
func (p *Page) scan(ctx context.Context) (done func(), err error) {
	select {
	case p.scans <- struct{}{}:
		return func() { <-p.scans }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// problem is an answer that says no.
type problem struct {
	status int
	text   string
}

// Error says why.
func (p *problem) Error() string { return p.text }

func refuse(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

// fail says what went wrong. What is not the asker's fault is logged.
func (p *Page) fail(w http.ResponseWriter, r *http.Request, err error) {
	var no *problem
	if !errors.As(err, &no) {
		if r.Context().Err() != nil {
			return // nobody listens any more
		}
		p.config.Logger.Error("dlq page: "+r.Method+" "+r.URL.Path, "error", err)
		no = &problem{http.StatusBadGateway, strings.TrimPrefix(err.Error(), "dlq: ")}
	}
	if no.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, no.status, map[string]string{"error": no.text})
}
