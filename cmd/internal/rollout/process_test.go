//go:build unix

package rollout_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/abate-go/abate/cmd/internal/clitest"
)

// process is one that runs until it is told to end.
type process struct {
	t     *testing.T
	what  string
	cmd   *exec.Cmd
	said  clitest.Buffer
	done  chan struct{}
	at    map[string]string // the addresses that it printed, by what stands before them
	ended bool
}

var whereabouts = regexp.MustCompile(`([a-z]+(?: on)?) +(?:http://)?(127\.0\.0\.1:\d+)`)

// begin starts a process, and returns when it has printed the names of all places.
func begin(t *testing.T, what string, cmd *exec.Cmd, places ...string) *process {
	t.Helper()
	p := &process{t: t, what: what, cmd: cmd, done: make(chan struct{}), at: map[string]string{}}
	out, err := cmd.StdoutPipe()
	cmd.Stderr = &p.said
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !p.ended {
			_ = cmd.Process.Kill()
			<-p.done
		}
		if t.Failed() {
			t.Logf("%s said:\n%s", what, p.said.String())
		}
	})
	lines := bufio.NewScanner(out)
	for len(p.at) < len(places) && lines.Scan() {
		for _, m := range whereabouts.FindAllStringSubmatch(lines.Text(), -1) {
			p.at[m[1]] = m[2]
		}
		fmt.Fprintln(&p.said, lines.Text())
	}
	go func() {
		_, _ = io.Copy(&p.said, out)
		_ = cmd.Wait()
		close(p.done)
	}()
	for _, place := range places {
		if p.at[place] == "" {
			<-p.done
			t.Fatalf("%s does not say where %q is:\n%s", what, place, p.said.String())
		}
	}
	return p
}

// terminate sends SIGTERM, and waits for the end, which has to be an orderly one.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("%s: %v", p.what, err)
	}
	<-p.done
	p.ended = true
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %d", p.what, code)
	}
}

// leave is the preStop of the chart, without its wait.
func (p *process) leave() {
	p.t.Helper()
	cmd := exec.Command(p.cmd.Path, "leave", "--pid", strconv.Itoa(p.cmd.Process.Pid))
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Errorf("%s: leave: %v\n%s", p.what, err, out)
	}
}

// eventually waits until ok, as long as a busy machine needs. It looks seldom: to look costs more than what is looked
// for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	over := time.NewTimer(time.Minute)
	defer over.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-over.C:
			t.Fatalf("a minute on, still not: %s", what)
		}
	}
}

// page is what the admin address has.
func (p *process) page(path string) (status int, text string) {
	resp, err := http.Get("http://" + p.at["admin on"] + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// proxy starts abate-proxy on a policy, with the flags of the chart.
func proxy(t *testing.T, what, policy string, places []string, flags ...string) *process {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"proxy", "-c", file, "--admin", "127.0.0.1:0"}, flags...)
	p := begin(t, what, exec.Command(clitest.Built(t, "abate-proxy"), args...), append(places, "admin on")...)
	eventually(t, what+" is ready", func() bool { status, _ := p.page("/readyz"); return status == 200 })
	return p
}

// pod is a service with a gate in front of it.
type pod struct{ service, gate *process }

func newPod(t *testing.T, name, journal string) *pod {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), journalOf+"="+journal)
	p := &pod{service: begin(t, "service "+name, cmd, "listening on")}
	policy := fmt.Sprintf("protect:\n  app:\n    listen: 127.0.0.1:0\n    upstreams: [\"http://%s\"]\n"+
		"    shed: {disabled: true}\n", p.service.at["listening on"])
	p.gate = proxy(t, "gate "+name, policy, []string{"app"}, "--listen", "off", "--drain-timeout", "5s")
	return p
}
