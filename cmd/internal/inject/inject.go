package inject

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
	"time"

	"github.com/abate-go/abate/cmd/internal/cli"
)

const usage = `Usage: abate-proxy inject --template FILE --tls-cert FILE --tls-key FILE [--listen ADDRESS]

A webhook of Kubernetes that puts Abate as a sidecar into pods that are created. The Helm chart in deploy/helm installs
it, and writes the template. It answers POST /inject and GET /healthz over TLS. A pod that has Abate already, or into
which it cannot be put, starts as it is, the latter with a warning that kubectl shows.

  --template FILE   what to put in, in JSON; read anew for each pod
  --tls-cert FILE   the certificate to show, in PEM; it and its key are read anew for each connection
  --tls-key FILE    its key
  --listen ADDRESS  where to listen (default :8443)
  -h, --help        print this

Exit code: 0 ended by a signal, 1 it cannot serve, 2 wrong usage.
`

// most is the size of the largest review that is read: more than the API server sends.
const most = 8 << 20

// webhook is what the command is told.
type webhook struct {
	listen, template, certificate, key string
	log                                *slog.Logger
}

// Command is "abate-proxy inject".
func Command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	w := &webhook{log: slog.New(slog.NewTextHandler(stderr, nil))}
	flags := flag.NewFlagSet("inject", flag.ContinueOnError)
	flags.StringVar(&w.listen, "listen", ":8443", "")
	flags.StringVar(&w.template, "template", "", "")
	flags.StringVar(&w.certificate, "tls-cert", "", "")
	flags.StringVar(&w.key, "tls-key", "", "")
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	words, err := cli.ReadFlags(flags, args, wrong)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(stdout, usage)
		return 0
	}
	w.check(words, wrong)
	if len(problems) > 0 {
		for _, p := range problems {
			fmt.Fprintf(stderr, "abate-proxy inject: %s\n", p)
		}
		fmt.Fprint(stderr, "\n"+usage)
		return 2
	}
	if err := w.serve(ctx, stdout); err != nil {
		for _, err := range cli.Each(err) {
			fmt.Fprintf(stderr, "abate-proxy inject: %v\n", err)
		}
		return 1
	}
	return 0
}

func (w *webhook) check(words []string, wrong func(format string, args ...any)) {
	if len(words) > 0 {
		wrong("%q is not expected: the files are given with --template, --tls-cert and --tls-key", words[0])
	}
	for _, f := range []struct{ name, value string }{
		{"--template", w.template}, {"--tls-cert", w.certificate}, {"--tls-key", w.key},
	} {
		if f.value == "" {
			wrong("%s is missing: write the path of a file", f.name)
		}
	}
	if !cli.IsAddress(w.listen) {
		wrong("--listen %q is not an address: write host:port, for example :8443", w.listen)
	}
}

// serve answers until ctx ends.
func (w *webhook) serve(ctx context.Context, stdout io.Writer) error {
	_, templateErr := w.read()
	_, secretErr := w.secret(nil)
	l, listenErr := net.Listen("tcp", w.listen)
	if err := errors.Join(templateErr, secretErr, listenErr); err != nil {
		if listenErr == nil {
			l.Close()
		}
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /inject", w.inject)
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(rw, "ok\n") })
	s := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second,
		ErrorLog: slog.NewLogLogger(w.log.Handler(), slog.LevelWarn)}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ending)
	})
	defer stop()
	fmt.Fprintf(stdout, "abate-proxy inject: listening on https://%s/inject\n", l.Addr())
	err := s.Serve(tls.NewListener(l, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: w.secret}))
	if errors.Is(err, http.ErrServerClosed) {
		<-ended // the answers under way
		return nil
	}
	return err
}

// read reads the template.
func (w *webhook) read() (*Template, error) {
	text, err := os.ReadFile(w.template)
	if err != nil {
		return nil, fmt.Errorf("--template: %w", err)
	}
	t, err := ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("--template: %s %w", w.template, err)
	}
	return t, nil
}

// secret reads the certificate.
func (w *webhook) secret(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(w.certificate, w.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert %s, --tls-key %s: %w", w.certificate, w.key, err)
	}
	return &c, nil
}

// inject answers one review.
func (w *webhook) inject(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, most))
	if err != nil {
		http.Error(rw, "the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	t, err := w.read()
	if err != nil {
		w.log.Error("Abate was not put into a pod", "problem", err)
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	answer, err := t.answer(body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	rw.Header().Set("Content-Type", "application/json")
	_, _ = rw.Write(answer)
}
