package launch

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/cmd/internal/cli"
	"github.com/abate-go/abate/policyfile"
	"github.com/abate-go/abate/proxy"
)

//go:embed preload.cjs
var preload []byte

// patience is how long no call may come before something is said.
var patience = 10 * time.Second

// parting is how long what the program has started may take to end after it, before something is said.
const parting = 500 * time.Millisecond

// mostBases is how many services get a base URL of their own, each a listener. Those that --env names always do.
const mostBases = 200

// session is one run of the command.
type session struct {
	*options
	stderr io.Writer
	tally  *tally
	proxy  *proxy.Proxy
	main   net.Listener
	page   *http.Server
	ledger *ledger
	kernel *kernel                   // nil where it does not say enough
	to     map[netip.AddrPort]string // where services are, and which; of look
	began  time.Time
	unsure bool   // it was said that a process cannot be looked into
	apart  bool   // the program was seen in a network namespace of its own, of which the kernel tells nothing here
	folder string // of the file for Node
	around surroundings
}

// RunCommand is "abate run".
func (c Clients) RunCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(stdout, usage)
		return 0
	case err != nil:
		for line := range strings.Lines(err.Error()) {
			fmt.Fprintf(stderr, "abate run: %s\n", strings.TrimSpace(line))
		}
		fmt.Fprintln(stderr, `"abate run --help" explains the flags`)
		return 2
	}
	outliveReaders()
	s := &session{options: o, stderr: stderr, tally: newTally(), ledger: newLedger(), began: time.Now()}
	err = s.open(c.Sharing)
	if c.Elsewhere != nil && (errors.Is(err, proxy.ErrNoRedis) || errors.Is(err, proxy.ErrNoEmbeddedRedis)) {
		return c.Elsewhere(ctx, append([]string{"run"}, args...), stdout, stderr)
	}
	if err != nil {
		s.problem(err)
		return 1
	}
	defer s.close()
	return s.run(ctx, stdout)
}

// problem says why the proxy could not be started: every mistake of the file on a line of its own.
func (s *session) problem(err error) {
	var mistakes policyfile.Errors
	if errors.As(err, &mistakes) {
		fmt.Fprintln(s.stderr, mistakes)
		return
	}
	for _, one := range cli.Each(err) {
		s.say("%v", one)
	}
}

func (s *session) say(format string, args ...any) {
	fmt.Fprintf(s.stderr, "abate run: "+format+"\n", args...)
}

// tell says what is of interest, unless nothing is to be said but what is wrong.
func (s *session) tell(format string, args ...any) {
	if !s.quiet {
		s.say(format, args...)
	}
}

// open starts the proxy.
func (s *session) open(sharing proxy.OpenSharing) error {
	file, err := cli.PolicyFile(s.policy)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(s.stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	c := proxy.Config{Policy: s.policy, Log: log, Sharing: sharing,
		Adjust: func(name string, p *abate.Policy) { p.Observer = s.tally.observer(name) }}
	if s.accessLog != cli.Off {
		c.AccessLog, c.LogAll = slog.New(slog.NewTextHandler(s.stderr, nil)), s.accessLog == "all"
	}
	if s.strangers == "pass" {
		c.PassThrough = cli.Anywhere
	}
	if s.kernel = openKernel(s.ledger); s.kernel != nil {
		c.Control = s.kernel.dials
	}
	if s.proxy, err = proxy.New(c); err != nil {
		s.close()
		return err
	}
	s.around = surroundings{tunnels: len(file.Outside.Connect) > 0, metadata: metadata, bases: map[string]string{}}
	if err := errors.Join(s.listen(), s.offerBases(), s.writePreload(), s.proxy.Open()); err != nil {
		s.close()
		return err
	}
	return nil
}

// services are those of the policy file, as it is now.
func (s *session) services() []string { return s.proxy.Policies().Names() }

// listen opens the port of the proxy and that of the page.
func (s *session) listen() error {
	l, err := proxy.Listen("127.0.0.1:0")
	if err != nil {
		return err
	}
	s.main, s.around.proxy = l, l.Addr().String()
	go func() { _ = s.proxy.Serve(l) }() // until Shutdown
	if s.admin == cli.Off {
		return nil
	}
	at, err := proxy.Listen(s.admin)
	if err != nil {
		return fmt.Errorf("--admin %s: %s", s.admin, cli.ListenProblem(err))
	}
	s.page = &http.Server{Handler: s.proxy.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.page.Serve(at) }() // until Close
	page := "http://" + at.Addr().String()
	if at.Addr().Network() == "unix" {
		page = "unix:" + at.Addr().String()
	}
	s.tell("proxy on http://%s, live page on %s", s.around.proxy, page)
	return nil
}

// offerBases opens a port for each service, so that its address is the service's base URL, without a prefix.
func (s *session) offerBases() error {
	all := s.services()
	wanted := all[:min(len(all), mostBases)]
	if len(wanted) < len(all) {
		s.tell("only the first %d services have an ABATE_URL_...; name others with --env", mostBases)
	}
	var problems []error
	for _, n := range s.env {
		switch {
		case !slices.Contains(all, n.service):
			problems = append(problems, fmt.Errorf("--env %s=%s: the policy file has no such service; it has %s", n.name,
				n.service, few(all)))
		case !slices.Contains(wanted, n.service):
			wanted = append(slices.Clone(wanted), n.service)
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	at := map[string]string{}
	for _, service := range wanted {
		l, err := proxy.Listen("127.0.0.1:0")
		if err != nil {
			return err
		}
		at[service] = "http://" + l.Addr().String()
		go func() { _ = s.proxy.ServeFor(service, l) }() // until Shutdown
		name := variable(service)
		if _, taken := s.around.bases[name]; taken {
			return fmt.Errorf("service %s would have the variable %s too: name it with --env NAME=%s", service, name, service)
		}
		s.around.bases[name] = at[service]
	}
	for _, n := range s.env {
		s.around.bases[n.name] = at[n.service]
	}
	for _, name := range slices.Sorted(maps.Keys(s.around.bases)) {
		s.tell("  %s=%s", name, s.around.bases[name])
	}
	return nil
}

// writePreload writes the file that Node loads first.
func (s *session) writePreload() (err error) {
	if s.folder, err = os.MkdirTemp("", "abate-run-"); err != nil {
		return err
	}
	s.around.preload = filepath.Join(s.folder, "preload.cjs")
	s.around.hosts = slices.Sorted(maps.Keys(s.hosts()))
	return os.WriteFile(s.around.preload, preload, 0o600)
}

// run starts the program and stays with it until its end.
func (s *session) run(ctx context.Context, stdout io.Writer) int {
	env, notes := s.around.environment(os.Environ())
	for _, n := range notes {
		s.say("%s", n)
	}
	signals := make(chan os.Signal, 16)
	// What this process ignores, after nohup(1) for example, the program is to ignore too.
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(passed), signal.Ignored)...)
	defer signal.Stop(signals)
	program, err := begin(s.argv, env, stdout, s.stderr)
	if err != nil {
		s.say("%s could not be started: %v", s.argv[0], err)
		return startCode(err)
	}
	around := newFamily(program.cmd.Process.Pid, s.around.proxy)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() { _ = s.proxy.Watch(watching) }() // ends with watching
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		s.look(watching, around)
	}()
	s.attend(ctx, program, signals)
	stop()
	<-seen
	if n := around.leftAfter(parting); n > 0 {
		s.say("what the program has started goes on (processes: %d), and the proxy ends: its calls through it fail from "+
			"now on", n)
	}
	for _, line := range s.tally.report(s.services(), s.proxy.Outside()) {
		s.tell("%s", line)
	}
	return program.code
}

// attend passes signals on until the program has ended.
func (s *session) attend(ctx context.Context, program *child, signals <-chan os.Signal) {
	var overdue <-chan time.Time
	end := func(sig os.Signal) {
		if program.pass(sig); sig == toEnd && overdue == nil {
			overdue = time.After(s.grace)
		}
	}
	quiet, done := time.After(patience), ctx.Done()
	for {
		select {
		case <-program.ended:
			return
		case sig := <-signals:
			end(sig)
		case <-done:
			if done = nil; errors.Is(context.Cause(ctx), context.Canceled) && !bySignal(ctx) {
				end(toEnd) // whoever called this wants it to end
			}
		case <-overdue:
			overdue = nil
			program.kill(s.grace, s.stderr)
		case <-quiet:
			if !s.tally.any(s.services()) {
				s.say("%s", s.tally.silence(patience.String(), looks, strangers(s.proxy.Outside())))
			}
		}
	}
}

// bySignal reports whether a context ended by a signal, which signals has too.
func bySignal(ctx context.Context) bool { return context.Cause(ctx) != ctx.Err() }

// close ends the proxy. Nobody calls through it any more.
func (s *session) close() {
	now, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.page != nil {
		_ = s.page.Close()
	}
	if s.kernel != nil {
		s.kernel.close()
	}
	if s.proxy != nil {
		_ = s.proxy.Shutdown(now) // who is left is cut off
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}
