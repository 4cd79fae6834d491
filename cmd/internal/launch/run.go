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
	"net/url"
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
	s := &session{options: o, stderr: stderr, tally: newTally()}
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
	if s.proxy, err = proxy.New(c); err != nil {
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.main, s.around.proxy = l, l.Addr().String()
	go func() { _ = s.proxy.Serve(l) }() // until Shutdown
	if s.admin == cli.Off {
		return nil
	}
	at, err := net.Listen("tcp", s.admin)
	if err != nil {
		return fmt.Errorf("--admin %s: %s", s.admin, cli.ListenProblem(err))
	}
	s.page = &http.Server{Handler: s.proxy.Admin(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.page.Serve(at) }() // until Close
	s.tell("proxy on http://%s, live page on http://%s", s.around.proxy, at.Addr())
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
		l, err := net.Listen("tcp", "127.0.0.1:0")
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

// hosts are those of the services, each with its port, and whose each is: of their upstreams and of their routes.
func (s *session) hosts() map[string]string {
	all := map[string]string{}
	for _, name := range s.services() {
		d, ok := s.proxy.Policies().Service(name)
		if !ok {
			continue
		}
		for _, raw := range d.Policy.Upstreams {
			if u, err := url.Parse(raw); err == nil && u.Hostname() != "" {
				all[net.JoinHostPort(strings.ToLower(u.Hostname()), portOf(u))] = name
			}
		}
		for _, r := range d.Policy.Routes {
			if _, _, err := net.SplitHostPort(r.Host); r.Host != "" && err != nil {
				all[net.JoinHostPort(strings.ToLower(r.Host), "80")] = name
			} else if r.Host != "" {
				all[strings.ToLower(r.Host)] = name
			}
		}
	}
	return all
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// addresses are those of the services, as far as they can be looked up, and those that discovery has found. Those of
// this proxy are not among them.
func (s *session) addresses(ctx context.Context) map[netip.AddrPort]string {
	hosts, found := s.hosts(), map[netip.AddrPort]string{}
	for _, name := range s.services() {
		for _, at := range s.proxy.Addresses(name) {
			hosts[at] = name
		}
	}
	for at, name := range hosts {
		host, port, _ := net.SplitHostPort(at)
		n, _ := net.LookupPort("tcp", port)
		addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host) // a name that has none cannot be gone to
		for _, a := range addrs {
			found[netip.AddrPortFrom(a.Unmap(), uint16(n))] = name
		}
	}
	return found
}

// run starts the program and stays with it until its end.
func (s *session) run(ctx context.Context, stdout io.Writer) int {
	env, notes := s.around.environment(os.Environ())
	for _, n := range notes {
		s.say("%s", n)
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passed...)
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
				s.say("%s", silence(patience.String(), looks, len(s.proxy.Outside().PassThrough) > 0))
			}
		}
	}
}

// bySignal reports whether a context ended by a signal, which signals has too.
func bySignal(ctx context.Context) bool { return context.Cause(ctx) != ctx.Err() }

// look looks for connections of the program that go past the proxy: often at first, and less often later.
func (s *session) look(ctx context.Context, around *family) {
	if !looks {
		return
	}
	var to map[netip.AddrPort]string
	unsure := false
	for round := 0; ; round++ {
		if round%50 == 0 {
			limit, cancel := context.WithTimeout(ctx, 2*time.Second)
			to = s.addresses(limit)
			cancel()
		}
		found, hidden := around.direct(to)
		for _, line := range s.tally.sees(found, to, s.around.bases) {
			s.say("%s", line)
		}
		if hidden != 0 && !unsure {
			unsure = true
			s.say("process %d of the program cannot be looked into, perhaps because it runs as another user: nobody sees "+
				"whether it calls a service without the proxy", hidden)
		}
		pause := time.Second
		if round < 100 {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// close ends the proxy. Nobody calls through it any more.
func (s *session) close() {
	now, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.page != nil {
		_ = s.page.Close()
	}
	_ = s.proxy.Shutdown(now) // who is left is cut off
	if s.folder != "" {
		_ = os.RemoveAll(s.folder)
	}
}
